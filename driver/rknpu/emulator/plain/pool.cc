// Maximum and average over windows, an atom at a time.

#include <algorithm>
#include <array>
#include <cstring>

#include "driver/rknpu/emulator/plain/plain_engine.h"

namespace rknnd::rknpu {
namespace {

constexpr uint16_t kSource = 0x701c, kTarget = 0x6070;
// What a maximum meets beyond the border.
constexpr int8_t kLeast = -128;

using Atom = std::array<int64_t, kAtom>;

// The sum or the maximum of the window of output pixel (x, y).
bool Window(const PoolSpec& spec, uint32_t s, uint32_t y, uint32_t x,
            Access& access, Atom& result) {
  result.fill(spec.average ? 0 : kLeast);
  for (uint32_t j = 0; j < spec.kernel_height; ++j) {
    const int64_t line = int64_t{y} * spec.stride_y + j - spec.pad_top;
    for (uint32_t i = 0; i < spec.kernel_width; ++i) {
      const int64_t pixel = int64_t{x} * spec.stride_x + i - spec.pad_left;
      const bool inside =
          line >= 0 && line < spec.height && pixel >= 0 && pixel < spec.width;
      int8_t values[kAtom];
      std::memset(values, spec.average ? spec.pad : kLeast, kAtom);
      if (inside) {
        const int64_t offset =
            s * spec.source_surface + line * spec.source_line + pixel * kAtom;
        const std::byte* const at = access.Read(
            spec.source + static_cast<uint64_t>(offset), kAtom, kSource);
        if (at == nullptr) return false;
        std::memcpy(values, at, kAtom);
      }
      for (uint32_t k = 0; k < kAtom; ++k) {
        result[k] = spec.average ? result[k] + values[k]
                                 : std::max<int64_t>(result[k], values[k]);
      }
    }
  }
  return true;
}

int64_t Average(const PoolSpec& spec, int64_t sum) {
  const int64_t v = sum * spec.reciprocal_width * spec.reciprocal_height;
  return (v + (int64_t{1} << 31)) >> 32;
}

bool Pixel(const PoolSpec& spec, uint32_t s, uint32_t y, uint32_t x,
           Access& access) {
  Atom result;
  if (!Window(spec, s, y, x, access, result)) return false;
  const int64_t offset =
      s * spec.target_surface + y * spec.target_line + int64_t{x} * kAtom;
  std::byte* const to =
      access.Write(spec.target + static_cast<uint64_t>(offset), kAtom, kTarget);
  if (to == nullptr) return false;
  for (uint32_t k = 0; k < kAtom; ++k) {
    const int64_t v = spec.average ? Average(spec, result[k]) : result[k];
    to[k] = static_cast<std::byte>(std::clamp<int64_t>(v, -128, 127));
  }
  return true;
}

}  // namespace

void RunPlainPool(const PoolSpec& pool, Access& access) {
  for (uint32_t s = 0; s < pool.surfaces; ++s) {
    for (uint32_t y = 0; y < pool.out_height; ++y) {
      for (uint32_t x = 0; x < pool.out_width; ++x) {
        if (!access.GoesOn() || !Pixel(pool, s, y, x, access)) return;
      }
    }
  }
}

}  // namespace rknnd::rknpu
