#include "client/ctl/text/text.h"

#include <algorithm>
#include <iterator>

#include "base/values/printable.h"

namespace rknnd::client {
namespace {

struct Range {
  char32_t first, last;
};

bool IsIn(char32_t code, const Range* begin, const Range* end) {
  return std::any_of(begin, end, [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
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

size_t Width(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const base::Utf8Character next = base::FirstCharacter(text);
    columns += next.valid ? Columns(next.code) : 1;
    text.remove_prefix(next.bytes);
  }
  return columns;
}

std::string Cut(std::string_view text, size_t columns) {
  size_t taken = 0;
  for (size_t used = 0; taken < text.size();) {
    const base::Utf8Character next = base::FirstCharacter(text.substr(taken));
    used += next.valid ? Columns(next.code) : 1;
    if (used > columns) break;
    taken += next.bytes;
  }
  return std::string(text.substr(0, taken));
}

}  // namespace rknnd::client
