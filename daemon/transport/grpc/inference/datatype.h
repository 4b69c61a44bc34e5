// The protocol's datatypes, and what the C API calls them.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_DATATYPE_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_DATATYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "driver/tensor.h"

namespace rknnd::transport {

// By the numbers of inference.DataType (ModelConfig).
enum class Datatype : uint8_t {
  kBool = 1,
  kUint8 = 2,
  kUint16 = 3,
  kUint32 = 4,
  kUint64 = 5,
  kInt8 = 6,
  kInt16 = 7,
  kInt32 = 8,
  kInt64 = 9,
  kFp16 = 10,
  kFp32 = 11,
  kFp64 = 12,
  kBytes = 13,
  kBf16 = 14,
};

// "FP32". Nothing: no such datatype.
std::optional<Datatype> ParseDatatype(std::string_view name);
const char* DatatypeName(Datatype datatype);
// Bytes of one element; 0 for kBytes, whose elements have a size each.
size_t DatatypeSize(Datatype datatype);

// Nothing: a device knows none such.
std::optional<driver::TensorType> DeviceType(Datatype datatype);
// Nothing: the protocol has none such (4-bit integers).
std::optional<Datatype> DatatypeOf(driver::TensorType type);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_DATATYPE_H_
