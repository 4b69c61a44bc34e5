// Tensors as the C API shows them: sizes of element types, names for messages,
// attributes as structs, and the one conversion that is the library's own: the
// device's output into what rknn_outputs_get was asked for.

#ifndef CLIENT_RKNNRT_TENSOR_H_
#define CLIENT_RKNNRT_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/values/expected.h"
#include "client/include/rknn_api.h"
#include "client/target/types.h"

namespace rknnd::client {

// The number in an enumeration that a program filled. It may be any: loading it
// as the enumeration would not be defined.
template <class Enum>
uint32_t RawNumber(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(uint32_t));
  uint32_t number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// Bytes of one element; 0 for INT4, two of which share a byte, and for numbers
// that are no type.
size_t ElementSize(uint32_t type);

// "RKNN_TENSOR_UINT8"
const char* TypeConstant(uint32_t type);

// "1x3x240x320"
std::string DimsText(const TensorAttr& attr);

// "output index 7 does not exist: the model has 2"
std::string NoSuchTensor(const char* what, uint32_t index, size_t count);

// All fields but pass_through and h_stride, which are the program's.
void FillAttr(const TensorAttr& from, uint32_t index, rknn_tensor_attr* to);

// Which type the device writes an output in that the library hands out itself:
// float32 for float models, whose half precision is made here, else the
// model's own.
uint32_t InternalOutputType(const TensorAttr& attr);

// Bytes that rknn_outputs_get gives for an output. kUnimplemented for types
// whose elements have no whole number of bytes.
base::Expected<uint64_t> OutputSize(const TensorAttr& attr, bool want_float);

// Converts `from`, elements of InternalOutputType(attr), to float32 or to the
// type of `attr`. `to` has OutputSize() bytes.
void ConvertOutput(const TensorAttr& attr, bool want_float,
                   std::span<const std::byte> from, std::span<std::byte> to);

// Whether `size` bytes are enough where `needed` are for `type`; the message
// says what is wrong and which type would fit.
base::Expected<void> CheckInputSize(const TensorAttr& attr, uint32_t type,
                                    uint64_t size, uint64_t needed);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_TENSOR_H_
