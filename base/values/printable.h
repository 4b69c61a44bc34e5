// Text that others chose, as it may be shown to people: on terminals, in logs
// and in messages of errors. Bytes of files, clients, servers and models go
// through here before anybody sees them.
//
// Pure functions. Thread: any.

#ifndef BASE_VALUES_PRINTABLE_H_
#define BASE_VALUES_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace rknnd::base {

struct Utf8Character {
  char32_t code = 0;
  size_t bytes = 1;
  bool valid = false;
};

// The first character of `text`, which is not empty. One byte that is not valid
// where no UTF-8 begins.
Utf8Character FirstCharacter(std::string_view text);

// Without what a terminal would act on or a reader would be misled by: control
// characters (C0 and C1), characters that turn the direction of writing, line
// separators and bytes that are no UTF-8 become one '?' each.
std::string Printable(std::string_view text);
// The same in place, for who cannot allocate; the bytes that are left.
size_t MakePrintable(char* text, size_t size);

}  // namespace rknnd::base

#endif  // BASE_VALUES_PRINTABLE_H_
