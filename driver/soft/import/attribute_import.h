// AttributeProto -> Attribute, and the constants that attributes hold.

#ifndef DRIVER_SOFT_IMPORT_ATTRIBUTE_IMPORT_H_
#define DRIVER_SOFT_IMPORT_ATTRIBUTE_IMPORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"

namespace onnx {
class AttributeProto;
}  // namespace onnx

namespace rknnd::soft {

// `node` is named in errors. A graph (If, Loop, Scan) is UNIMPLEMENTED.
absl::StatusOr<Attribute> ImportAttribute(const onnx::AttributeProto& attribute,
                                          const Node& node);

// What a Constant node stands for, in any of its forms.
absl::StatusOr<std::shared_ptr<const Constant>> ConstantOf(const Node& node);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_ATTRIBUTE_IMPORT_H_
