// Keys of limits on all users and on each session, and of scheduling.

#include "daemon/config/key_table.h"
#include "daemon/config/value_types.h"

namespace rknnd {
namespace {

using core::SchedulingOptions;
using core::SessionLimits;
using transport::ServerLimits;

// A page: less is no memory at all.
constexpr uint64_t kLeastMemory = 4096;
// A daemon without sessions has some hundreds.
constexpr uint64_t kLeastMappings = 1024;
constexpr uint32_t kMostKeptFree = 50;

// Nobody waits longer for a turn, a job or a camera, and every job would miss
// less.
constexpr Seconds kWait{0.001, 3600};
// A job of a large model on a small SoC takes a tenth of a second.
constexpr Seconds kRun{0.1, 3600};

}  // namespace

void AddLimitKeys(KeyTable<Config>& table) {
  table.Live("limits.sessions", Number(1),
             At<&Config::server_limits, &ServerLimits::sessions>,
             "Sessions of all programs together; those of other machines may "
             "be three quarters of them. Operators on `admin.sock` find room "
             "for 16 more.");
  table
      .Live("limits.pending_connections", Number(1),
            At<&Config::server_limits, &ServerLimits::pending_connections>,
            "Connections that have not said Hello yet. One more takes the "
            "place of the oldest of the user who has most.")
      .Older("limits.strangers");
  table.Live("limits.pending_of_socket", Number(1),
             At<&Config::server_limits, &ServerLimits::pending_of_socket>,
             "Of these, connections to one socket of a container: of one pod, "
             "say. One more takes the place of the oldest of them.");
  table.Live("limits.contexts", Number(1),
             At<&Config::limits, &SessionLimits::contexts>,
             "Contexts of a session.");
  table.Live("limits.buffers", Number(1),
             At<&Config::limits, &SessionLimits::buffers>,
             "Buffers of a session.");
  table.Live("limits.memory", Bytes(kLeastMemory),
             At<&Config::limits, &SessionLimits::memory>,
             "Memory of a session.");
  table.Live("limits.buffer_bytes", Bytes(kLeastMemory),
             At<&Config::limits, &SessionLimits::buffer_bytes>,
             "Size of one buffer.");
  table.Live("limits.model_bytes", Bytes(1),
             At<&Config::limits, &SessionLimits::model_bytes>,
             "Size of one model's file. For gRPC the value at the start "
             "counts.");
  table.Live("limits.dump_bytes", Bytes(kLeastMemory),
             At<&Config::limits, &SessionLimits::dump_bytes>,
             "Size of one dump of all layers.");
  table.Restart("limits.jobs_per_context", Number(1, core::kJobSlots),
                At<&Config::limits, &SessionLimits::jobs_per_context>,
                "Jobs of a context that wait or run.");
  table.Live("limits.fences", Number(1),
             At<&Config::limits, &SessionLimits::fences>,
             "Fences that a session has registered at one time.");
  table
      .Live("limits.mappings", Number(kLeastMappings), At<&Config::mappings>,
            "Mappings that the daemon may have, of which each buffer is one; "
            "never more than the kernel allows.")
      .Unset("`vm.max_map_count`")
      .Example("65530");
  table.Live("limits.kept_free", Number(0, kMostKeptFree, "percent"),
             At<&Config::kept_free>,
             "Of sessions, contexts, open files, mappings and address space: "
             "what users leave to those who have next to nothing. 0: whoever "
             "comes first may have all.");
  table
      .Live("limits.address_space", Bytes(kLeastMemory),
            At<&Config::address_space>,
            "Weights, internal memory and buffers of all programs together; "
            "never more than the NPU maps.")
      .Unset("all of it")
      .Example("4294967296");
}

void AddSchedulerKeys(KeyTable<Config>& table) {
  table.Restart("scheduler.starvation_bound", kWait,
                At<&Config::scheduling, &SchedulingOptions::starvation_bound>,
                "How long a job of a lower class may be passed over.");
  table.Restart("scheduler.longest_run", kRun,
                At<&Config::scheduling, &SchedulingOptions::longest_run>,
                "A run that is expected to take more of its cores together is "
                "refused: a job that runs keeps its core.");
  table.Restart("scheduler.hang", kRun,
                At<&Config::scheduling, &SchedulingOptions::hang>,
                "A job that runs longer, and longer than 20 times what it was "
                "expected to take, is answered with a timeout and counted "
                "against its model.");
  table.Restart("scheduler.fence_timeout", kWait,
                At<&Config::scheduling, &SchedulingOptions::fence_timeout>,
                "How long a job without a limit of its own waits for a "
                "fence.");
  table.Restart("scheduler.spin", Spin(), At<&Config::spin>,
                "How long workers and clients wait awake before they sleep. "
                "`\"auto\"`: not on a battery.");
}

}  // namespace rknnd
