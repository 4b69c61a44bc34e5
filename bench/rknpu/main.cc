// What compiled models (.rknn) take on the emulated NPU, as the device runs
// them: published files, with the time to load one, of a run on one core by
// both engines, with and without copies of the ports, the bytes that differ
// from recorded answers on one, two and three cores, and the memory they hold.
// Times are the CPU's of one thread, best of several. Exits with 1 when a
// figure is not what is asked.
//
//   rknnd-bench-rknpu [--out FILE] [--runs N]

#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/common/figures.h"
#include "driver/compound_device.h"
#include "driver/device.h"
#include "driver/rknpu/emulated_backend.h"
#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/file/testing/shared_programs.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/run_model.h"
#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::bench {
namespace {

using rknpu::testing::ReadShared;
using soft::testing::BoundModel;

constexpr uint32_t kCores = 3, kContexts = 12;

// A published model, its recorded answer, and what is asked of it; 0: nothing.
struct Case {
  const char* file;
  const char* input;
  const char* output;
  double most_fast = 0, most_plain = 0, most_load = 0;  // milliseconds
};
constexpr Case kCases[] = {
    {"mobilenetv2_rk3588.rknn", "vectors/mobilenetv2_chelsea_in_u8.bin",
     "vectors/mobilenetv2_chelsea_out_i8.bin", 30, 0, 0},
    {"yolov8n_algae_rk3588.rknn", "", "", 300, 10000, 50},
    {"ppocrv4_det_rk3588.rknn", "vectors/ppocrv4_det_page_in_u8.bin",
     "vectors/ppocrv4_det_page_out_i8.bin", 0, 0, 0}};

// Of this thread: other work on the machine does not count.
double CpuMilliseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 +
         static_cast<double>(now.tv_nsec) * 1e-6;
}

template <class Work>
double Best(int runs, Work&& work) {
  double best = 1e300;
  for (int i = 0; i < runs; ++i) {
    const double start = CpuMilliseconds();
    work();
    best = std::min(best, CpuMilliseconds() - start);
  }
  return best;
}

template <class T>
T Require(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  throw std::runtime_error(std::string(result.status().message()));
}

void Require(const driver::JobResult& result) {
  if (result.status.ok()) return;
  throw std::runtime_error(std::string(result.status.message()));
}

std::unique_ptr<driver::Device> Open(rknpu::Emulation emulation) {
  driver::CompoundParts parts;
  parts.soft = Require(soft::OpenSoftDevice({.kind = "soft", .soc = "rk3588"}));
  parts.platform = "rk3588";
  parts.backend = rknpu::MakeEmulatedBackend(emulation);
  return driver::MakeCompoundDevice(std::move(parts), nullptr);
}

std::vector<driver::TensorFormat> Formats(
    const std::vector<driver::TensorAttr>& attrs, bool native,
    driver::TensorType type) {
  std::vector<driver::TensorFormat> formats;
  for (const driver::TensorAttr& attr : attrs) {
    if (native) {
      formats.push_back({.type = attr.type,
                         .layout = attr.layout,
                         .pass_through = true,
                         .w_stride = attr.w_stride});
    } else {
      formats.push_back({.type = type, .layout = attr.layout});
    }
  }
  return formats;
}

// Pixels in and planes of int8 out, or everything as the NPU has it.
std::unique_ptr<BoundModel> Bind(driver::Device& device,
                                 const driver::Model& model, bool native) {
  const driver::ProgramInfo& program = model.info().programs[0];
  return Require(BoundModel::Make(
      device, model,
      Formats(native ? program.native_inputs : program.inputs, native,
              driver::TensorType::kUint8),
      Formats(native ? program.native_outputs : program.outputs, native,
              driver::TensorType::kInt8)));
}

class Bench {
 public:
  explicit Bench(int runs) : runs_(runs) {}

  void Measure(const Case& one) {
    const std::vector<std::byte> bytes = ReadShared(one.file);
    if (bytes.empty()) {
      std::printf("%s is not there (set RKNND_SHARED)\n", one.file);
      return;
    }
    const auto load = [&](driver::Device& device) {
      return Require(
          device.Load({.bytes = bytes, .options = "", .name = one.file}));
    };
    std::unique_ptr<driver::Model> model;
    const double loading = Best(runs_, [&] { model = load(*fast_); });
    AddTime(one, "load", loading, one.most_load);
    const auto pixels = Bind(*fast_, *model, false);
    const auto native = Bind(*fast_, *model, true);
    AddTime(one, "run, fast", Best(runs_, [&] { Require(pixels->Run()); }),
            one.most_fast);
    AddTime(one, "run, fast, nothing copied",
            Best(runs_, [&] { Require(native->Run()); }), 0);
    const auto plain_model = load(*plain_);
    const auto plainly = Bind(*plain_, *plain_model, false);
    AddTime(one, "run, plain", Best(1, [&] { Require(plainly->Run()); }),
            one.most_plain);
    Compare(one, *pixels);
    CountMemory(one, bytes, *model);
  }

  Figures figures;

 private:
  void AddTime(const Case& one, const std::string& what, double time,
               double most) {
    const std::string name = std::string(one.file) + ": " + what;
    const nlohmann::json details = {{"ms", time}};
    if (most == 0) {
      return figures.AddBeside(name, Text("%.1f ms", time), details);
    }
    figures.Add(name, Text("at most %g ms", most), Text("%.1f ms", time),
                time <= most, details);
  }

  void Compare(const Case& one, BoundModel& bound) {
    if (*one.input == '\0') return;
    const std::vector<std::byte> input = ReadShared(one.input);
    const std::vector<std::byte> output = ReadShared(one.output);
    if (input.empty() || output.empty()) return;
    std::memcpy(bound.input(0).data(), input.data(), input.size());
    size_t different = 0;
    for (const uint32_t mask : {1U, 3U, 7U}) {
      std::memset(bound.output(0).data(), 0, output.size());
      Require(bound.RunGang(mask));
      for (size_t i = 0; i < output.size(); ++i) {
        different += bound.output(0).data()[i] != output[i] ? 1 : 0;
      }
    }
    figures.Add(std::string(one.file) + ": bytes unlike the vector",
                "0 on 1, 2 and 3 cores", Text("%zu", different), different == 0,
                {{"different", different}});
  }

  // The daemon shares a model among contexts, and internal memory among those
  // that take turns on a core;
  // tests/integration/models/compiled_programs_test.cc compares its accounts
  // with the same sums.
  void CountMemory(const Case& one, const std::vector<std::byte>& bytes,
                   const driver::Model& model) {
    const auto file = rknpu::Read(bytes);
    if (!file.ok()) throw std::runtime_error(file.error().message);
    const driver::ModelInfo& info = model.info();
    const uint64_t internal = info.programs[0].internal_size;
    const bool exact = info.weight_size == file->weight_bytes &&
                       internal == file->internal_bytes;
    figures.Add(std::string(one.file) + ": weights and internal memory",
                "as the file says",
                Text("%llu and %llu bytes",
                     static_cast<unsigned long long>(info.weight_size),
                     static_cast<unsigned long long>(internal)),
                exact, {{"weights", info.weight_size}, {"internal", internal}});
    const uint64_t held = model.held_weights();
    figures.AddBeside(Text("%s: %u contexts", one.file, kContexts),
                      Text("%.2f MiB held once, %u x %.2f MiB",
                           static_cast<double>(held) / (1 << 20), kCores,
                           static_cast<double>(internal) / (1 << 20)),
                      {{"held", held},
                       {"beyond_weights", held - info.weight_size},
                       {"internal", kCores * internal}});
  }

  const int runs_;
  const std::unique_ptr<driver::Device> fast_ = Open(rknpu::Emulation::kFast);
  const std::unique_ptr<driver::Device> plain_ = Open(rknpu::Emulation::kPlain);
};

bool MeasureAll(int runs, const std::string& out) {
  std::printf("level %s\n", soft::CpuLevelName(soft::CurrentCpuLevel()));
  Figures::PrintHead();
  Bench bench(runs);
  for (const Case& one : kCases) bench.Measure(one);
  if (!out.empty()) {
    std::ofstream file(out);
    file << bench.figures.rows().dump(1) << '\n';
    file.close();
    if (!file) throw std::runtime_error("cannot write '" + out + "'");
  }
  return bench.figures.all_hold();
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  CLI::App app("What compiled models take on the emulated NPU");
  std::string out;
  int runs = 5;
  app.add_option("--out", out);
  app.add_option("--runs", runs)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  try {
    return rknnd::bench::MeasureAll(runs, out) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
