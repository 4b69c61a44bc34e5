// What the configuration file may say, in words: each key with its type, range
// and default, when a change of it takes effect, and what it is for. Made of
// the table of keys (key_table.h), for messages and pages.

#ifndef DAEMON_CONFIG_KNOWN_H_
#define DAEMON_CONFIG_KNOWN_H_

#include <string>
#include <string_view>
#include <vector>

namespace rknnd {

struct KnownKey {
  std::string name;  // "limits.users.weight"
  bool live =
      false;         // in force after a reload (SIGHUP); else at the next start
  std::string type;  // "bytes"
  std::string range;  // "1 to 1000"; empty: whatever has the type
  // As the file would say it, "4294967296"; empty: it has no value that could
  // be written, and `unset` says what holds.
  std::string initial;
  std::string unset;
  std::string help;  // sentences, with `code`
  // A value to show where the default is none.
  std::string example;
  // What the file of the package sets, where that is not the default.
  std::string shipped;
  // Names that it had in older versions, which are still read.
  std::vector<std::string> older;
  bool list = false;  // of an entry of a list: [[limits.users]]
};

// In the order of docs/configuration.md.
const std::vector<KnownKey>& KnownKeys();

// "limits." of "limits.user": what stands before a key's own name.
std::string_view TableOf(std::string_view name);

// base/values/near_name.h with the names of all keys and tables.
std::string DidYouMean(std::string_view name);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_KNOWN_H_
