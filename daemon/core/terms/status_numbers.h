// The numbers of a status report that stand for themselves, a row each: what
// Prometheus reads (daemon/metrics) and rknnctl shows (the session protocol's
// Report.numbers). A new number is a field of StatusReport and a row here.
// Stateless: any thread.

#ifndef DAEMON_CORE_TERMS_STATUS_NUMBERS_H_
#define DAEMON_CORE_TERMS_STATUS_NUMBERS_H_

#include <cstdint>
#include <span>

#include "daemon/core/terms/types.h"

namespace rknnd::core {

struct StatusNumber {
  // Without the prefix "rknnd_"; what is counted since the daemon's start ends
  // in "_total", as Prometheus wants it.
  const char* name;
  const char* help;
  uint64_t (*value)(const StatusReport& status);

  bool is_counter() const;
};

std::span<const StatusNumber> StatusNumbers();

}  // namespace rknnd::core

#endif  // DAEMON_CORE_TERMS_STATUS_NUMBERS_H_
