// What rknn_init and rknn_set_core_mask ask for, checked: flags and core masks
// are a client's numbers.

#ifndef DAEMON_CORE_CONTEXTS_CONTEXT_H_
#define DAEMON_CORE_CONTEXTS_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/contexts/binding_sets.h"
#include "daemon/core/contexts/run_context.h"
#include "daemon/core/memory/sram.h"
#include "daemon/core/models/model_registry.h"
#include "driver/device.h"

namespace rknnd::core {

// Frames of a context that room is kept for.
struct KeptStream {
  uint64_t rate_mhz = 0;
  Priority priority = Priority::kMedium;
  uint32_t core_mask = 0;  // the context's, unless it was named
};

// A context as its session keeps it. The hot part is shared with jobs.
// Thread: loop.
struct Context {
  ModelUse use;  // none where it never runs
  std::shared_ptr<RunContext> run;
  BindingSets bindings;
  QueueRequest queue;  // how its jobs wait
  std::optional<KeptStream> stream;
  SramLease sram;
  // What `sram` of so many bytes saves of DDR traffic, kept by the report that
  // worked it out.
  mutable uint64_t saved_with = 0, saved = 0;
  uint32_t core_mask = 0;  // as the client named it
  // Of the last change of it that was asked for: only that one counts.
  uint64_t core_mask_change = 0;
};

// What the flags of rknn_init ask of the daemon; all others that are known are
// accepted.
absl::StatusOr<ContextTraits> ParseFlags(uint32_t flags);

// What a context that never runs keeps of a model: all there is to ask, none of
// its weights. Thread: loop.
std::shared_ptr<const LoadedModel> DescriptionOf(const LoadedModel& model);

// Where jobs of a context with `mask`, an rknn_core_mask, run. INVALID_ARGUMENT
// names mask, SoC and the core it lacks; with one core it depends on the SoC
// (driver::DeviceLimit) whether a mask is an error or means that core.
absl::StatusOr<CoreChoice> ResolveCoreMask(uint32_t mask,
                                           const driver::DeviceInfo& device);

// The cores whose arenas jobs of `model` work in: a gang that shares each layer
// has that of its lowest core, one that shares the slices of a batch all.
uint32_t ArenasOf(const CoreChoice& choice, const LoadedModel& model);

// Whether jobs of such a context borrow a core's internal memory.
bool NeedsArena(const ContextTraits& traits, const LoadedModel& model);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_CONTEXTS_CONTEXT_H_
