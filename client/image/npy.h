// Arrays in NumPy's file format (.npy, versions 1 to 3), which tensors come in
// and go out as. Any thread. Files are not trusted.

#ifndef CLIENT_IMAGE_NPY_H_
#define CLIENT_IMAGE_NPY_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/values/expected.h"

namespace rknnd::client {

enum class ElementType {
  kFloat32,
  kFloat16,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kBool,
  kFloat64,
  kUint64,
};

[[nodiscard]] size_t ElementSize(ElementType type);
// As NumPy prints it: "float32".
[[nodiscard]] const char* ElementName(ElementType type);

// Row-major, little-endian.
struct Array {
  ElementType type = ElementType::kFloat32;
  std::vector<size_t> shape;
  std::vector<std::byte> bytes;
};

base::Expected<Array> ReadNpy(const std::string& path);

// As ReadNpy, from the file's bytes; `path` is for messages.
base::Expected<Array> ParseNpy(std::span<const std::byte> file,
                               const std::string& path);

// `bytes` are as many as shape and type say.
base::Expected<void> WriteNpy(const std::string& path, ElementType type,
                              std::span<const size_t> shape,
                              std::span<const std::byte> bytes);

}  // namespace rknnd::client

#endif  // CLIENT_IMAGE_NPY_H_
