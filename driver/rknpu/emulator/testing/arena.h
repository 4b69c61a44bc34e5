// Memory for tasks that tests make: one range, with maps and coefficients put
// into it as the NPU lays them out.

#ifndef DRIVER_RKNPU_EMULATOR_TESTING_ARENA_H_
#define DRIVER_RKNPU_EMULATOR_TESTING_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "driver/rknpu/emulator/memory.h"

namespace rknnd::rknpu::testing {

// Of one image: value of channel c, line y, pixel x.
struct Map {
  Map(uint32_t c, uint32_t h, uint32_t w)
      : channels(c), height(h), width(w), values(size_t{c} * h * w) {}
  int8_t& At(uint32_t c, uint32_t y, uint32_t x) {
    return values[(size_t{c} * height + y) * width + x];
  }
  [[nodiscard]] int8_t At(uint32_t c, uint32_t y, uint32_t x) const {
    return values[(size_t{c} * height + y) * width + x];
  }
  void Fill(std::mt19937& random, int low = -128, int high = 127) {
    std::uniform_int_distribution<int> any(low, high);
    for (int8_t& value : values) value = static_cast<int8_t>(any(random));
  }
  uint32_t channels, height, width;
  std::vector<int8_t> values;
};

class Arena {
 public:
  static constexpr uint32_t kBase = 0x00100000;

  explicit Arena(size_t size) : bytes_(size) {
    if (!memory_.Attach({kBase, bytes_, true}).ok()) std::abort();
  }
  Memory& memory() { return memory_; }
  std::vector<std::byte>& bytes() { return bytes_; }
  std::byte* At(uint32_t address) { return bytes_.data() + (address - kBase); }

  template <class T>
  void Put(uint32_t address, std::span<const T> values) {
    std::memcpy(At(address), values.data(), values.size_bytes());
  }
  // Atoms, surfaces rounded up to four pixels.
  void PutMap(uint32_t address, const Map& map) {
    ForEach(address, map,
            [&](std::byte* at, uint32_t c, uint32_t y, uint32_t x) {
              *at = static_cast<std::byte>(map.At(c, y, x));
            });
  }
  Map GetMap(uint32_t address, uint32_t c, uint32_t h, uint32_t w) {
    Map map(c, h, w);
    ForEach(address, map,
            [&](std::byte* at, uint32_t k, uint32_t y, uint32_t x) {
              map.At(k, y, x) = static_cast<int8_t>(*at);
            });
    return map;
  }

 private:
  template <class Visit>
  void ForEach(uint32_t address, const Map& map, Visit visit) {
    const uint32_t pixels = map.height * map.width;
    const uint32_t surface = pixels == 1 ? 1 : (pixels + 3) / 4 * 4;
    for (uint32_t c = 0; c < map.channels; ++c) {
      for (uint32_t y = 0; y < map.height; ++y) {
        for (uint32_t x = 0; x < map.width; ++x) {
          visit(At(address + (c / 16 * surface + y * map.width + x) * 16 +
                   c % 16),
                c, y, x);
        }
      }
    }
  }

  std::vector<std::byte> bytes_;
  Memory memory_;
};

}  // namespace rknnd::rknpu::testing

#endif  // DRIVER_RKNPU_EMULATOR_TESTING_ARENA_H_
