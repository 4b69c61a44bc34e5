// See the header. Keys are compared by what they came to, wherever that was
// said: a file that says what the command line or the defaults said before
// changes nothing.

#include "daemon/config/changes.h"

#include "daemon/config/key_table.h"

namespace rknnd {

ConfigChanges CompareConfigs(const Config& before, const Config& after) {
  ConfigChanges changes;
  for (const Key<Config>& key : AllKeys().keys()) {
    if (key.same(before, after)) continue;
    (key.known.live ? changes.live : changes.restart).push_back(key.known.name);
  }
  return changes;
}

void TakeLive(const Config& after, Config& config) {
  for (const Key<Config>& key : AllKeys().keys()) {
    if (key.known.live) key.take(after, config);
  }
}

}  // namespace rknnd
