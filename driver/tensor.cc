// Names and sizes of the element types and layouts of tensor.h.

#include "driver/tensor.h"

namespace rknnd::driver {

size_t ElementSize(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
    case TensorType::kInt32:
    case TensorType::kUint32:
      return 4;
    case TensorType::kFloat16:
    case TensorType::kBfloat16:
    case TensorType::kInt16:
    case TensorType::kUint16:
      return 2;
    case TensorType::kInt8:
    case TensorType::kUint8:
    case TensorType::kBool:
      return 1;
    case TensorType::kInt64:
      return 8;
    case TensorType::kInt4:
      return 0;
  }
  return 0;
}

const char* TensorTypeName(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
      return "FP32";
    case TensorType::kFloat16:
      return "FP16";
    case TensorType::kInt8:
      return "INT8";
    case TensorType::kUint8:
      return "UINT8";
    case TensorType::kInt16:
      return "INT16";
    case TensorType::kUint16:
      return "UINT16";
    case TensorType::kInt32:
      return "INT32";
    case TensorType::kUint32:
      return "UINT32";
    case TensorType::kInt64:
      return "INT64";
    case TensorType::kBool:
      return "BOOL";
    case TensorType::kInt4:
      return "INT4";
    case TensorType::kBfloat16:
      return "BF16";
  }
  return "UNKNOW";  // the vendor's spelling
}

const char* TensorLayoutName(TensorLayout layout) {
  switch (layout) {
    case TensorLayout::kNchw:
      return "NCHW";
    case TensorLayout::kNhwc:
      return "NHWC";
    case TensorLayout::kNc1hwc2:
      return "NC1HWC2";
    case TensorLayout::kUndefined:
      return "UNDEFINED";
  }
  return "UNKNOW";
}

}  // namespace rknnd::driver
