// The table of keys as people read it: rows of docs/configuration.md, the
// manual page rknnd.toml(5), and the file that the package installs. Used by
// pages_main.cc when those are made, and by tests.

#ifndef DAEMON_CONFIG_PAGES_H_
#define DAEMON_CONFIG_PAGES_H_

#include <string>

#include "absl/status/statusor.h"
#include "daemon/config/known.h"

namespace rknnd {

// "| `grace` | seconds | 0 to 86400 | 30 | reload | How long ... |".
std::string MarkdownRow(const KnownKey& key);

// `page` with the row of each key as it is to be: one that is missing stands
// behind the key before it, and one of no key is left out.
std::string WithMarkdownRows(const std::string& page);

// `text` with entries of keys for each line "@keys TABLE@", or "@keys TABLE KEY
// KEY@" for some keys of the table only, where table "." is that of keys that
// are in none. INVALID_ARGUMENT naming what the line asks for and is not there,
// or a key, or a list of tables, that no line asks for.
absl::StatusOr<std::string> ManualPage(const std::string& text);
absl::StatusOr<std::string> ExampleFile(const std::string& text);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_PAGES_H_
