// Text on a terminal: how many columns it takes, and how much of it fits. Pure
// functions; used by all that rknnctl prints for people.

#ifndef CLIENT_CTL_TEXT_H_
#define CLIENT_CTL_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "base/posix/printable.h"

namespace rknnd::client {

// What others chose goes through it before it is shown
// (base/posix/printable.h).
using base::Printable;

// Columns that text takes which is Printable: two for each wide character (of
// East Asian scripts, emoji), none for one that is put on another.
[[nodiscard]] size_t Width(std::string_view text);

// As many of its first characters as fit into `columns`.
[[nodiscard]] std::string Cut(std::string_view text, size_t columns);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TEXT_H_
