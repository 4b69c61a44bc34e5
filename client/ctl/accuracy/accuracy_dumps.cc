#include "client/ctl/accuracy/accuracy_dumps.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "client/ctl/accuracy/accuracy_files.h"
#include "client/ctl/models/network.h"
#include "client/ctl/models/network_inputs.h"
#include "client/ctl/models/on_target.h"
#include "client/ctl/reports/report.h"
#include "client/ctl/text/progress.h"

namespace rknnd::client {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Error;
using base::Expected;

// A .npy file has a header of 128 bytes, of large shapes more.
constexpr uint64_t kHeader = 192;

// The text of the options beside a model belongs to its copy, too.
fs::path OptionsOf(fs::path model) { return model.replace_extension(".yml"); }

// A copy of a model with option 'accuracy'; goes with its object.
class Variant {
 public:
  static Expected<std::unique_ptr<Variant>> Make(const AccuracyDump& dump,
                                                 const std::string& scratch) {
    const fs::path model(dump.model);
    std::unique_ptr<Variant> variant(new Variant(scratch + "/" + dump.variant));
    std::error_code error;
    fs::create_directories(variant->folder_, error);
    const fs::path copy = variant->folder_ / model.filename();
    if (!error) {
      fs::copy_file(model, copy, fs::copy_options::overwrite_existing, error);
    }
    if (!error && fs::exists(OptionsOf(model))) {
      fs::copy_file(OptionsOf(model), OptionsOf(copy),
                    fs::copy_options::overwrite_existing, error);
    }
    if (error) {
      return Error{Code::kUnknown, "cannot copy model '" + dump.model +
                                       "' to '" + scratch +
                                       "': " + error.message()};
    }
    fs::permissions(copy, fs::perms::owner_write, fs::perm_options::add, error);
    std::ofstream file(copy, std::ios::binary | std::ios::app);
    file << MetadataEntry("rknn.accuracy", dump.variant);
    file.close();
    if (!file) {
      return Error{Code::kUnknown, "cannot write model '" + copy.string() +
                                       "': is the disk full?"};
    }
    variant->path_ = copy.string();
    return variant;
  }
  ~Variant() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Variant(const Variant&) = delete;
  Variant& operator=(const Variant&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit Variant(fs::path folder) : folder_(std::move(folder)) {}

  fs::path folder_;
  std::string path_;
};

// What the dump of `network` is going to take, as far as its layers say.
Expected<uint64_t> EstimateBytes(Network& network) {
  if (Expected<void> run = network.Run(); !run) return std::move(run).error();
  const Expected<std::span<const rknnd_layer>> layers = network.Layers();
  if (!layers) return layers.error();
  uint64_t bytes = 0;
  for (const rknnd_layer& layer : *layers) {
    // Reals of any width come as float32.
    const uint64_t size =
        std::string_view(layer.data_type) == "INT64" ? 8 : sizeof(float);
    bytes += ElementsOf(layer.output_shape) * size + kHeader;
  }
  return bytes;
}

// Why there is no dump of this variant, or "".
Expected<std::string> DumpVariant(const AccuracyDump& dump,
                                  const AccuracyDumps& all) {
  Expected<std::unique_ptr<Variant>> variant = Variant::Make(dump, all.scratch);
  if (!variant) return std::move(variant).error();
  Expected<std::unique_ptr<Network>> network =
      LoadWithInputs((*variant)->path(), all.inputs, 0);
  std::string why;
  if (!network) {
    why = network.error().message;
  } else {
    // A device that does not know the option would run the model as it is.
    const Expected<std::string> mark = (*network)->CustomString();
    if (!mark || *mark != "accuracy: " + dump.variant) {
      why = "its device has no networks for comparison";
    }
  }
  if (why.empty()) {
    if (Expected<void> dumped = (*network)->Dump(dump.folder); !dumped) {
      return std::move(dumped).error();
    }
    return std::string();
  }
  if (all.may_lack_variants) return why;
  return Error{Code::kUnknown, "cannot compare the layers of model '" +
                                   dump.model + "': " + why};
}

// The model itself. Its tensors' size is checked before they are written, and
// again when it is known to the byte.
Expected<void> DumpModel(const AccuracyDump& dump, const AccuracyDumps& all) {
  const bool checks = all.copies > 0;
  Expected<std::unique_ptr<Network>> network = LoadWithInputs(
      dump.model, all.inputs, checks ? RKNN_FLAG_COLLECT_PERF_MASK : 0);
  if (!network) return std::move(network).error();
  std::error_code ignored;
  const uint64_t model = fs::file_size(dump.model, ignored);
  const auto check = [&](uint64_t bytes, unsigned copies) -> Expected<void> {
    const Expected<uint64_t> free = FreeSpace(dump.folder);
    if (!free) return free.error();
    return CheckSpace(dump.folder, bytes * copies + model, *free);
  };
  if (checks) {
    const Expected<uint64_t> bytes = EstimateBytes(**network);
    if (!bytes) return bytes.error();
    if (Expected<void> fits = check(*bytes, all.copies); !fits) return fits;
  }
  if (Expected<void> dumped = (*network)->Dump(dump.folder); !dumped) {
    return dumped;
  }
  if (!checks) return {};
  return check(BytesOf(dump.folder), all.copies - 1);
}

Expected<std::vector<std::string>> MakeHere(const AccuracyDumps& all) {
  Progress progress(all.quiet, Progress::Unit::kThings);
  std::vector<std::string> answers;
  for (const AccuracyDump& dump : all.dumps) {
    progress.Update("running on the " + all.what, answers.size(),
                    all.dumps.size());
    if (dump.variant.empty()) {
      if (Expected<void> dumped = DumpModel(dump, all); !dumped) {
        return std::move(dumped).error();
      }
      answers.emplace_back();
      continue;
    }
    Expected<std::string> why = DumpVariant(dump, all);
    if (!why) return std::move(why).error();
    answers.push_back(*std::move(why));
  }
  return answers;
}

}  // namespace

std::string MetadataEntry(const std::string& key, const std::string& value) {
  // Tags and lengths of one byte each: ModelProto's field 14 of key 1, value 2.
  const auto field = [](int number, const std::string& bytes) {
    std::string text(1, static_cast<char>(number << 3 | 2));
    return text + static_cast<char>(bytes.size()) + bytes;
  };
  return field(14, field(1, key) + field(2, value));
}

uint64_t ElementsOf(const std::string& shape) {
  uint64_t elements = 1;
  const char* at = shape.data();
  const char* const end = at + shape.size();
  while (at < end) {
    uint64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() ||
        __builtin_mul_overflow(elements, extent, &elements)) {
      return 0;
    }
    if (next < end && *next != 'x') return 0;
    at = next < end ? next + 1 : end;
  }
  return shape.empty() ? 0 : elements;
}

Expected<std::vector<std::string>> MakeDumps(const AccuracyDumps& dumps) {
  const Expected<Json> made =
      OnTarget(dumps.target, "ran the model on the " + dumps.what,
               [&dumps]() -> Expected<Json> {
                 Expected<std::vector<std::string>> answers = MakeHere(dumps);
                 if (!answers) return std::move(answers).error();
                 return Json(*answers);
               });
  if (!made) return made.error();
  return made->get<std::vector<std::string>>();
}

}  // namespace rknnd::client
