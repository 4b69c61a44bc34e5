// What the service has one of each, and all its sessions use. Put together by
// service_assembly.cc.

#ifndef DAEMON_CORE_SESSIONS_SERVICE_PARTS_H_
#define DAEMON_CORE_SESSIONS_SERVICE_PARTS_H_

#include <cstdint>
#include <memory>

#include "base/posix/event_loop.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/memory/buffer_keys.h"
#include "daemon/core/memory/paging.h"
#include "daemon/core/memory/sram.h"
#include "daemon/core/models/model_registry.h"
#include "daemon/core/running/runner_impl.h"
#include "daemon/core/scheduling/admission.h"
#include "daemon/core/scheduling/leases.h"
#include "daemon/core/sessions/common_limits.h"
#include "daemon/core/sessions/drain.h"
#include "daemon/core/sessions/open_sessions.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"
#include "driver/memory/heap.h"
#include "driver/memory/physical.h"

namespace rknnd::core {

// Levels of what clients are told, of those of RKNN_LOG_LEVEL.
inline constexpr uint32_t kLogWarning = 2;
inline constexpr uint32_t kLogInfo = 3;

// What all sessions share. Thread: loop.
struct ServiceParts {
  driver::Device* device = nullptr;
  const driver::Heaps* heaps = nullptr;
  const driver::PhysicalMemory* physical = nullptr;  // null: none is allowed
  base::Executor* loop = nullptr;
  base::Executor* pager = nullptr;  // what takes long with memory
  LogSink* log = nullptr;           // the daemon's; or null
  SessionLimits limits;
  bool vendor_sharing = false;
  Drain drain;
  std::shared_ptr<Ledger> ledger;
  std::shared_ptr<Account> internal_memory;  // arenas
  std::shared_ptr<ModelRegistry> models;
  std::shared_ptr<RunnerImpl> runner;
  std::shared_ptr<Sram> sram;
  std::shared_ptr<BufferKeys> keys;

  // The service's own: nobody asks them once its session has ended.
  const OpenSessions* sessions = nullptr;
  const CommonLimits* common = nullptr;

  std::shared_ptr<Leases> leases;
  // The cores there are for streams.
  [[nodiscard]] Board board() const {
    const uint32_t lent = leases->lent();
    return {AllCores(device->info().cores), lent, leases->HolderOf(lent)};
  }

  [[nodiscard]] Paging paging() const { return {device, heaps, loop, pager}; }
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_SERVICE_PARTS_H_
