// See the header. Keys are compared by what they came to, wherever that was
// said: a file that says what the command line or the defaults said before
// changes nothing.

#include "daemon/config/changes.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>
#include <utility>

#include "daemon/config/known.h"

namespace rknnd {
namespace {

bool IsLive(std::string_view name) {
  const auto keys = KnownKeys();
  // Of a list of tables, what its first key is.
  const auto found =
      std::find_if(keys.begin(), keys.end(), [name](const KnownKey& key) {
        return key.kind != KnownKey::Kind::kTable &&
               key.name.starts_with(name) &&
               (key.name.size() == name.size() || key.name[name.size()] == '.');
      });
  return found != keys.end() && found->kind == KnownKey::Kind::kLive;
}

class Comparison {
 public:
  Comparison(const Config& before, const Config& after)
      : before_(before), after_(after) {}

  // `get`: a value of a configuration.
  template <class Get>
  void Of(const char* name, Get get) {
    if (get(before_) == get(after_)) return;
    (IsLive(name) ? changes_.live : changes_.restart).emplace_back(name);
  }
  // A member of a part: Of("grpc.key", &Config::grpc, &GrpcOptions::key).
  template <class Part, class Owner, class Value>
  void Of(const char* name, Part Config::*part, Value Owner::*member) {
    Of(name, [=](const Config& config) { return config.*part.*member; });
  }

  [[nodiscard]] ConfigChanges Take() { return std::move(changes_); }

 private:
  const Config& before_;
  const Config& after_;
  ConfigChanges changes_;
};

auto WindowsOf(const Config& config) {
  std::vector<std::tuple<uint32_t, uint64_t, uint64_t, std::string>> windows;
  for (const driver::PhysicalWindow& window : config.physical_memory) {
    windows.emplace_back(window.uid, window.begin, window.size, window.device);
  }
  return windows;
}

auto FaultsOf(const Config& config) {
  std::vector<std::string> faults;
  for (const driver::Fault& fault : config.faults.preset) {
    faults.push_back(driver::Describe(fault));
  }
  return faults;
}

void CompareBoard(Comparison& compare) {
  compare.Of("device", std::mem_fn(&Config::device));
  compare.Of("soc", std::mem_fn(&Config::soc));
  compare.Of("pace", std::mem_fn(&Config::pace));
  compare.Of("cache", std::mem_fn(&Config::cache));
  compare.Of("socket", std::mem_fn(&Config::socket));
  compare.Of("socket_mode", std::mem_fn(&Config::socket_mode));
  compare.Of("socket_group", std::mem_fn(&Config::socket_group));
  compare.Of("admin_mode", std::mem_fn(&Config::admin_mode));
  compare.Of("admin_group", std::mem_fn(&Config::admin_group));
  compare.Of("state_dir", std::mem_fn(&Config::state_dir));
  compare.Of("cache_dir", std::mem_fn(&Config::cache_dir));
  compare.Of("log_level", std::mem_fn(&Config::log_level));
  compare.Of("grace", std::mem_fn(&Config::grace));
  compare.Of("service.user", std::mem_fn(&Config::run_as));
  compare.Of("memory.heaps", &Config::heaps, &driver::HeapConfig::order);
  compare.Of("memory.dma32", &Config::heaps, &driver::HeapConfig::dma32);
  compare.Of("memory.contiguous", &Config::heaps,
             &driver::HeapConfig::contiguous);
  compare.Of("memory.isolate", std::mem_fn(&Config::isolate));
  compare.Of("physical_memory", WindowsOf);
  compare.Of("faults.enabled", &Config::faults, &FaultConfig::enabled);
  compare.Of("faults.give_up_ms", &Config::faults, &FaultConfig::give_up);
  compare.Of("faults.preset", FaultsOf);
}

void CompareLimits(Comparison& compare) {
  using core::SchedulingOptions;
  using core::SessionLimits;
  using core::SharePolicy;
  using core::UserLimits;
  const auto server = &Config::server_limits;
  compare.Of("limits.sessions", server, &transport::ServerLimits::sessions);
  compare.Of("limits.strangers", server, &transport::ServerLimits::strangers);
  const auto limits = &Config::limits;
  compare.Of("limits.contexts", limits, &SessionLimits::contexts);
  compare.Of("limits.buffers", limits, &SessionLimits::buffers);
  compare.Of("limits.memory", limits, &SessionLimits::memory);
  compare.Of("limits.buffer_bytes", limits, &SessionLimits::buffer_bytes);
  compare.Of("limits.model_bytes", limits, &SessionLimits::model_bytes);
  compare.Of("limits.dump_bytes", limits, &SessionLimits::dump_bytes);
  compare.Of("limits.jobs_per_context", limits,
             &SessionLimits::jobs_per_context);
  compare.Of("limits.fences", limits, &SessionLimits::fences);
  compare.Of("limits.address_space", std::mem_fn(&Config::address_space));
  compare.Of("limits.mappings", std::mem_fn(&Config::mappings));
  compare.Of("limits.kept_free", std::mem_fn(&Config::kept_free));
  const auto user = &Config::user_limits;
  compare.Of("limits.user.memory", user, &UserLimits::memory);
  compare.Of("limits.user.contexts", user, &UserLimits::contexts);
  compare.Of("limits.user.buffers", user, &UserLimits::buffers);
  compare.Of("limits.user.sessions", user, &UserLimits::sessions);
  compare.Of("limits.user.queue", user, &UserLimits::queue);
  const auto share = [&compare](const char* name, auto SharePolicy::*member) {
    compare.Of(name, [member](const Config& config) {
      return config.scheduling.share.*member;
    });
  };
  share("limits.user.max_priority", &SharePolicy::ceiling);
  share("limits.user.weight", &SharePolicy::weight);
  share("limits.user.cores", &SharePolicy::cores);
  compare.Of("limits.users", [](const Config& config) {
    return std::pair(config.users, config.scheduling.users);
  });
  compare.Of("limits.groups", [](const Config& config) {
    return std::pair(config.groups, config.scheduling.groups);
  });
  const auto scheduling = &Config::scheduling;
  compare.Of("scheduler.starvation_bound", scheduling,
             &SchedulingOptions::starvation_bound);
  compare.Of("scheduler.longest_run", scheduling,
             &SchedulingOptions::longest_run);
  compare.Of("scheduler.hang", scheduling, &SchedulingOptions::hang);
  compare.Of("scheduler.fence_timeout", scheduling,
             &SchedulingOptions::fence_timeout);
  compare.Of("scheduler.spin", std::mem_fn(&Config::spin));
}

void CompareDoors(Comparison& compare) {
  using transport::GrpcOptions;
  compare.Of("models.cache_bytes", std::mem_fn(&Config::cache_bytes));
  compare.Of("models.preload", std::mem_fn(&Config::preload));
  const auto grpc = &Config::grpc;
  compare.Of("models.repository", grpc, &GrpcOptions::model_repository);
  compare.Of("grpc.listen", grpc, &GrpcOptions::addresses);
  compare.Of("grpc.insecure", grpc, &GrpcOptions::insecure);
  compare.Of("grpc.certificate", grpc, &GrpcOptions::certificate);
  compare.Of("grpc.key", grpc, &GrpcOptions::key);
  compare.Of("grpc.client_ca", grpc, &GrpcOptions::client_ca);
  compare.Of("grpc.operators", grpc, &GrpcOptions::operators);
  compare.Of("grpc.tokens", grpc, &GrpcOptions::tokens);
  compare.Of("grpc.message_bytes", grpc, &GrpcOptions::message_bytes);
  compare.Of("grpc.memory", grpc, &GrpcOptions::memory);
  compare.Of("grpc.connections", grpc, &GrpcOptions::connections);
  compare.Of("grpc.streams", grpc, &GrpcOptions::streams);
  compare.Of("grpc.requests", grpc, &GrpcOptions::requests);
  compare.Of("grpc.keepalive", grpc, &GrpcOptions::keepalive);
  compare.Of("grpc.unread", grpc, &GrpcOptions::unread);
  compare.Of("grpc.advertise", grpc, &GrpcOptions::advertise);
  compare.Of("metrics.listen", std::mem_fn(&Config::metrics));
}

}  // namespace

ConfigChanges CompareConfigs(const Config& before, const Config& after) {
  Comparison compare(before, after);
  CompareBoard(compare);
  CompareLimits(compare);
  CompareDoors(compare);
  return compare.Take();
}

void TakeLive(const Config& after, Config& config) {
  config.log_level = after.log_level;
  config.grace = after.grace;
  config.server_limits = after.server_limits;
  const uint32_t jobs_per_context = config.limits.jobs_per_context;
  config.limits = after.limits;
  config.limits.jobs_per_context = jobs_per_context;
  config.address_space = after.address_space;
  config.mappings = after.mappings;
  config.kept_free = after.kept_free;
  config.user_limits = after.user_limits;
  config.users = after.users;
  config.groups = after.groups;
  config.scheduling.share = after.scheduling.share;
  config.scheduling.users = after.scheduling.users;
  config.scheduling.groups = after.scheduling.groups;
  config.cache_bytes = after.cache_bytes;
  config.preload = after.preload;
  config.metrics = after.metrics;
}

}  // namespace rknnd
