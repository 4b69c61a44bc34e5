// A key that is not in this list is unknown, whoever could read it: so that the
// list, and what is checked against it, is whole.

#include "daemon/config/known.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

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

// "limits." of "limits.memory".
std::string_view TableOf(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? "" : name.substr(0, dot + 1);
}

std::string_view LastOf(std::string_view name) {
  return name.substr(TableOf(name).size());
}

// Whether the words of `shorter`, as "grace", are at the end of `longer`, as
// "model_grace".
bool EndsInWords(std::string_view longer, std::string_view shorter) {
  return longer.size() > shorter.size() + 1 && longer.ends_with(shorter) &&
         longer[longer.size() - shorter.size() - 1] == '_';
}

// How far `meant` is from what was written: misspelled, or at another place.
// Beyond `kFar` it was something else.
constexpr size_t kFar = std::numeric_limits<size_t>::max();
size_t Farness(std::string_view written, std::string_view meant) {
  const std::string_view word = LastOf(written);
  const std::string_view known = LastOf(meant);
  size_t far = EditDistance(word, known);
  if (far > 0 && (EndsInWords(word, known) || EndsInWords(known, word))) {
    far = 1;
  }
  if (far > std::max<size_t>(1, word.size() / 3)) return kFar;
  // The same word elsewhere is as near as a slip of the finger here, and not
  // nearer.
  const size_t elsewhere = TableOf(written) == TableOf(meant) ? 0 : 2;
  return 2 * far + elsewhere;
}

}  // namespace

std::span<const KnownKey> KnownKeys() { return kKeys; }

bool IsKnownKey(std::string_view name) {
  return std::any_of(std::begin(kKeys), std::end(kKeys),
                     [name](const KnownKey& key) { return key.name == name; });
}

size_t EditDistance(std::string_view a, std::string_view b) {
  // Of beginnings of `a` (rows) and `b`: the last two rows and the next.
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> next(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t wrong = a[i - 1] == b[j - 1] ? 0 : 1;
      next[j] = std::min({last[j] + 1, next[j - 1] + 1, last[j - 1] + wrong});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(next);
  }
  return last[b.size()];
}

std::string DidYouMean(std::string_view name) {
  // No key is as long as that, and comparing would take its time.
  if (name.size() > 100) return "";
  const KnownKey* nearest = nullptr;
  size_t least = kFar;
  for (const KnownKey& key : kKeys) {
    const size_t far = Farness(name, key.name);
    if (far >= least) continue;
    least = far;
    nearest = &key;
  }
  if (nearest == nullptr) return "";
  return absl::StrCat("; did you mean '", std::string(nearest->name), "'?");
}

}  // namespace rknnd
