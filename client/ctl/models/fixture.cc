#include "client/ctl/models/fixture.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "base/values/sha256.h"
#include "client/ctl/models/infer.h"
#include "client/ctl/models/network.h"
#include "client/ctl/models/network_inputs.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/image/file.h"
#include "client/image/npy.h"

namespace rknnd::client {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Error;
using base::Expected;

constexpr char kDescription[] = "/fixture.json";
constexpr char kLayers[] = "/layers";
constexpr int kFormat = 1;

Expected<void> WriteBytes(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return {};
  return Error{Code::kUnknown,
               "cannot write '" + path + "': is the disk full?"};
}

Expected<std::string> HashOf(const std::string& path) {
  const Expected<std::vector<std::byte>> bytes = ReadFile(path);
  if (!bytes) return bytes.error();
  return base::ToHex(base::Sha256Of(*bytes));
}

// The names of the .npy files there, sorted.
std::vector<std::string> ArraysIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".npy") {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string OutputFile(size_t index) {
  return "output_" + std::to_string(index) + ".npy";
}

// Outputs and layers of one run, as files.
Expected<void> WriteRun(Network& network, const std::string& folder,
                        bool* has_layers) {
  if (Expected<void> run = network.Run(); !run) return run;
  const Expected<std::vector<TensorOutput>> outputs = network.GetOutputs();
  if (!outputs) return outputs.error();
  for (size_t i = 0; i < outputs->size(); ++i) {
    const rknn_tensor_attr& attr = network.outputs()[i];
    const std::vector<size_t> shape(
        attr.dims, attr.dims + std::min<uint32_t>(attr.n_dims, RKNN_MAX_DIMS));
    if (Expected<void> written =
            WriteNpy(folder + "/" + OutputFile(i), (*outputs)[i].type, shape,
                     (*outputs)[i].bytes);
        !written) {
      return written;
    }
  }
  std::error_code error;
  fs::create_directories(folder + kLayers, error);
  // A device that shows no layers is no reason to have no fixture.
  *has_layers = !error && static_cast<bool>(network.Dump(folder + kLayers));
  return {};
}

Expected<void> MakeEmpty(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && fs::is_empty(folder, error)) return {};
  return Error{Code::kFailedPrecondition,
               "folder '" + folder + "' " +
                   (error ? "cannot be made: " + error.message()
                          : "is not empty: name another one")};
}

// A folder that goes with its object.
class Scratch {
 public:
  static Expected<std::unique_ptr<Scratch>> Make() {
    std::string name =
        (fs::temp_directory_path() / "rknnctl-record-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      return base::ErrnoError(errno, "make folder '" + name + "'");
    }
    return std::unique_ptr<Scratch>(new Scratch(name));
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

Expected<Json> ReadDescription(const std::string& folder) {
  const std::string path = folder + kDescription;
  const Expected<std::vector<std::byte>> bytes = ReadFile(path);
  if (!bytes) return bytes.error();
  const auto* const text = reinterpret_cast<const char*>(bytes->data());
  Json json = Json::parse(text, text + bytes->size(), nullptr, false);
  const auto bad = [&path](const std::string& what) {
    return Error{Code::kInvalidArgument, "'" + path + "' " + what};
  };
  if (!json.is_object() || !json.contains("format") ||
      !json["format"].is_number_integer()) {
    return bad("describes no recording of 'rknnctl record'");
  }
  if (json["format"] != kFormat) {
    return bad(
        "has another format than this rknnctl knows: use one of the "
        "version that recorded it");
  }
  if (!json.contains("model") || !json["model"].is_object() ||
      !json["model"].value("sha256", Json()).is_string() ||
      !json.contains("inputs") || !json["inputs"].is_array()) {
    return bad("lacks the model's hash or the inputs");
  }
  return json;
}

Expected<std::vector<TensorInput>> ReadInputs(const Json& description,
                                              const std::string& folder) {
  std::vector<TensorInput> inputs;
  for (const Json& entry : description["inputs"]) {
    TensorInput input;
    if (!entry.is_object() ||
        !entry.value("type", Json()).is_number_integer() ||
        !entry.value("format", Json()).is_number_integer()) {
      return Error{Code::kInvalidArgument,
                   "'" + folder + kDescription +
                       "' has an input without a type or a format"};
    }
    input.type = static_cast<rknn_tensor_type>(entry["type"].get<int>());
    input.format = static_cast<rknn_tensor_format>(entry["format"].get<int>());
    Expected<std::vector<std::byte>> bytes =
        ReadFile(folder + "/input_" + std::to_string(inputs.size()) + ".bin");
    if (!bytes) return std::move(bytes).error();
    input.bytes = *std::move(bytes);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// How two files of one name differ; empty: not at all.
Expected<std::string> Difference(const std::string& recorded,
                                 const std::string& here) {
  const Expected<Array> a = ReadNpy(recorded);
  if (!a) return a.error();
  const Expected<Array> b = ReadNpy(here);
  if (!b) return std::string("is not there");
  if (a->shape != b->shape || a->type != b->type) {
    return std::string("has another shape or type");
  }
  const size_t element = ElementSize(a->type);
  size_t different = 0;
  size_t first = 0;
  for (size_t at = 0; at + element <= a->bytes.size(); at += element) {
    if (std::equal(a->bytes.begin() + static_cast<ptrdiff_t>(at),
                   a->bytes.begin() + static_cast<ptrdiff_t>(at + element),
                   b->bytes.begin() + static_cast<ptrdiff_t>(at))) {
      continue;
    }
    if (different++ == 0) first = at / element;
  }
  if (different == 0) return std::string();
  return std::to_string(different) + " of " +
         FormatCount(a->bytes.size() / element, "value") +
         ", the first at index " + std::to_string(first);
}

}  // namespace

Expected<Output> RecordFixture(const RecordOptions& options) {
  if (Expected<void> made = MakeEmpty(options.output_dir); !made) {
    return std::move(made).error();
  }
  const Expected<std::string> hash = HashOf(options.model);
  if (!hash) return hash.error();
  Expected<std::unique_ptr<Network>> loaded = Network::Load(options.model);
  if (!loaded) return std::move(loaded).error();
  Network& network = **loaded;
  const Expected<std::vector<TensorInput>> inputs =
      MakeInputs(network, options.inputs);
  if (!inputs) return inputs.error();
  Json ports = Json::array();
  for (size_t i = 0; i < inputs->size(); ++i) {
    const TensorInput& input = (*inputs)[i];
    if (Expected<void> written = WriteBytes(
            options.output_dir + "/input_" + std::to_string(i) + ".bin",
            {reinterpret_cast<const char*>(input.bytes.data()),
             input.bytes.size()});
        !written) {
      return std::move(written).error();
    }
    ports.push_back({{"name", network.inputs()[i].name},
                     {"type", static_cast<int>(input.type)},
                     {"format", static_cast<int>(input.format)}});
  }
  if (Expected<void> set = network.SetInputs(*inputs); !set) {
    return std::move(set).error();
  }
  bool has_layers = false;
  if (Expected<void> run = WriteRun(network, options.output_dir, &has_layers);
      !run) {
    return std::move(run).error();
  }
  const Expected<rknn_sdk_version> versions = network.Versions();
  Output output;
  output.json = {{"format", kFormat},
                 {"model",
                  {{"name", fs::path(options.model).filename().string()},
                   {"sha256", *hash}}},
                 {"computed_by",
                  {{"device", ComputerOf(network)},
                   {"runtime", versions ? versions->api_version : ""},
                   {"driver", versions ? versions->drv_version : ""}}},
                 {"inputs", std::move(ports)},
                 {"outputs", network.outputs().size()},
                 {"layers", ArraysIn(options.output_dir + kLayers).size()}};
  if (Expected<void> written = WriteBytes(options.output_dir + kDescription,
                                          output.json.dump(2) + "\n");
      !written) {
    return std::move(written).error();
  }
  output.text = FormatCount(inputs->size(), "input") + ", " +
                FormatCount(network.outputs().size(), "output") + " and " +
                FormatCount(output.json["layers"].get<size_t>(), "layer") +
                " are in " + options.output_dir + ", computed on " +
                ComputerOf(network) + "\n";
  if (!has_layers) {
    output.text += "the device shows no layers: outputs alone are compared\n";
  }
  return output;
}

Expected<FixtureComparison> CompareFixture(const std::string& model,
                                           const std::string& folder) {
  const Expected<Json> description = ReadDescription(folder);
  if (!description) return description.error();
  const Expected<std::string> hash = HashOf(model);
  if (!hash) return hash.error();
  if ((*description)["model"]["sha256"] != *hash) {
    return Error{Code::kInvalidArgument,
                 "'" + folder + "' was recorded of another file than '" +
                     model + "': its SHA-256 is " +
                     (*description)["model"]["sha256"].get<std::string>()};
  }
  const Expected<std::vector<TensorInput>> inputs =
      ReadInputs(*description, folder);
  if (!inputs) return inputs.error();
  Expected<std::unique_ptr<Network>> loaded = Network::Load(model);
  if (!loaded) return std::move(loaded).error();
  Network& network = **loaded;
  if (Expected<void> set = network.SetInputs(*inputs); !set) {
    return std::move(set).error();
  }
  const Expected<std::unique_ptr<Scratch>> scratch = Scratch::Make();
  if (!scratch) return scratch.error();
  const std::string& here = (*scratch)->path();
  bool has_layers = false;
  if (Expected<void> run = WriteRun(network, here, &has_layers); !run) {
    return std::move(run).error();
  }
  std::vector<std::string> files;
  if (has_layers) {
    for (const std::string& name : ArraysIn(folder + kLayers)) {
      files.push_back(std::string(kLayers).substr(1) + "/" + name);
    }
  }
  for (const std::string& name : ArraysIn(folder)) files.push_back(name);
  FixtureComparison comparison;
  Json differences = Json::array();
  Table table({{"FILE"}, {"DIFFERENT"}});
  for (const std::string& name : files) {
    const Expected<std::string> difference =
        Difference(folder + "/" + name, here + "/" + name);
    if (!difference) return difference.error();
    if (difference->empty()) continue;
    differences.push_back({{"file", name}, {"difference", *difference}});
    table.Add({Printable(name), *difference});
  }
  comparison.same = differences.empty();
  Output& output = comparison.output;
  output.text =
      comparison.same
          ? FormatCount(files.size(), "tensor") + " equal, to the byte\n"
          : table.ToString() + "\n" + std::to_string(differences.size()) +
                " of " + FormatCount(files.size(), "tensor") +
                " differ; layers come before outputs, in the order in which "
                "they run\n";
  if (!has_layers && (*description).value("layers", Json()) != 0) {
    output.text += "this device shows no layers: outputs alone were compared\n";
  }
  output.json = {{"same", comparison.same},
                 {"compared", files.size()},
                 {"differences", std::move(differences)}};
  return comparison;
}

}  // namespace rknnd::client
