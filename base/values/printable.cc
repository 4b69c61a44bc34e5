#include "base/values/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace rknnd::base {
namespace {

bool IsShown(char32_t code) {
  struct Range {
    char32_t first, last;
  };
  constexpr Range kNever[] = {
      {0x00, 0x1f},       // C0
      {0x7f, 0x9f},       // DEL and C1, which some terminals obey
      {0x61c, 0x61c},     // marks, embeddings, overrides and isolates:
      {0x200e, 0x200f},   // they turn what follows around
      {0x2028, 0x202e},   // ... and separators of lines
      {0x2066, 0x2069}};  // ...
  return std::none_of(std::begin(kNever), std::end(kNever),
                      [code](const Range& range) {
                        return code >= range.first && code <= range.last;
                      });
}

}  // namespace

Utf8Character FirstCharacter(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0xffU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return {};
  return {code, bytes, true};
}

size_t MakePrintable(char* text, size_t size) {
  size_t kept = 0;
  for (size_t at = 0; at < size;) {
    const Utf8Character next = FirstCharacter({text + at, size - at});
    if (next.valid && IsShown(next.code)) {
      std::memmove(text + kept, text + at, next.bytes);
      kept += next.bytes;
    } else {
      text[kept++] = '?';
    }
    at += next.bytes;
  }
  return kept;
}

std::string Printable(std::string_view text) {
  std::string clean(text);
  clean.resize(MakePrintable(clean.data(), clean.size()));
  return clean;
}

}  // namespace rknnd::base
