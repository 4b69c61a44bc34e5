// The one line of a model's options that no user writes: whose weights it
// shares (RKNN_FLAG_SHARE_WEIGHT_MEM). The client library appends it, so that
// it is part of the model's identity; the daemon and its devices read it.

#ifndef BASE_VALUES_MODEL_OPTIONS_H_
#define BASE_VALUES_MODEL_OPTIONS_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/values/expected.h"
#include "base/values/sha256.h"

namespace rknnd::base {

// `options`, then "weights_of: <64 hexadecimal digits>" as the last line.
std::string WithWeightsOf(std::string options, const Sha256Digest& owner);

struct ModelOptionsText {
  std::string_view own;  // all but that line; points into what was split
  std::optional<Sha256Digest> weights_of;
};

// kInvalidArgument where that line says anything but a model's number.
Expected<ModelOptionsText> SplitModelOptions(std::string_view options);

}  // namespace rknnd::base

#endif  // BASE_VALUES_MODEL_OPTIONS_H_
