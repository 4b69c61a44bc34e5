// See the header: clients in other languages, and Prometheus, refuse a whole
// message for one wrong byte in it.

#include "daemon/core/terms/utf8.h"

#include <cstddef>
#include <cstdint>

namespace rknnd::core {
namespace {

// Bytes of the character that begins at `at`; 0: none does.
size_t Length(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  // Continuations alone, and what has two spellings.
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const uint32_t second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second > 0x9F) return 0;  // halves of pairs
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second > 0x8F) return 0;  // above the last character
  return length;
}

}  // namespace

std::string Utf8(std::string text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = Length(text, at);
    if (length == 0) text[at] = '?';
    at += length == 0 ? 1 : length;
  }
  return text;
}

}  // namespace rknnd::core
