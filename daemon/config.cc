// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config.h"

#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/expected.h"
#include "base/status/status.h"
#include "daemon/config_grpc.h"
#include "daemon/config_keys.h"
#include "daemon/config_limits.h"

namespace rknnd {
namespace {

// A grace period above a day is a unit mistaken.
constexpr double kMaxGraceSeconds = 24 * 3600;
// Nobody waits so long for a turn, a job or a camera...
constexpr double kMaxWaitSeconds = 3600;
// ...and every job would miss less.
constexpr double kMinWaitSeconds = 0.001;
// A job of a large model on a small SoC takes a tenth of a second.
constexpr double kMinHangSeconds = 0.1;
// Beyond a frame's time a core that waits awake is simply lost.
constexpr uint32_t kMostSpinUs = 10'000;

Setter Isolation(bool& target) {
  return [&target](const toml::node& node) -> absl::Status {
    std::string word;
    RKNND_RETURN_IF_ERROR(Text(word)(node));
    if (word != "strict" && word != "off") {
      return absl::InvalidArgumentError(
          absl::StrCat("is '", word, "', must be \"strict\" or \"off\""));
    }
    target = word == "strict";
    return absl::OkStatus();
  };
}

// How long to wait awake: "auto", "off", or microseconds.
Setter Spin(std::optional<base::Nanoseconds>& target) {
  return [&target](const toml::node& node) -> absl::Status {
    if (const auto* word = node.as_string(); word != nullptr) {
      if (word->get() == "auto") {
        target.reset();
      } else if (word->get() == "off") {
        target = 0;
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat("is '", word->get(),
                         "', must be \"auto\", \"off\" or microseconds"));
      }
      return absl::OkStatus();
    }
    if (node.as_integer() == nullptr) {
      return WrongType("\"auto\", \"off\" or microseconds");
    }
    uint32_t us = 0;
    RKNND_RETURN_IF_ERROR(Number(us, 0, kMostSpinUs)(node));
    target = us * base::kMicrosecond;
    return absl::OkStatus();
  };
}

// One of [[faults.preset]]. What its values may be is checked when the device
// is known.
absl::Status ReadFault(const toml::table& table, const std::string& path,
                       driver::Fault& fault) {
  bool has_kind = false;
  const Setters setters = {
      {"kind",
       [&](const toml::node& node) -> absl::Status {
         std::string name;
         RKNND_RETURN_IF_ERROR(Text(name)(node));
         const auto kind = driver::FaultKindOf(name);
         if (!kind.ok()) return base::Annotate(kind.status(), "is wrong");
         fault.kind = *kind;
         has_kind = true;
         return absl::OkStatus();
       }},
      {"core",
       [&fault](const toml::node& node) -> absl::Status {
         return Number(fault.core.emplace(), 0)(node);
       }},
      {"model", Text(fault.model)},
      {"after", Number(fault.after, 0)},
      {"every", Number(fault.every, 1)},
      {"times", Number(fault.times, 0)},
      {"ms", Number(fault.ms, 0)},
      {"factor",
       [&fault](const toml::node& node) -> absl::Status {
         const auto value = node.value<double>();
         if (!value.has_value()) return WrongType("a number");
         fault.factor = *value;
         return absl::OkStatus();
       }},
      {"bytes", Number(fault.bytes, 0)},
      {"status",
       [&fault](const toml::node& node) -> absl::Status {
         return Number(fault.status.emplace(), 0)(node);
       }},
  };
  RKNND_RETURN_IF_ERROR(Apply(table, setters, "faults.preset.", path));
  if (has_kind) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", path, "' line ", table.source().begin.line,
                   ": key 'faults.preset.kind' is missing"));
}

absl::Status ReadFaults(const toml::table& table, const std::string& path,
                        FaultConfig& faults) {
  uint64_t give_up_ms =
      static_cast<uint64_t>(faults.give_up / base::kMillisecond);
  const Setters setters = {
      {"enabled", Flag(faults.enabled)},
      {"give_up_ms",
       [&give_up_ms](const toml::node& node) -> absl::Status {
         uint32_t ms = 0;
         RKNND_RETURN_IF_ERROR(Number(ms, 0)(node));
         give_up_ms = ms;
         return absl::OkStatus();
       }},
      {"preset", EachTable("[[faults.preset]]",
                           [&](const toml::table& fault) {
                             return ReadFault(fault, path,
                                              faults.preset.emplace_back());
                           })},
  };
  RKNND_RETURN_IF_ERROR(Apply(table, setters, "faults.", path));
  faults.give_up =
      static_cast<base::Nanoseconds>(give_up_ms) * base::kMillisecond;
  return absl::OkStatus();
}

// One of [[physical_memory]].
absl::Status ReadPhysical(const toml::table& table, const std::string& path,
                          driver::PhysicalWindow& window) {
  const Setters setters = {
      {"uid", Number(window.uid, 0)},
      {"begin", Number(window.begin, 0)},
      {"size", Number(window.size, 1)},
      {"device", Text(window.device)},
  };
  RKNND_RETURN_IF_ERROR(Apply(table, setters, "physical_memory.", path));
  for (const char* key : {"uid", "begin", "size"}) {
    if (table.contains(key)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' line ", table.source().begin.line,
                     ": key 'physical_memory.", key, "' is missing"));
  }
  return absl::OkStatus();
}

// Names of heaps, best first.
Setter HeapOrder(std::vector<std::string>& target) {
  return [&target](const toml::node& node) -> absl::Status {
    const auto* list = node.as_array();
    if (list == nullptr) return WrongType("a list of texts in quotes");
    target.clear();
    for (const toml::node& entry : *list) {
      RKNND_RETURN_IF_ERROR(Text(target.emplace_back())(entry));
      const absl::Status named = driver::CheckHeapName(target.back());
      if (!named.ok()) return base::Annotate(named, "is wrong");
      if (std::count(target.begin(), target.end(), target.back()) > 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("names '", target.back(), "' twice"));
      }
    }
    return absl::OkStatus();
  };
}

}  // namespace

absl::Status ReadToml(const std::string& text, const std::string& path,
                      Config& config) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' line ", parsed.error().source().begin.line,
                     ": ", std::string(parsed.error().description())));
  }
  Setters limits = {
      {"sessions", Number(config.server_limits.sessions, 1)},
      {"contexts", Number(config.limits.contexts, 1)},
      {"buffers", Number(config.limits.buffers, 1)},
      {"memory", Number(config.limits.memory, 4096)},
      {"buffer_bytes", Number(config.limits.buffer_bytes, 4096)},
      {"model_bytes", Number(config.limits.model_bytes, 1)},
      {"jobs_per_context", Number(config.limits.jobs_per_context, 1)},
      {"fences", Number(config.limits.fences, 1)},
      {"address_space", Number(config.address_space, 4096)},
  };
  UserKeys users;
  users.AddTo(limits, path);
  const Setters scheduler = {
      {"starvation_bound", Seconds(config.scheduling.starvation_bound,
                                   kMinWaitSeconds, kMaxWaitSeconds)},
      {"hang",
       Seconds(config.scheduling.hang, kMinHangSeconds, kMaxWaitSeconds)},
      {"fence_timeout", Seconds(config.scheduling.fence_timeout,
                                kMinWaitSeconds, kMaxWaitSeconds)},
      {"spin", Spin(config.spin)},
  };
  const Setters memory = {
      {"heaps", HeapOrder(config.heaps.order)},
      {"dma32", Flag(config.heaps.dma32)},
      {"contiguous", Flag(config.heaps.contiguous)},
      {"isolate", Isolation(config.isolate)},
  };
  const Setters grpc = GrpcKeys(config.grpc);
  const Setters metrics = {{"listen", Text(config.metrics)}};
  const Setters models = {
      {"cache_bytes", Number(config.cache_bytes, 1)},
      {"repository", Text(config.grpc.model_repository)},
      {"preload",
       [&config](const toml::node& node) -> absl::Status {
         const auto* list = node.as_array();
         if (list == nullptr) return WrongType("a list of paths in quotes");
         config.preload.clear();
         for (const toml::node& entry : *list) {
           RKNND_RETURN_IF_ERROR(Text(config.preload.emplace_back())(entry));
         }
         return absl::OkStatus();
       }},
  };
  const Setters top = {
      {"socket", Text(config.socket)},
      {"device", Text(config.device)},
      {"soc", Text(config.soc)},
      {"pace", Flag(config.pace)},
      {"cache", Text(config.cache)},
      {"memory",
       [&](const toml::node& node) -> absl::Status {
         const auto* table = node.as_table();
         if (table == nullptr) return WrongType("a table: [memory]");
         return Apply(*table, memory, "memory.", path);
       }},
      {"physical_memory",
       EachTable("[[physical_memory]]",
                 [&](const toml::table& window) {
                   return ReadPhysical(window, path,
                                       config.physical_memory.emplace_back());
                 })},
      {"state_dir", Text(config.state_dir)},
      {"cache_dir",
       [&config](const toml::node& node) -> absl::Status {
         return Text(config.cache_dir.emplace())(node);
       }},
      {"log_level", Number(config.log_level, 0)},
      {"grace", Seconds(config.grace, 0, kMaxGraceSeconds)},
      {"scheduler",
       [&](const toml::node& node) -> absl::Status {
         const auto* table = node.as_table();
         if (table == nullptr) return WrongType("a table: [scheduler]");
         return Apply(*table, scheduler, "scheduler.", path);
       }},
      {"limits",
       [&](const toml::node& node) -> absl::Status {
         const auto* table = node.as_table();
         if (table == nullptr) return WrongType("a table: [limits]");
         return Apply(*table, limits, "limits.", path);
       }},
      {"models",
       [&](const toml::node& node) -> absl::Status {
         const auto* table = node.as_table();
         if (table == nullptr) return WrongType("a table: [models]");
         return Apply(*table, models, "models.", path);
       }},
      {"grpc",
       [&](const toml::node& node) -> absl::Status {
         const auto* table = node.as_table();
         if (table == nullptr) return WrongType("a table: [grpc]");
         return Apply(*table, grpc, "grpc.", path);
       }},
      {"metrics",
       [&](const toml::node& node) -> absl::Status {
         const auto* table = node.as_table();
         if (table == nullptr) return WrongType("a table: [metrics]");
         return Apply(*table, metrics, "metrics.", path);
       }},
      {"faults",
       [&](const toml::node& node) -> absl::Status {
         const auto* table = node.as_table();
         if (table == nullptr) return WrongType("a table: [faults]");
         return ReadFaults(*table, path, config.faults);
       }},
  };
  RKNND_RETURN_IF_ERROR(Apply(parsed.table(), top, "", path));
  users.ApplyTo(config.user_limits, config.users, config.scheduling);
  return absl::OkStatus();
}

absl::Status ReadTomlFile(const std::string& path, Config& config) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    // An empty file sets failbit: it says nothing, which is fine.
    if (!file.is_open()) {
      return base::ToStatus(
          base::ErrnoError(errno, absl::StrCat("open '", path, "'")));
    }
  }
  return ReadToml(text.str(), path, config);
}

absl::Status CheckConfig(const Config& config) {
  if (config.socket.empty() || config.socket.front() != '/') {
    return absl::InvalidArgumentError(absl::StrCat(
        "socket '", config.socket, "' must be a path from the root"));
  }
  if (config.device != "auto" && config.device != "soft" &&
      config.device != "rknnrt") {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", config.device,
                     "' is unknown: use 'soft', 'rknnrt' or 'auto'"));
  }
  if (config.cache != "coherent" && config.cache != "incoherent") {
    return absl::InvalidArgumentError(
        absl::StrCat("cache '", config.cache,
                     "' is unknown: use 'coherent' or 'incoherent' (folders "
                     "for models are 'cache_dir')"));
  }
  if (config.log_level > 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("log_level is ", config.log_level, ", must be 0 to 5"));
  }
  for (const driver::PhysicalWindow& window : config.physical_memory) {
    const absl::Status wrong = driver::CheckWindow(window);
    if (!wrong.ok()) return base::Annotate(wrong, "physical_memory");
  }
  for (const std::string& path : config.preload) {
    if (path.empty() || path.front() != '/') {
      return absl::InvalidArgumentError(absl::StrCat(
          "models.preload: '", path, "' must be a path from the root"));
    }
  }
  RKNND_RETURN_IF_ERROR(CheckGrpc(config.grpc));
  if (!config.faults.preset.empty() && !config.faults.enabled) {
    return absl::InvalidArgumentError(
        "faults.preset is given, but faults are not enabled: set 'enabled = "
        "true' under [faults], or start with --faults");
  }
  for (const driver::Fault& fault : config.faults.preset) {
    // The device's own cores are known when it is opened.
    constexpr uint32_t kMostCores = 32;
    const absl::Status wrong = driver::CheckFault(fault, kMostCores);
    if (!wrong.ok()) {
      return base::Annotate(
          wrong, absl::StrCat("faults.preset '",
                              std::string(driver::NameOf(fault.kind)), "'"));
    }
  }
  return absl::OkStatus();
}

std::string DefaultCacheDir() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started
  const char* given = std::getenv("CACHE_DIRECTORY");
  if (given != nullptr && *given != '\0') {
    // Several are separated by colons; ours is the first.
    const std::string list(given);
    return list.substr(0, list.find(':'));
  }
  static constexpr char kSystem[] = "/var/cache/rknnd";
  if (mkdir(kSystem, 0700) != 0 && errno != EEXIST) return "";
  return access(kSystem, W_OK | X_OK) == 0 ? kSystem : "";
}

std::string AdminSocketFor(const std::string& socket) {
  const size_t slash = socket.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : socket.substr(0, slash + 1);
  return folder + "admin.sock";
}

}  // namespace rknnd
