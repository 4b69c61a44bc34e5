#include "client/ctl/text.h"

#include <algorithm>
#include <iterator>

namespace rknnd::client {
namespace {

struct Character {
  char32_t code = 0;
  size_t bytes = 1;
  bool valid = false;
};

// The first character of `text`, which is not empty. One byte that is not valid
// where no UTF-8 begins.
Character First(std::string_view text) {
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

struct Range {
  char32_t first, last;
};

bool IsIn(char32_t code, const Range* begin, const Range* end) {
  return std::any_of(begin, end, [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

bool IsShown(char32_t code) {
  constexpr Range kNever[] = {
      {0x00, 0x1f},       // C0
      {0x7f, 0x9f},       // DEL and C1, which some terminals obey
      {0x61c, 0x61c},     // marks, embeddings, overrides and isolates:
      {0x200e, 0x200f},   // they turn what follows around
      {0x2028, 0x202e},   // ... and separators of lines
      {0x2066, 0x2069}};  // ...
  return !IsIn(code, std::begin(kNever), std::end(kNever));
}

size_t Columns(char32_t code) {
  constexpr Range kNone[] = {{0x300, 0x36f},   {0x200b, 0x200d},
                             {0x20d0, 0x20ff}, {0xfe00, 0xfe0f},
                             {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
  constexpr Range kTwo[] = {
      {0x1100, 0x115f},   {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
      {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
      {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
      {0x1f900, 0x1faff}, {0x20000, 0x3fffd}};
  if (IsIn(code, std::begin(kNone), std::end(kNone))) return 0;
  return IsIn(code, std::begin(kTwo), std::end(kTwo)) ? 2 : 1;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const Character next = First(text);
    if (next.valid && IsShown(next.code)) {
      clean += text.substr(0, next.bytes);
    } else {
      clean += '?';
    }
    text.remove_prefix(next.bytes);
  }
  return clean;
}

size_t Width(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Character next = First(text);
    columns += next.valid ? Columns(next.code) : 1;
    text.remove_prefix(next.bytes);
  }
  return columns;
}

std::string Cut(std::string_view text, size_t columns) {
  size_t taken = 0;
  for (size_t used = 0; taken < text.size();) {
    const Character next = First(text.substr(taken));
    used += next.valid ? Columns(next.code) : 1;
    if (used > columns) break;
    taken += next.bytes;
  }
  return std::string(text.substr(0, taken));
}

}  // namespace rknnd::client
