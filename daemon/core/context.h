// What rknn_init and rknn_set_core_mask ask for, checked: flags and core masks
// are a client's numbers.

#ifndef DAEMON_CORE_CONTEXT_H_
#define DAEMON_CORE_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/binding_set.h"
#include "daemon/core/model_registry.h"
#include "daemon/core/run_context.h"
#include "daemon/core/sram.h"
#include "driver/device.h"

namespace rknnd::core {

// A context as its session keeps it. The hot part is shared with jobs.
// Thread: loop.
struct Context {
  ModelUse use;
  std::shared_ptr<RunContext> run;
  std::shared_ptr<const BindingSet> bindings;
  SramLease sram;
  uint32_t core_mask = 0;  // as the client named it
};

// Fills priority, collect_perf and info_only from the flags of rknn_init.
// Hints are accepted; what changes who owns memory or when a call returns is
// UNIMPLEMENTED, by name, where this version lacks it.
absl::StatusOr<ContextTraits> ParseFlags(uint32_t flags);

// Where jobs of a context with `mask`, an rknn_core_mask, run. INVALID_ARGUMENT
// names mask, SoC and the core it lacks; with one core it depends on the SoC
// (driver::DeviceLimit) whether a mask is an error or means that core.
absl::StatusOr<CoreChoice> ResolveCoreMask(uint32_t mask,
                                           const driver::DeviceInfo& device);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_CONTEXT_H_
