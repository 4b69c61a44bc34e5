// A compiled file that nothing but the stand-in for the vendor's library can
// run: by its container a version that is not known here, with an ONNX model
// inside, by which the stand-in answers. Linked into tests, and into the
// stand-in.

#ifndef DRIVER_RKNNRT_TESTING_WRAPPED_MODEL_H_
#define DRIVER_RKNNRT_TESTING_WRAPPED_MODEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace rknnd::rknnrt::testing {

inline constexpr char kWrapMagic[16] = "standin's model";
inline constexpr uint64_t kWrapVersion = 99;  // of the container
inline constexpr size_t kWrapHeader = 64;

inline std::vector<std::byte> Wrap(std::span<const std::byte> onnx) {
  std::vector<std::byte> file(kWrapHeader + onnx.size());
  std::memcpy(file.data(), "RKNN", 4);
  std::memcpy(file.data() + 8, &kWrapVersion, sizeof kWrapVersion);
  std::memcpy(file.data() + 32, kWrapMagic, sizeof kWrapMagic);
  std::copy(onnx.begin(), onnx.end(), file.begin() + kWrapHeader);
  return file;
}

// Empty: it is no such file.
inline std::vector<char> Unwrap(const char* file, size_t size) {
  if (size < kWrapHeader ||
      std::memcmp(file + 32, kWrapMagic, sizeof kWrapMagic) != 0) {
    return {};
  }
  return {file + kWrapHeader, file + size};
}

}  // namespace rknnd::rknnrt::testing

#endif  // DRIVER_RKNNRT_TESTING_WRAPPED_MODEL_H_
