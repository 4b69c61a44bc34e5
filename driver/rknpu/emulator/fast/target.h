// Where a task of the fast engine writes, and where its operands come from: in
// memory of this process, looked up once.

#ifndef DRIVER_RKNPU_EMULATOR_FAST_TARGET_H_
#define DRIVER_RKNPU_EMULATOR_FAST_TARGET_H_

#include <cstddef>
#include <cstdint>

#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/fast/fast_engine.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu::fast {

struct FastEngine::Target {
  std::byte* out = nullptr;
  const std::byte* operand[2] = {nullptr, nullptr};

  // For surfaces, lines and pixels of what comes to the writer. False: not for
  // the fast engine. That is so as well where the order of accesses would
  // matter: places that are written twice, or operands that are written before
  // they are read.
  bool Find(const OutputSpec& spec, uint32_t surfaces, uint32_t height,
            uint32_t width, const Access& access);

  // Of surface s, line y and pixel x.
  static int64_t OffsetOf(const OutputSpec& spec, uint32_t s, uint32_t y,
                          uint32_t x);
  [[nodiscard]] const std::byte* OperandsOf(const ElementWiseSpec& ew,
                                            uint32_t s, uint32_t y,
                                            uint32_t x) const;
};

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_FAST_TARGET_H_
