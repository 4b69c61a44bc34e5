// See the header; and the whole table of keys.

#include "daemon/config/known.h"

#include <set>

#include "base/values/near_name.h"
#include "daemon/config/key_table.h"

namespace rknnd {

const KeyTable<Config>& AllKeys() {
  static const KeyTable<Config> all = [] {
    KeyTable<Config> table;
    AddDeviceKeys(table);
    AddLimitKeys(table);
    AddUserKeys(table);
    AddSchedulerKeys(table);
    AddMemoryKeys(table);
    AddNetworkKeys(table);
    AddFaultKeys(table);
    return table;
  }();
  return all;
}

const std::vector<KnownKey>& KnownKeys() {
  static const std::vector<KnownKey> known = [] {
    std::vector<KnownKey> keys;
    for (const Key<Config>& key : AllKeys().keys()) {
      if (key.parts.empty()) keys.push_back(key.known);
      keys.insert(keys.end(), key.parts.begin(), key.parts.end());
    }
    return keys;
  }();
  return known;
}

std::string_view TableOf(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? "" : name.substr(0, dot + 1);
}

std::string DidYouMean(std::string_view name) {
  std::set<std::string_view> tables;
  std::vector<std::string_view> names;
  for (const KnownKey& key : KnownKeys()) {
    for (std::string_view table = TableOf(key.name); !table.empty();
         table = TableOf(table)) {
      table.remove_suffix(1);
      if (tables.insert(table).second) names.push_back(table);
    }
    names.push_back(key.name);
  }
  return base::DidYouMean(name, names);
}

}  // namespace rknnd
