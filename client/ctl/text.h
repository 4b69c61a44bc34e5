// Text on a terminal: what may be shown of bytes that others chose, how many
// columns it takes, and how much of it fits. Pure functions; used by all that
// rknnctl prints for people.

#ifndef CLIENT_CTL_TEXT_H_
#define CLIENT_CTL_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace rknnd::client {

// Without what a terminal would act on or a reader would be misled by: control
// characters (C0 and C1), characters that turn the direction of writing, line
// separators and bytes that are no UTF-8 become one '?' each.
[[nodiscard]] std::string Printable(std::string_view text);

// Columns that text takes which is Printable: two for each wide character (of
// East Asian scripts, emoji), none for one that is put on another.
[[nodiscard]] size_t Width(std::string_view text);

// As many of its first characters as fit into `columns`.
[[nodiscard]] std::string Cut(std::string_view text, size_t columns);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TEXT_H_
