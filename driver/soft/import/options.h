// Model options: what the vendor's converter would have baked into a model
// (docs/model-options.md). Read from the ONNX file's metadata_props
// `rknn.<name>`, else from the text of the MODEL.yml beside it.

#ifndef DRIVER_SOFT_IMPORT_OPTIONS_H_
#define DRIVER_SOFT_IMPORT_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/values/model_options.h"
#include "driver/soft/graph/graph.h"

namespace rknnd::soft {

// One shape for each input.
using InputShapes = std::vector<Shape>;

// Images that one run takes, far more than any board computes in a second.
inline constexpr uint32_t kMaxBatch = 1024;

// Networks for comparison, in place of the model (accuracy/layers_apart.h).
enum class Accuracy : uint8_t { kOff, kGolden, kSingle };

struct ModelOptions {
  std::string custom_string;
  std::string target_platform;
  // One list for each input, one number for each of its channels; a list of an
  // input may be empty. Inputs past the last have none.
  std::vector<std::vector<float>> mean_values, std_values;
  // The rows of shapes that the inputs may have; none: those of the file. Any
  // numbers: import/shapes.h checks them.
  std::vector<InputShapes> dynamic_input;
  uint32_t rknn_batch_size = 1;
  // With one of them the model's custom string says which, so that who asked
  // for it can tell a device that has done so.
  Accuracy accuracy = Accuracy::kOff;
  // Operators that a program computes (custom/custom_parts.h).
  std::optional<base::CustomOperatorsOption> custom = {};
};

// `metadata` wins over `yaml`, whose last line may say whose weights are shared
// (base/values/model_options.h). remove_weight is for the converter: what a
// file lacks shows.
absl::StatusOr<ModelOptions> ReadOptions(
    const std::map<std::string, std::string>& metadata, const std::string& yaml,
    const std::string& model);

// The names of all options, also those that a converter alone heeds.
std::span<const std::string_view> KnownOptions();

// Hands means and deviations to the inputs they are for. INVALID_ARGUMENT
// where their numbers do not fit; the caller names the model.
absl::Status ApplyOptions(const ModelOptions& options, Graph& graph);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_OPTIONS_H_
