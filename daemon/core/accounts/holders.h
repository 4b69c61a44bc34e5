// Who holds most of what is refused, in words: every limit that several share
// says so. Used by the ledger, tenants and quotas.

#ifndef DAEMON_CORE_ACCOUNTS_HOLDERS_H_
#define DAEMON_CORE_ACCOUNTS_HOLDERS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rknnd::core {

struct Holding {
  std::string holder;  // "session 4 (pid 12 'cam')"
  uint64_t amount = 0;
};

// "session 4 (pid 12 'cam') with 700, session 5 (...) with 3": the three
// largest, by name where they are equal; "nobody".
std::string NameLargest(std::vector<Holding> holdings);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_HOLDERS_H_
