// A model's own functions, by the operator that they are called as.
//
// Thread: the loading thread. Reads untrusted bytes.

#ifndef DRIVER_SOFT_IMPORT_FUNCTIONS_H_
#define DRIVER_SOFT_IMPORT_FUNCTIONS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace onnx {
class AttributeProto;
class FunctionProto;
class ModelProto;
}  // namespace onnx

namespace rknnd::soft {

// Functions that call functions, at most.
inline constexpr size_t kMaxCalls = 64;

class Functions {
 public:
  // Of a model that outlives this. INVALID_ARGUMENT where two have one name.
  static absl::StatusOr<Functions> Of(const onnx::ModelProto& model);

  // Null where there is none.
  [[nodiscard]] const onnx::FunctionProto* Find(const std::string& domain,
                                                const std::string& type) const;

 private:
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*>
      functions_;
};

// Attributes that a call may leave out, with their values: what files of
// ir_version 9 and later have, and this build's onnx.proto does not.
absl::StatusOr<std::vector<onnx::AttributeProto>> DefaultsOf(
    const onnx::FunctionProto& function);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_FUNCTIONS_H_
