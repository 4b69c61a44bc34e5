// Whether internal memory of a size may be made, before the first byte of it
// is: a model that does not fit takes nothing away from those that do.

#ifndef DAEMON_CORE_MEMORY_ARENA_ROOM_H_
#define DAEMON_CORE_MEMORY_ARENA_ROOM_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/memory/arenas.h"

namespace rknnd::core {

// `account` pays for the arenas of all `cores`; `payer` is whose turn it is.
// Nothing is charged when it returns. Thread: loop.
absl::Status CheckArenaRoom(const ArenaNeed& need, const Arenas& arenas,
                            uint32_t cores, Ledger& ledger, Account& account,
                            const std::string& payer);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_ARENA_ROOM_H_
