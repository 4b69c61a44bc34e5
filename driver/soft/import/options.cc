#include "driver/soft/import/options.h"

#include <yaml-cpp/yaml.h>

#include <exception>
#include <stdexcept>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

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

// YAML's references make a short text a long walk, or an endless one.
constexpr int kMaxVisits = 10000;

using Yaml = std::map<std::string, YAML::Node>;

struct TooLong : std::runtime_error {
  TooLong() : std::runtime_error("too many entries") {}
};

void Visit(int& visits) {
  if (++visits > kMaxVisits) throw TooLong();
}

// rknn_convert's file: a mapping whose keys of interest stand at the top or
// under a section ("build", "config", "models"...).
void Collect(const YAML::Node& node, int depth, int& visits, Yaml& out) {
  Visit(visits);
  if (depth > 4) return;
  if (node.IsSequence()) {
    for (const auto& item : node) Collect(item, depth + 1, visits, out);
  }
  if (!node.IsMap()) return;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) continue;
    out.emplace(entry.first.Scalar(), entry.second);
    if (entry.second.IsMap() || entry.second.IsSequence()) {
      Collect(entry.second, depth + 1, visits, out);
    }
  }
}

bool AllEqual(const YAML::Node& node, double wanted, int& visits) {
  Visit(visits);
  if (node.IsSequence()) {
    for (const auto& item : node) {
      if (!AllEqual(item, wanted, visits)) return false;
    }
    return true;
  }
  if (node.IsMap()) {
    for (const auto& entry : node) {
      if (!AllEqual(entry.second, wanted, visits)) return false;
    }
    return true;
  }
  double value = 0;
  return node.IsNull() ||
         (node.IsScalar() && absl::SimpleAtod(node.Scalar(), &value) &&
          value == wanted);
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

absl::Status Unsupported(const std::string& model, const std::string& name) {
  return absl::UnimplementedError(absl::StrCat(
      "model '", model, "': option '", name,
      "' changes the answers and the software NPU does not have it: leave it "
      "out and prepare the input in the application"));
}

absl::StatusOr<ModelOptions> Interpret(const Yaml& yaml,
                                       const std::string& model) {
  ModelOptions options;
  int visits = 0;
  for (const auto& [name, node] : yaml) {
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
      if (!AllEqual(node, 0.0, visits)) return Unsupported(model, name);
    } else if (name == "std_values") {
      if (!AllEqual(node, 1.0, visits)) return Unsupported(model, name);
    } else if (name == "rknn_batch_size") {
      if (!IsOff(node) && !AllEqual(node, 1.0, visits)) {
        return Unsupported(model, name);
      }
    } else if (name == "dynamic_input" || name == "remove_weight") {
      if (!IsOff(node)) return Unsupported(model, name);
    }
  }
  return options;
}

}  // namespace

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
  Yaml collected;
  // yaml-cpp throws; so does our own limit above.
  std::string source = "MODEL.yml";
  try {
    for (const auto& [key, value] : metadata) {
      if (!absl::StartsWith(key, kPrefix)) continue;
      source = key;
      std::string name = key.substr(sizeof(kPrefix) - 1);
      // Free text, not YAML: it may hold a colon.
      collected[name] =
          name == "custom_string" ? YAML::Node(value) : YAML::Load(value);
    }
    source = "MODEL.yml";
    if (!yaml.empty()) {
      Yaml below;
      int visits = 0;
      Collect(YAML::Load(yaml), 0, visits, below);
      collected.merge(below);
    }
    return Interpret(collected, model);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("options of model '", model, "' in '", source,
                     "' cannot be read: ", error.what()));
  }
}

}  // namespace rknnd::soft
