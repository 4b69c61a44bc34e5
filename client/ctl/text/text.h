// Text on a terminal: how many columns it takes, and how much of it fits. Pure
// functions; used by all that rknnctl prints for people.

#ifndef CLIENT_CTL_TEXT_TEXT_H_
#define CLIENT_CTL_TEXT_TEXT_H_

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/values/printable.h"

namespace rknnd::client {

// What others chose goes through it before it is shown
// (base/values/printable.h).
using base::Printable;

// Columns that text takes which is Printable: two for each wide character (of
// East Asian scripts, emoji), none for one that is put on another.
[[nodiscard]] size_t Width(std::string_view text);

// As many of its first characters as fit into `columns`.
[[nodiscard]] std::string Cut(std::string_view text, size_t columns);

// As std::printf prints it, in 127 characters at most.
template <class... Args>
[[nodiscard]] std::string Printed(const char* format, Args... args) {
  char text[128];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TEXT_TEXT_H_
