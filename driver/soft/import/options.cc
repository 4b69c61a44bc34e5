#include "driver/soft/import/options.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/model_options.h"
#include "base/values/near_name.h"
#include "base/values/printable.h"

namespace rknnd::soft {
namespace {

constexpr char kPrefix[] = "rknn.";
// The vendor's custom string has room for 1024 bytes with its final zero.
constexpr size_t kMaxCustomString = 1023;
// MODEL.yml is a page of text; a parser is not to be fed a novel.
constexpr size_t kMaxYaml = 1 << 20;

// Of all values "rknn.*". The parser takes seconds for megabytes, and loads of
// other clients wait for it.
constexpr size_t kMaxMetadata = size_t{64} << 10;

// YAML's references make a short text a long walk, or an endless one. The
// longest list of shapes, of several inputs, is walked to its end.
constexpr int kMaxVisits = 50000;

// More than images have.
constexpr size_t kMaxChannels = 4096;
constexpr size_t kMaxInputs = 64;

using Yaml = std::map<std::string, YAML::Node>;

// What is read here, then what a converter would do something about and a
// device that computes the ONNX file itself does not: the parameters of the
// vendor's rknn.config, and what else rknn_convert's file says.
constexpr auto kKnown = std::to_array<std::string_view>(
    {"accuracy", "custom_string", "dynamic_input", "mean_values",
     "rknn_batch_size", "std_values", "target_platform", "weights_of",
     // rknn.config
     "auto_hybrid_cos_thresh", "auto_hybrid_euc_thresh", "compress_weight",
     "disable_rules", "enable_flash_attention", "float_dtype", "inputs_yuv_fmt",
     "model_pruning", "op_target", "optimization_level", "quant_img_RGB2BGR",
     "quantize_weight", "quantized_algorithm", "quantized_dtype",
     "quantized_hybrid_level", "quantized_method", "remove_reshape",
     "remove_weight", "single_core_mode", "sparse_infer",
     // rknn_convert
     "caffemodel_file_path", "darknet_cfg_path", "darknet_weights_path",
     "dataset", "input_size_list", "inputs", "model_file_path", "name",
     "outputs", "outputs_nodes", "platform", "prototxt_file_path", "quantize"});
// Of MODEL.yml: mappings whose keys are options.
constexpr auto kSections = std::to_array<std::string_view>(
    {"build", "config", "configs", "models", "subgraphs"});

struct TooLong : std::runtime_error {
  TooLong() : std::runtime_error("too many entries") {}
};

void Visit(int& visits) {
  if (++visits > kMaxVisits) throw TooLong();
}

// "model 'm': rknn.mean_value is no model option; did you mean 'mean_values'?
// (docs/model-options.md lists them)"
absl::Status CheckName(const std::string& model, const std::string& where,
                       const std::string& name) {
  if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) {
    return absl::OkStatus();
  }
  constexpr size_t kShown = 80;
  return absl::InvalidArgumentError(absl::StrCat(
      "model '", model, "': '", base::Printable(name.substr(0, kShown)),
      "' in ", where, " is no model option", base::DidYouMean(name, kKnown),
      " (docs/model-options.md lists them)"));
}

bool IsSection(const std::string& name) {
  return std::find(kSections.begin(), kSections.end(), name) != kSections.end();
}

// rknn_convert's file: a mapping whose keys stand at the top or in sections.
absl::Status Collect(const YAML::Node& node, const std::string& model,
                     int depth, int& visits, Yaml& out) {
  Visit(visits);
  if (depth > 4) return absl::OkStatus();
  if (node.IsSequence()) {
    for (const auto& item : node) {
      RKNND_RETURN_IF_ERROR(Collect(item, model, depth + 1, visits, out));
    }
  }
  if (!node.IsMap()) return absl::OkStatus();
  for (const auto& entry : node) {
    Visit(visits);
    if (!entry.first.IsScalar()) continue;
    const std::string& name = entry.first.Scalar();
    if (IsSection(name)) {
      RKNND_RETURN_IF_ERROR(
          Collect(entry.second, model, depth + 1, visits, out));
      continue;
    }
    RKNND_RETURN_IF_ERROR(CheckName(model, "MODEL.yml", name));
    out.emplace(name, entry.second);
  }
  return absl::OkStatus();
}

bool IsOff(const YAML::Node& node) {
  if (node.IsNull()) return true;
  if (node.IsScalar()) {
    const std::string& text = node.Scalar();
    return text.empty() || absl::EqualsIgnoreCase(text, "false") ||
           absl::EqualsIgnoreCase(text, "none") || text == "0";
  }
  return node.size() == 0;
}

absl::Status Misfit(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("option '", name, "' ", what,
                   ": give a list for each input, with a number for each "
                   "channel (docs/model-options.md)"));
}

absl::Status Misfit(const std::string& model, const std::string& name,
                    const std::string& what) {
  return base::Annotate(Misfit(name, what),
                        absl::StrCat("model '", model, "'"));
}

absl::StatusOr<std::vector<float>> Numbers(const YAML::Node& node,
                                           const std::string& model,
                                           const std::string& name,
                                           int& visits) {
  std::vector<float> numbers;
  if (node.IsNull()) return numbers;
  if (!node.IsSequence()) return Misfit(model, name, "is not a list of lists");
  for (const auto& item : node) {
    Visit(visits);
    float value = 0.0F;
    if (!item.IsScalar() || !absl::SimpleAtof(item.Scalar(), &value) ||
        !std::isfinite(value)) {
      return Misfit(model, name, "holds something that is no number");
    }
    if (numbers.size() == kMaxChannels) {
      return Misfit(model, name,
                    absl::StrCat("has more than ", kMaxChannels,
                                 " numbers for one input"));
    }
    numbers.push_back(value);
  }
  return numbers;
}

// A list of lists, or of a network with one input the list itself.
absl::StatusOr<std::vector<std::vector<float>>> Lists(const YAML::Node& node,
                                                      const std::string& model,
                                                      const std::string& name,
                                                      int& visits) {
  std::vector<std::vector<float>> lists;
  if (IsOff(node)) return lists;
  if (!node.IsSequence()) return Misfit(model, name, "is not a list");
  if (node[0].IsScalar() && !node[0].IsNull()) {
    RKNND_ASSIGN_OR_RETURN(std::vector<float> list,
                           Numbers(node, model, name, visits));
    lists.push_back(std::move(list));
    return lists;
  }
  for (const auto& item : node) {
    Visit(visits);
    if (lists.size() == kMaxInputs) {
      return Misfit(model, name,
                    absl::StrCat("has more than ", kMaxInputs, " lists"));
    }
    RKNND_ASSIGN_OR_RETURN(std::vector<float> list,
                           Numbers(item, model, name, visits));
    lists.push_back(std::move(list));
  }
  return lists;
}

absl::Status NoShapes(const std::string& model, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "model '", model, "': option 'dynamic_input'", what,
      ": give a list of rows, each a list with one shape for each input, as "
      "[[[1,3,224,224]],[[1,3,192,192]]] (docs/model-options.md)"));
}

absl::StatusOr<std::vector<InputShapes>> Rows(const YAML::Node& node,
                                              const std::string& model,
                                              int& visits) {
  std::vector<InputShapes> rows;
  if (IsOff(node)) return rows;
  if (!node.IsSequence()) return NoShapes(model, " is not a list");
  for (const auto& row : node) {
    Visit(visits);
    const std::string at = absl::StrCat(", row ", rows.size());
    if (!row.IsSequence() || row.size() == 0) {
      return NoShapes(model, absl::StrCat(at, " is not a list of shapes"));
    }
    InputShapes& shapes = rows.emplace_back();
    for (const auto& item : row) {
      Visit(visits);
      const std::string input = absl::StrCat(at, ", input ", shapes.size());
      if (!item.IsSequence()) {
        return NoShapes(model, absl::StrCat(input, " is not a shape"));
      }
      Shape& shape = shapes.emplace_back();
      for (const auto& dim : item) {
        Visit(visits);
        int64_t extent = 0;
        if (!dim.IsScalar() || !absl::SimpleAtoi(dim.Scalar(), &extent)) {
          return NoShapes(model,
                          absl::StrCat(input, ", dimension ", shape.size(),
                                       " is not a whole number"));
        }
        shape.push_back(extent);
      }
    }
  }
  return rows;
}

absl::StatusOr<uint32_t> BatchSize(const YAML::Node& node,
                                   const std::string& model) {
  const bool unsaid =
      node.IsNull() || (node.IsScalar() && node.Scalar() != "0" && IsOff(node));
  if (unsaid) return 1;
  uint32_t batch = 0;
  if (!node.IsScalar() || !absl::SimpleAtoi(node.Scalar(), &batch) ||
      batch == 0 || batch > kMaxBatch) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", model, "': option 'rknn_batch_size' is '",
                     node.IsScalar() ? node.Scalar() : "a list",
                     "', must be a whole number from 1 to ", kMaxBatch));
  }
  return batch;
}

absl::StatusOr<Accuracy> ReadAccuracy(const YAML::Node& node,
                                      const std::string& model) {
  if (IsOff(node)) return Accuracy::kOff;
  if (node.IsScalar() && node.Scalar() == "golden") return Accuracy::kGolden;
  if (node.IsScalar() && node.Scalar() == "single") return Accuracy::kSingle;
  return absl::InvalidArgumentError(
      absl::StrCat("model '", model, "': option 'accuracy' is '",
                   node.IsScalar() ? node.Scalar() : "a list",
                   "', must be golden or single: rknnctl accuracy sets it"));
}

// `at` is the option that is being read.
absl::StatusOr<ModelOptions> Interpret(const Yaml& yaml,
                                       const std::string& model,
                                       std::string& at) {
  ModelOptions options;
  int visits = 0;
  for (const auto& [name, node] : yaml) {
    at = name;
    if (name == "custom_string") {
      if (!node.IsScalar()) continue;
      options.custom_string = node.Scalar();
      if (options.custom_string.size() > kMaxCustomString) {
        return absl::InvalidArgumentError(
            absl::StrCat("model '", model, "': option 'custom_string' has ",
                         options.custom_string.size(), " bytes, at most ",
                         kMaxCustomString, " fit"));
      }
    } else if (name == "target_platform") {
      if (node.IsScalar()) options.target_platform = node.Scalar();
    } else if (name == "mean_values") {
      RKNND_ASSIGN_OR_RETURN(options.mean_values,
                             Lists(node, model, name, visits));
    } else if (name == "std_values") {
      RKNND_ASSIGN_OR_RETURN(options.std_values,
                             Lists(node, model, name, visits));
    } else if (name == "rknn_batch_size") {
      RKNND_ASSIGN_OR_RETURN(options.rknn_batch_size, BatchSize(node, model));
    } else if (name == "dynamic_input") {
      RKNND_ASSIGN_OR_RETURN(options.dynamic_input, Rows(node, model, visits));
    } else if (name == "accuracy") {
      RKNND_ASSIGN_OR_RETURN(options.accuracy, ReadAccuracy(node, model));
    } else if (name == "weights_of") {
      return absl::InvalidArgumentError(absl::StrCat(
          "model '", model,
          "': option 'weights_of' is written by rknn_init "
          "(RKNN_FLAG_SHARE_WEIGHT_MEM) behind all others: leave it out"));
    }
  }
  if (options.accuracy != Accuracy::kOff) {
    options.custom_string = options.accuracy == Accuracy::kGolden
                                ? "accuracy: golden"
                                : "accuracy: single";
  }
  return options;
}

}  // namespace

std::span<const std::string_view> KnownOptions() { return kKnown; }

absl::StatusOr<ModelOptions> ReadOptions(
    const std::map<std::string, std::string>& metadata, const std::string& yaml,
    const std::string& model) {
  if (yaml.size() > kMaxYaml) {
    return absl::InvalidArgumentError(
        absl::StrCat("options of model '", model, "' have ", yaml.size(),
                     " bytes: MODEL.yml is a short text"));
  }
  size_t metadata_bytes = 0;
  for (const auto& [key, value] : metadata) {
    if (absl::StartsWith(key, kPrefix)) metadata_bytes += value.size();
  }
  if (metadata_bytes > kMaxMetadata) {
    return absl::InvalidArgumentError(
        absl::StrCat("options of model '", model, "' in its metadata have ",
                     metadata_bytes, " bytes, at most ", kMaxMetadata));
  }
  RKNND_ASSIGN_OR_RETURN(const base::ModelOptionsText text,
                         base::ToStatusOr(base::SplitModelOptions(yaml)));
  Yaml collected;
  // yaml-cpp throws; so does our own limit above.
  std::string source = "MODEL.yml";
  try {
    for (const auto& [key, value] : metadata) {
      if (!absl::StartsWith(key, kPrefix)) continue;
      source = key;
      std::string name = key.substr(sizeof(kPrefix) - 1);
      RKNND_RETURN_IF_ERROR(CheckName(model, "the file's metadata", name));
      // Free text, not YAML: it may hold a colon.
      collected[name] =
          name == "custom_string" ? YAML::Node(value) : YAML::Load(value);
    }
    source = "MODEL.yml";
    if (!text.own.empty()) {
      Yaml below;
      int visits = 0;
      RKNND_RETURN_IF_ERROR(
          Collect(YAML::Load(std::string(text.own)), model, 0, visits, below));
      collected.merge(below);
    }
    RKNND_ASSIGN_OR_RETURN(ModelOptions options,
                           Interpret(collected, model, source));
    options.custom = text.custom;
    return options;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("options of model '", model, "' in '", source,
                     "' cannot be read: ", error.what()));
  }
}

absl::Status ApplyOptions(const ModelOptions& options, Graph& graph) {
  for (const auto& [name, lists] :
       {std::pair("mean_values", &options.mean_values),
        std::pair("std_values", &options.std_values)}) {
    if (lists->size() > graph.inputs.size()) {
      return Misfit(name,
                    absl::StrCat("has ", lists->size(), " lists, the model ",
                                 graph.inputs.size(), " inputs"));
    }
    for (size_t i = 0; i < lists->size(); ++i) {
      const std::vector<float>& list = (*lists)[i];
      if (list.empty()) continue;
      GraphPort& port = graph.inputs[i];
      const Value& value = graph.value(port.value);
      if (value.type != DataType::kFloat32 && !port.quantization.has_value()) {
        return Misfit(name, absl::StrCat("is for input '", port.name,
                                         "', which holds integers"));
      }
      const Shape& shape = *value.shape;
      const bool is_mean = lists == &options.mean_values;
      const float neutral = is_mean ? 0.0F : 1.0F;
      if (shape.size() != 4 && std::count(list.begin(), list.end(), neutral) ==
                                   static_cast<std::ptrdiff_t>(list.size())) {
        continue;  // no image, and nothing to do
      }
      const int64_t channels = shape.size() == 4 ? shape[1] : 0;
      if (channels == 0 ||
          (static_cast<int64_t>(list.size()) != channels && list.size() != 1)) {
        return Misfit(name,
                      absl::StrCat("has ", list.size(), " numbers for input '",
                                   port.name, "' of shape ", ShapeText(shape),
                                   ": they are those of axis 1 of an image"));
      }
      const auto count = static_cast<size_t>(channels);
      port.mean.resize(count, 0.0F);
      port.deviation.resize(count, 1.0F);
      for (size_t c = 0; c < count; ++c) {
        const float number = list[list.size() == 1 ? 0 : c];
        if (!is_mean && number == 0.0F) {
          return Misfit(name, "divides by 0");
        }
        (is_mean ? port.mean : port.deviation)[c] = number;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
