// Dumps first, each in its folder of the output folder, then the comparison,
// layer by layer: what is in memory at once is one layer's tensors.
//
//   golden/            float32, on the software NPU
//   simulator/         the model on the software NPU
//   simulator_single/  each of its layers alone, on inputs of golden
//   runtime/  runtime_single/   the same on the target
//   golden_single/     only with a golden model of one's own: what the layers
//                      alone are compared with, of the model's own weights

#include "client/ctl/accuracy/accuracy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "client/ctl/accuracy/accuracy_distance.h"
#include "client/ctl/accuracy/accuracy_dumps.h"
#include "client/ctl/accuracy/accuracy_files.h"
#include "client/ctl/accuracy/accuracy_table.h"
#include "client/ctl/text/progress.h"
#include "client/ctl/text/terminal.h"
#include "client/image/file.h"
#include "client/image/npy.h"
#include "driver/rknn_file/rknn_file.h"

namespace rknnd::client {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Error;
using base::Expected;

constexpr const char* kFolders[] = {
    "golden",           "golden_single", "golden_model",   "simulator",
    "simulator_single", "runtime",       "runtime_single", "scratch"};

Expected<void> RefuseCompiled(const std::string& path) {
  // As much as tells the kinds apart.
  std::array<char, 64> start{};
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), start.size());
  const auto got = static_cast<size_t>(file.gcount());
  const rknn_file::Kind kind =
      rknn_file::KindOf(std::as_bytes(std::span(start).first(got)));
  if (kind == rknn_file::Kind::kOther) return {};
  return Error{Code::kInvalidArgument,
               "'" + path + "' is " + rknn_file::KindName(kind) +
                   ": it lacks the original model, which its layers would be "
                   "compared with. Give the ONNX file it was made of"};
}

class Analysis {
 public:
  explicit Analysis(const AccuracyOptions& options) : options_(options) {}

  Expected<AccuracyReport> Run() {
    report_.output_dir = options_.output_dir;
    report_.has_runtime = !options_.target.empty();
    if (Expected<void> cleared = Clear(); !cleared) {
      return std::move(cleared).error();
    }
    Expected<void> dumped = Simulate();
    if (dumped && report_.has_runtime) dumped = RunOnTarget();
    TidyUp();
    if (!dumped) return std::move(dumped).error();
    if (Expected<void> compared = Compare(); !compared) {
      return std::move(compared).error();
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::string Folder(const char* name) const {
    return options_.output_dir + "/" + name;
  }
  [[nodiscard]] bool HasOwnGolden() const { return !options_.golden.empty(); }
  // Where what layers alone are compared with is.
  [[nodiscard]] const char* SingleGolden() const {
    return HasOwnGolden() ? "golden_single" : "golden";
  }

  Expected<void> Clear() {
    for (const char* name : kFolders) {
      if (Expected<void> cleared = ClearDump(Folder(name)); !cleared) {
        return cleared;
      }
    }
    return {};
  }

  // What was only for a while, and folders that nothing has come into.
  void TidyUp() {
    std::error_code ignored;
    for (const char* name : {"scratch", "golden_model"}) {
      fs::remove_all(Folder(name), ignored);
    }
    for (const char* name : kFolders) fs::remove(Folder(name), ignored);
  }

  [[nodiscard]] AccuracyDumps DumpsOn(const std::string& target,
                                      const char* what) const {
    AccuracyDumps dumps;
    dumps.target = target;
    dumps.what = what;
    dumps.inputs = options_.inputs;
    dumps.scratch = Folder("scratch");
    dumps.quiet = options_.json;
    return dumps;
  }

  Expected<void> Simulate() {
    AccuracyDumps dumps = DumpsOn("local:", "simulator");
    dumps.copies = report_.has_runtime ? 5 : 3;
    dumps.dumps = {{options_.model, "", Folder("simulator")},
                   {options_.model, "golden", Folder(SingleGolden())},
                   {options_.model, "single", Folder("simulator_single")}};
    if (HasOwnGolden()) {
      dumps.copies += 2;
      dumps.dumps.push_back(
          {options_.golden, "golden", Folder("golden_model")});
    }
    if (const auto made = MakeDumps(dumps); !made) return made.error();
    layers_ = FilesOfDump(Folder("simulator"));
    for (const char* name : {SingleGolden(), "simulator_single"}) {
      if (Expected<void> named = NameFilesLike(layers_, Folder(name)); !named) {
        return named;
      }
    }
    return HasOwnGolden() ? TakeGolden() : Expected<void>();
  }

  Expected<void> TakeGolden() {
    const Expected<size_t> taken =
        TakeFilesLike(layers_, Folder("golden_model"), Folder("golden"));
    if (!taken) return taken.error();
    if (*taken == 0) {
      return Error{Code::kInvalidArgument,
                   "golden model '" + options_.golden +
                       "' has no tensor of a name that model '" +
                       options_.model + "' has: is it another network?"};
    }
    if (*taken < layers_.size()) {
      report_.notes.push_back("the golden model has " + std::to_string(*taken) +
                              " of the " + std::to_string(layers_.size()) +
                              " tensors, by their names");
    }
    return {};
  }

  Expected<void> RunOnTarget() {
    AccuracyDumps dumps = DumpsOn(options_.target, "target");
    dumps.may_lack_variants = true;
    dumps.dumps = {{options_.model, "", Folder("runtime")},
                   {options_.model, "single", Folder("runtime_single")}};
    const Expected<std::vector<std::string>> made = MakeDumps(dumps);
    if (!made) {
      return Error{made.error().code,
                   "target " + options_.target + ": " + made.error().message};
    }
    if (const std::string& why = made->back(); !why.empty()) {
      report_.notes.push_back("no single_sim of target " + options_.target +
                              ": " + why);
    }
    for (const char* name : {"runtime", "runtime_single"}) {
      if (Expected<void> named = NameFilesLike(layers_, Folder(name)); !named) {
        return named;
      }
    }
    return {};
  }

  // Nothing where there is no such file.
  Expected<std::optional<Array>> Read(const char* folder,
                                      const DumpedFile& layer) const {
    const std::string path = Folder(folder) + "/" + layer.file;
    std::error_code error;
    if (!fs::exists(path, error)) return std::optional<Array>();
    Expected<Array> array = ReadNpy(path);
    if (!array) return std::move(array).error();
    return std::optional<Array>(*std::move(array));
  }

  // The distance of this layer between two folders.
  Expected<std::optional<Distance>> Between(const DumpedFile& layer,
                                            const char* of,
                                            const char* against) {
    const Expected<std::optional<Array>> a = Read(of, layer);
    if (!a) return a.error();
    if (!*a) return std::optional<Distance>();
    const Expected<std::optional<Array>> b = Read(against, layer);
    if (!b) return b.error();
    if (!*b) return std::optional<Distance>();
    return DistanceOf(**a, **b);
  }

  Expected<void> Compare() {
    Progress progress(options_.json, Progress::Unit::kThings);
    for (const DumpedFile& layer : layers_) {
      progress.Update("comparing", report_.layers.size(), layers_.size());
      LayerAccuracy& row = report_.layers.emplace_back();
      row.name = layer.name;
      row.type = layer.type;
      struct Cell {
        std::optional<Distance>* to;
        const char *of, *against;
      };
      std::vector<Cell> cells = {
          {&row.simulator.entire, "simulator", "golden"},
          {&row.simulator.single, "simulator_single", SingleGolden()}};
      if (report_.has_runtime) {
        cells.push_back({&row.runtime.entire, "runtime", "golden"});
        cells.push_back(
            {&row.runtime.single_sim, "runtime_single", "simulator_single"});
      }
      for (const Cell& cell : cells) {
        Expected<std::optional<Distance>> distance =
            Between(layer, cell.of, cell.against);
        if (!distance) return std::move(distance).error();
        *cell.to = *distance;
      }
      if (Expected<void> looked = LookForInf(layer); !looked) return looked;
    }
    return {};
  }

  Expected<void> LookForInf(const DumpedFile& layer) {
    for (const char* folder : {"golden", "simulator", "runtime"}) {
      if (report_.first_inf) return {};
      const Expected<std::optional<Array>> array = Read(folder, layer);
      if (!array) return array.error();
      if (!*array || !HasInf(**array)) continue;
      report_.first_inf = report_.layers.size() - 1;
      report_.inf_in = folder;
    }
    return {};
  }

  const AccuracyOptions& options_;
  AccuracyReport report_;
  std::vector<DumpedFile> layers_;  // in the order of running
};

}  // namespace

Expected<Output> Accuracy(const AccuracyOptions& options) {
  for (const std::string& model : {options.model, options.golden}) {
    if (model.empty()) continue;
    if (Expected<void> whole = RefuseCompiled(model); !whole) {
      return std::move(whole).error();
    }
  }
  const Expected<AccuracyReport> report = Analysis(options).Run();
  if (!report) return report.error();
  const std::string plain = AccuracyText(*report, false);
  if (Expected<void> written =
          WriteFile(options.output_dir + "/error_analysis.txt",
                    std::as_bytes(std::span(plain.data(), plain.size())));
      !written) {
    return std::move(written).error();
  }
  Output output;
  output.json = AccuracyJson(*report);
  output.text = Terminal::IsOne() && Terminal::ShowsColor()
                    ? AccuracyText(*report, true)
                    : plain;
  return output;
}

}  // namespace rknnd::client
