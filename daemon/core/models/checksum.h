// Finds damage: bytes that a disk, a cut or a mistake has changed. Not forgery:
// who can write the bytes can write the checksum beside them. Hence no
// cryptographic hash, which would take most of the time that reading a large
// model from the cache folder takes.

#ifndef DAEMON_CORE_MODELS_CHECKSUM_H_
#define DAEMON_CORE_MODELS_CHECKSUM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rknnd::core {

// Bytes in pieces, then one Finish(). Thread: any, one at a time.
class Checksum {
 public:
  void Update(std::span<const std::byte> bytes);
  [[nodiscard]] uint64_t Finish();

 private:
  // Eight numbers side by side: a CPU multiplies them at once.
  static constexpr size_t kLanes = 8;
  static constexpr size_t kBlock = kLanes * sizeof(uint64_t);

  void Mix(const std::byte* blocks, size_t count);

  std::array<uint64_t, kLanes> lanes_{1, 2, 3, 4, 5, 6, 7, 8};
  std::array<std::byte, kBlock> rest_{};
  size_t held_ = 0;  // of rest_
  uint64_t size_ = 0;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_CHECKSUM_H_
