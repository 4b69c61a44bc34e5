// What rknn_init and rknn_set_core_mask ask for, checked: flags and core masks
// are a client's numbers. And the text of RKNN_QUERY_PERF_DETAIL.

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
#include "driver/device.h"

namespace rknnd::core {

// A context as its session keeps it. The hot part is shared with jobs.
// Thread: loop.
struct Context {
  ModelUse use;
  std::shared_ptr<RunContext> run;
  std::shared_ptr<const BindingSet> bindings;
  uint32_t core_mask = 0;  // as the client named it
};

// Fills priority, collect_perf and info_only from the flags of rknn_init.
// Hints are accepted; what changes who owns memory or when a call returns is
// UNIMPLEMENTED, by name, where this version lacks it.
absl::StatusOr<ContextTraits> ParseFlags(uint32_t flags);

// The cores (bits) that a job of a context with `mask` may run on.
// INVALID_ARGUMENT names a core that the device lacks.
absl::StatusOr<uint32_t> ResolveCoreMask(uint32_t mask,
                                         const driver::DeviceInfo& device);

// The per-layer table of the last run, or a sentence why there is none.
std::string PerfText(const RunContext& context);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_CONTEXT_H_
