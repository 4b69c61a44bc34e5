#include "client/ctl/models/infer.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "client/ctl/models/network_inputs.h"
#include "client/ctl/models/top_values.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/image/npy.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// As many as fit on a line and tell a classifier's answer.
constexpr size_t kTopCount = 5;

std::vector<size_t> Shape(const rknn_tensor_attr& attr) {
  return {attr.dims,
          attr.dims + std::min<uint32_t>(attr.n_dims, RKNN_MAX_DIMS)};
}

}  // namespace

std::string ComputerOf(Network& network) {
  const Expected<std::span<const rknnd_kernel>> kernels = network.Kernels();
  if (!kernels) return "the NPU";
  const auto any = [&](auto is) {
    return std::any_of(kernels->begin(), kernels->end(),
                       [&is](const rknnd_kernel& layer) {
                         return is(std::string_view(layer.kernel));
                       });
  };
  constexpr std::string_view kEmulated = "emulated NPU";
  if (any([&](std::string_view kernel) { return kernel == kEmulated; })) {
    return "the emulated NPU, a CPU";
  }
  return any([](std::string_view kernel) { return !kernel.empty(); })
             ? "the software NPU, a CPU"
             : "the NPU";
}

Expected<Output> Infer(const InferOptions& options) {
  Expected<std::unique_ptr<Network>> loaded =
      LoadWithInputs(options.model, options.inputs);
  if (!loaded) return std::move(loaded).error();
  Network& network = **loaded;

  std::vector<int64_t> times;
  for (int i = 0; i < options.repeat; ++i) {
    if (Expected<void> run = network.Run(); !run) {
      return std::move(run).error();
    }
    const Expected<int64_t> time = network.RunMicroseconds();
    if (!time) return time.error();
    times.push_back(*time);
  }
  std::sort(times.begin(), times.end());
  const int64_t median = times[times.size() / 2];
  const Expected<std::vector<TensorOutput>> outputs = network.GetOutputs();
  if (!outputs) return outputs.error();

  if (!options.output_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.output_dir, error);
    if (error) {
      return Error{Code::kUnknown, "cannot make folder '" + options.output_dir +
                                       "': " + error.message()};
    }
  }
  Output result;
  result.json["outputs"] = Json::array();
  Table table({{"OUTPUT", Table::Align::kRight},
               {"NAME"},
               {"SHAPE"},
               {"TYPE"},
               {"LARGEST VALUES (index: value)"}});
  for (size_t i = 0; i < outputs->size(); ++i) {
    const rknn_tensor_attr& attr = network.outputs()[i];
    const TensorOutput& output = (*outputs)[i];
    const std::vector<size_t> shape = Shape(attr);
    const std::vector<TopValue> top = TopValues(output.Values(), kTopCount);
    Json top_json = Json::array();
    std::string top_text;
    for (const TopValue& value : top) {
      top_json.push_back({{"index", value.index}, {"value", value.value}});
      if (!top_text.empty()) top_text += "  ";
      top_text += std::to_string(value.index) + ": " + FormatValue(value.value);
    }
    result.json["outputs"].push_back({{"name", attr.name},
                                      {"shape", shape},
                                      {"type", get_type_string(attr.type)},
                                      {"top", std::move(top_json)}});
    table.Add({std::to_string(i), Printable(attr.name), FormatShape(shape),
               get_type_string(attr.type), std::move(top_text)});
    if (!options.output_dir.empty()) {
      const std::string path =
          options.output_dir + "/output_" + std::to_string(i) + ".npy";
      if (Expected<void> written =
              WriteNpy(path, output.type, shape, output.bytes);
          !written) {
        return std::move(written).error();
      }
    }
  }
  result.json["run_us"] = median;

  result.text = table.ToString() + "\n";
  if (times.size() == 1) {
    result.text += "ran in " + FormatMicroseconds(static_cast<double>(median));
  } else {
    result.text +=
        FormatCount(times.size(), "run") + ": median " +
        FormatMicroseconds(static_cast<double>(median)) + ", fastest " +
        FormatMicroseconds(static_cast<double>(times.front())) + ", slowest " +
        FormatMicroseconds(static_cast<double>(times.back()));
  }
  result.text += " on " + ComputerOf(network);
  if (options.inputs.empty()) result.text += ", on noise (no --input)";
  result.text += "\n";
  if (!options.output_dir.empty()) {
    result.text += "outputs are in " + options.output_dir + "\n";
  }
  return result;
}

}  // namespace rknnd::client
