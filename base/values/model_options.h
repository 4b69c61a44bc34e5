// The lines of a model's options that no user writes: whose weights it shares
// (RKNN_FLAG_SHARE_WEIGHT_MEM), and which of its operators a program computes
// itself (rknn_register_custom_ops). The client library appends them in this
// order, so that they are part of the model's identity; the daemon and its
// devices read them.

#ifndef BASE_VALUES_MODEL_OPTIONS_H_
#define BASE_VALUES_MODEL_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/values/expected.h"
#include "base/values/sha256.h"

namespace rknnd::base {

// `options`, then "weights_of: <64 hexadecimal digits>" as the last line.
std::string WithWeightsOf(std::string options, const Sha256Digest& owner);

// Operators of these types, and all that the device does not know, are the
// program's. They cut the model into parts; a part is loaded like a model.
struct CustomOperatorsOption {
  std::vector<std::string> types;  // without commas and line ends
  std::optional<uint32_t> part;  // nothing: the whole, which says what they are
};
// `options`, then that as the last line.
std::string WithCustomOperators(std::string options,
                                const CustomOperatorsOption& custom);

struct ModelOptionsText {
  std::string_view own;  // all but those lines; points into what was split
  std::optional<Sha256Digest> weights_of;
  std::optional<CustomOperatorsOption> custom;
};

// kInvalidArgument where such a line says anything else.
Expected<ModelOptionsText> SplitModelOptions(std::string_view options);

}  // namespace rknnd::base

#endif  // BASE_VALUES_MODEL_OPTIONS_H_
