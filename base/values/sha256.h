// SHA-256, by which models are known. Daemon and client library both hash.

#ifndef BASE_VALUES_SHA256_H_
#define BASE_VALUES_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rknnd::base {

using Sha256Digest = std::array<uint8_t, 32>;

// Bytes in pieces, then one Finish(). Thread: any, one at a time.
class Sha256 {
 public:
  Sha256();
  void Update(std::span<const std::byte> bytes);
  [[nodiscard]] Sha256Digest Finish();

 private:
  // OpenSSL's SHA256_CTX, whose header stays out of ours.
  alignas(8) std::array<std::byte, 112> context_;
};

[[nodiscard]] Sha256Digest Sha256Of(std::span<const std::byte> bytes);

// 64 lower-case hexadecimal digits.
[[nodiscard]] std::string ToHex(const Sha256Digest& digest);

}  // namespace rknnd::base

#endif  // BASE_VALUES_SHA256_H_
