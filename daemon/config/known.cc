// A key that is not in this list is unknown, whoever could read it: so that the
// list, and what is checked against it, is whole.

#include "daemon/config/known.h"

#include <algorithm>
#include <vector>

#include "base/posix/near_name.h"

namespace rknnd {
namespace {

constexpr auto kTable = KnownKey::Kind::kTable;
constexpr auto kLive = KnownKey::Kind::kLive;
constexpr auto kRestart = KnownKey::Kind::kRestart;

constexpr KnownKey kKeys[] = {
    {"device", kRestart},
    {"soc", kRestart},
    {"pace", kRestart},
    {"cache", kRestart},
    {"socket", kRestart},
    {"socket_mode", kRestart},
    {"socket_group", kRestart},
    {"admin_mode", kRestart},
    {"admin_group", kRestart},
    {"state_dir", kRestart},
    {"cache_dir", kRestart},
    {"log_level", kLive},
    {"grace", kLive},
    {"service", kTable},
    {"service.user", kRestart},
    {"limits", kTable},
    {"limits.sessions", kLive},
    {"limits.strangers", kLive},
    {"limits.contexts", kLive},
    {"limits.buffers", kLive},
    {"limits.memory", kLive},
    {"limits.buffer_bytes", kLive},
    {"limits.model_bytes", kLive},
    {"limits.dump_bytes", kLive},
    {"limits.jobs_per_context", kRestart},
    {"limits.fences", kLive},
    {"limits.address_space", kLive},
    {"limits.mappings", kLive},
    {"limits.kept_free", kLive},
    {"limits.user", kTable},
    {"limits.user.memory", kLive},
    {"limits.user.contexts", kLive},
    {"limits.user.buffers", kLive},
    {"limits.user.sessions", kLive},
    {"limits.user.queue", kLive},
    {"limits.user.max_priority", kLive},
    {"limits.user.weight", kLive},
    {"limits.user.cores", kLive},
    {"limits.users", kTable},
    {"limits.users.uid", kLive},
    {"limits.users.user", kLive},
    {"limits.users.memory", kLive},
    {"limits.users.contexts", kLive},
    {"limits.users.buffers", kLive},
    {"limits.users.sessions", kLive},
    {"limits.users.queue", kLive},
    {"limits.users.max_priority", kLive},
    {"limits.users.weight", kLive},
    {"limits.users.cores", kLive},
    {"limits.groups", kTable},
    {"limits.groups.gid", kLive},
    {"limits.groups.group", kLive},
    {"limits.groups.memory", kLive},
    {"limits.groups.contexts", kLive},
    {"limits.groups.buffers", kLive},
    {"limits.groups.sessions", kLive},
    {"limits.groups.queue", kLive},
    {"limits.groups.max_priority", kLive},
    {"limits.groups.weight", kLive},
    {"limits.groups.cores", kLive},
    {"scheduler", kTable},
    {"scheduler.starvation_bound", kRestart},
    {"scheduler.longest_run", kRestart},
    {"scheduler.hang", kRestart},
    {"scheduler.fence_timeout", kRestart},
    {"scheduler.spin", kRestart},
    {"models", kTable},
    {"models.cache_bytes", kLive},
    {"models.preload", kLive},
    {"models.repository", kRestart},
    {"memory", kTable},
    {"memory.heaps", kRestart},
    {"memory.dma32", kRestart},
    {"memory.contiguous", kRestart},
    {"memory.isolate", kRestart},
    {"physical_memory", kTable},
    {"physical_memory.uid", kRestart},
    {"physical_memory.begin", kRestart},
    {"physical_memory.size", kRestart},
    {"physical_memory.device", kRestart},
    {"grpc", kTable},
    {"grpc.listen", kRestart},
    {"grpc.insecure", kRestart},
    {"grpc.certificate", kRestart},
    {"grpc.key", kRestart},
    {"grpc.client_ca", kRestart},
    {"grpc.operators", kRestart},
    {"grpc.tokens", kRestart},
    {"grpc.message_bytes", kRestart},
    {"grpc.memory", kRestart},
    {"grpc.connections", kRestart},
    {"grpc.streams", kRestart},
    {"grpc.requests", kRestart},
    {"grpc.keepalive", kRestart},
    {"grpc.unread", kRestart},
    {"grpc.advertise", kRestart},
    {"metrics", kTable},
    {"metrics.listen", kLive},
    {"faults", kTable},
    {"faults.enabled", kRestart},
    {"faults.give_up_ms", kRestart},
    {"faults.preset", kTable},
    {"faults.preset.kind", kRestart},
    {"faults.preset.core", kRestart},
    {"faults.preset.model", kRestart},
    {"faults.preset.after", kRestart},
    {"faults.preset.every", kRestart},
    {"faults.preset.times", kRestart},
    {"faults.preset.ms", kRestart},
    {"faults.preset.factor", kRestart},
    {"faults.preset.bytes", kRestart},
    {"faults.preset.status", kRestart},
};

}  // namespace

std::span<const KnownKey> KnownKeys() { return kKeys; }

bool IsKnownKey(std::string_view name) {
  return std::any_of(std::begin(kKeys), std::end(kKeys),
                     [name](const KnownKey& key) { return key.name == name; });
}

std::string DidYouMean(std::string_view name) {
  std::vector<std::string_view> names;
  for (const KnownKey& key : kKeys) names.push_back(key.name);
  return base::DidYouMean(name, names);
}

}  // namespace rknnd
