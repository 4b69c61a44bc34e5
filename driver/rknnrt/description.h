// What a worker tells of a model that it has loaded, checked and as the daemon
// has it: attributes of its tensors by shape, its memory, and which bytes a
// program may bind. What the worker wrote is hostile.

#ifndef DRIVER_RKNNRT_DESCRIPTION_H_
#define DRIVER_RKNNRT_DESCRIPTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "driver/model.h"
#include "driver/model_info.h"
#include "driver/rknnrt/protocol.h"

namespace rknnd::rknnrt {

struct Description {
  driver::ModelInfo info;
  bool internal_outside = false;  // jobs bring internal memory
  std::string library_version, driver_version;
};

// DATA_LOSS: which part of it cannot be.
absl::StatusOr<Description> Describe(std::span<const std::byte> payload,
                                     const std::string& name);

// A port's two attributes.
struct PortAttributes {
  const driver::TensorAttr* usual = nullptr;
  const driver::TensorAttr* native = nullptr;
};
PortAttributes AttributesOf(const driver::ProgramInfo& program,
                            driver::Direction direction, uint32_t index);
// The bytes that memory in `format` has, or what of it the library cannot take,
// as far as that is known before it is asked.
absl::StatusOr<uint64_t> BytesOf(const PortAttributes& port,
                                 const driver::TensorFormat& format);
// The library is told of it by the native attribute.
bool IsNative(const PortAttributes& port, const driver::TensorFormat& format);

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_DESCRIPTION_H_
