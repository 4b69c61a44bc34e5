// SHA-256 by libcrypto's low-level functions: unlike EVP they link statically
// without the rest of libcrypto, and still use the CPU's SHA instructions.

// These functions are deprecated in favour of EVP; see above.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/values/sha256.h"

#include <openssl/sha.h>

#include <new>

namespace rknnd::base {
namespace {

SHA256_CTX* Context(std::byte* storage) {
  return std::launder(reinterpret_cast<SHA256_CTX*>(storage));
}

}  // namespace

Sha256::Sha256() {
  static_assert(sizeof(SHA256_CTX) <= sizeof(context_));
  static_assert(alignof(SHA256_CTX) <= 8);
  SHA256_Init(new (context_.data()) SHA256_CTX);
}

void Sha256::Update(std::span<const std::byte> bytes) {
  SHA256_Update(Context(context_.data()), bytes.data(), bytes.size());
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  SHA256_Final(digest.data(), Context(context_.data()));
  return digest;
}

Sha256Digest Sha256Of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

std::string ToHex(const Sha256Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace rknnd::base
