#include "daemon/core/slow_layers.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "daemon/core/text_table.h"
#include "daemon/core/utf8.h"

namespace rknnd::core {
namespace {

constexpr size_t kNamed = 5;
// Names and shapes are the model's, and may be of any length.
constexpr size_t kLongest = 64;

std::string Short(std::string text) {
  constexpr char kCut[] = "...";
  if (text.size() > kLongest) {
    text.resize(kLongest - (sizeof kCut - 1));
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

// Layers whose weights the file holds have kernels on every CPU.
constexpr char kRemedy[] =
    "store its weights in the model as constants (initializers) instead of "
    "computing them while it runs, or export the model quantised to int8";

}  // namespace

std::string SlowLayersText(const std::string& name,
                           const driver::ModelInfo& model) {
  const std::vector<const driver::LayerInfo*> slow = SlowLayers(model);
  if (slow.empty()) return "";
  std::vector<std::string> named;
  for (size_t i = 0; i < std::min(slow.size(), kNamed); ++i) {
    const driver::LayerInfo& layer = *slow[i];
    named.push_back(
        absl::StrCat("'", Short(layer.name), "' (", Short(layer.type), ", ",
                     Short(layer.input_shape), " -> ",
                     Short(layer.output_shape), ") by ", Short(layer.kernel)));
  }
  if (slow.size() > kNamed) {
    named.push_back(absl::StrCat("and ", slow.size() - kNamed, " more"));
  }
  return absl::StrCat(
      "model '", Short(name), "': no kernel is made on this CPU for ",
      slow.size(),
      " of its layers, which a reference loop computes: each may "
      "take a hundred times as long as other layers; ",
      kRemedy, ". They are: ", absl::StrJoin(named, ", "));
}

}  // namespace rknnd::core
