#include "daemon/core/models/slow_layers.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "daemon/core/terms/text_table.h"
#include "daemon/core/terms/utf8.h"

namespace rknnd::core {
namespace {

constexpr size_t kNamedLayers = 5;
// Names and shapes are the model's, and may be of any length.
constexpr size_t kLongestText = 64;

std::string Short(std::string text) {
  constexpr char kCut[] = "...";
  if (text.size() > kLongestText) {
    text.resize(kLongestText - (sizeof kCut - 1));
    text += kCut;
  }
  return Utf8(Harmless(std::move(text)));
}

// Slow in any shape that the model lists, each layer once.
std::vector<const driver::LayerInfo*> SlowLayers(
    const driver::ModelInfo& model) {
  std::vector<const driver::LayerInfo*> slow;
  std::set<std::pair<absl::string_view, absl::string_view>> seen;
  for (const driver::ProgramInfo& program : model.programs) {
    for (const driver::LayerInfo& layer : program.layers) {
      if (layer.is_slow && seen.emplace(layer.type, layer.name).second) {
        slow.push_back(&layer);
      }
    }
  }
  return slow;
}

// "'conv' (Conv, 1x3x8x8 -> 1x4x8x8) by oneDNN ref:any, ..."
std::string Named(const std::vector<const driver::LayerInfo*>& slow) {
  std::vector<std::string> named;
  for (size_t i = 0; i < std::min(slow.size(), kNamedLayers); ++i) {
    const driver::LayerInfo& layer = *slow[i];
    named.push_back(
        absl::StrCat("'", Short(layer.name), "' (", Short(layer.type), ", ",
                     Short(layer.input_shape), " -> ",
                     Short(layer.output_shape), ") by ", Short(layer.kernel)));
  }
  if (slow.size() > kNamedLayers) {
    named.push_back(absl::StrCat("and ", slow.size() - kNamedLayers, " more"));
  }
  return absl::StrJoin(named, ", ");
}

std::string Found(const std::string& name, size_t count) {
  return absl::StrCat("model '", Short(name),
                      "': no kernel is made on this CPU for ", count,
                      " of its layers, which a reference loop computes: each "
                      "may take a hundred times as long as other layers");
}

}  // namespace

std::string SlowLayersText(const std::string& name,
                           const driver::ModelInfo& model) {
  const std::vector<const driver::LayerInfo*> slow = SlowLayers(model);
  if (slow.empty()) return "";
  return absl::StrCat(Found(name, slow.size()), "; ", kSlowLayersRemedy,
                      ". They are: ", Named(slow));
}

std::string SlowLayersFound(const std::string& name,
                            const driver::ModelInfo& model) {
  const std::vector<const driver::LayerInfo*> slow = SlowLayers(model);
  if (slow.empty()) return "";
  return absl::StrCat(Found(name, slow.size()), ": ", Named(slow));
}

}  // namespace rknnd::core
