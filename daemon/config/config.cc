// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config/config.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/posix/expected.h"
#include "base/status/status.h"
#include "daemon/config/grpc.h"
#include "daemon/config/keys.h"
#include "daemon/config/limits.h"
#include "daemon/config/names.h"
#include "daemon/config/values.h"

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
// As RKNN_LOG_LEVEL.
constexpr uint32_t kMostLogLevel = 5;
// A page: less is no memory at all.
constexpr uint64_t kLeastMemory = 4096;
// A daemon without sessions has some hundreds.
constexpr uint64_t kLeastMappings = 1024;
constexpr uint32_t kMostKeptFree = 50;
// A file of more is none of ours.
constexpr size_t kMostText = size_t{1} << 20;

// That the kernel takes as a socket's address.
constexpr size_t kLongestSocket = sizeof(sockaddr_un::sun_path) - 1;

// Of the files that are made for local clients; a socket of a group has another
// name for a moment.
size_t LongestSocketName(const Config& config) {
  const auto length = [](const std::string& path, bool group) {
    return path.size() + (group ? 4 : 0);
  };
  return std::max(
      length(config.socket, config.socket_group.has_value()),
      length(AdminSocketFor(config.socket), config.admin_group.has_value()));
}

Setter Mode(uint32_t& target) {
  return [&target](const toml::node& node) -> absl::Status {
    const auto* value = node.as_integer();
    if (value == nullptr) return WrongType("a mode, as 0o660");
    const int64_t mode = value->get();
    // An owner that cannot connect, or others that may: with a socket's group
    // there is no need of either.
    if (mode < 0 || (mode & ~0666) != 0 || (mode & 0600) != 0600) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is 0o", absl::StrFormat("%o", static_cast<uint64_t>(mode)),
          ", must be 0o600 to 0o666, of read and write"));
    }
    target = static_cast<uint32_t>(mode);
    return absl::OkStatus();
  };
}

Setters LimitKeys(Config& config) {
  core::SessionLimits& limits = config.limits;
  return {
      {"sessions", Number(config.server_limits.sessions, 1)},
      {"strangers", Number(config.server_limits.strangers, 1)},
      {"contexts", Number(limits.contexts, 1)},
      {"buffers", Number(limits.buffers, 1)},
      {"memory", Bytes(limits.memory, kLeastMemory)},
      {"buffer_bytes", Bytes(limits.buffer_bytes, kLeastMemory)},
      {"model_bytes", Bytes(limits.model_bytes, 1)},
      {"dump_bytes", Bytes(limits.dump_bytes, kLeastMemory)},
      {"jobs_per_context", Number(limits.jobs_per_context, 1, core::kJobSlots)},
      {"fences", Number(limits.fences, 1)},
      {"address_space", Bytes(config.address_space, kLeastMemory)},
      {"mappings", Bytes(config.mappings, kLeastMappings)},
      {"kept_free", Number(config.kept_free, 0, kMostKeptFree)},
  };
}

Setters SchedulerKeys(Config& config) {
  core::SchedulingOptions& scheduling = config.scheduling;
  return {
      {"starvation_bound",
       Seconds(scheduling.starvation_bound, kMinWaitSeconds, kMaxWaitSeconds)},
      {"longest_run",
       Seconds(scheduling.longest_run, kMinHangSeconds, kMaxWaitSeconds)},
      {"hang", Seconds(scheduling.hang, kMinHangSeconds, kMaxWaitSeconds)},
      {"fence_timeout",
       Seconds(scheduling.fence_timeout, kMinWaitSeconds, kMaxWaitSeconds)},
      {"spin", Spin(config.spin)},
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
  UserKeys users;
  Setters limits = LimitKeys(config);
  users.AddTo(limits, path);
  const Setters top = {
      {"device", OneOf(config.device, {"auto", "soft", "rknnrt"})},
      {"soc", Text(config.soc)},
      {"pace", Flag(config.pace)},
      {"cache", OneOf(config.cache, {"coherent", "incoherent"})},
      {"socket", Path(config.socket)},
      {"socket_mode", Mode(config.socket_mode)},
      {"socket_group", Group(config.socket_group)},
      {"admin_mode", Mode(config.admin_mode)},
      {"admin_group", Group(config.admin_group)},
      {"state_dir", Path(config.state_dir)},
      {"cache_dir",
       [&config](const toml::node& node) {
         return Path(config.cache_dir.emplace())(node);
       }},
      {"log_level", Number(config.log_level, 0, kMostLogLevel)},
      {"grace", Seconds(config.grace, 0, kMaxGraceSeconds)},
      {"service", Table("service", {{"user", OtherUser(config.run_as)}}, path)},
      {"limits", Table("limits", limits, path)},
      {"scheduler", Table("scheduler", SchedulerKeys(config), path)},
      {"models", Table("models",
                       {
                           {"cache_bytes", Bytes(config.cache_bytes, 1)},
                           {"preload", Texts(config.preload)},
                           {"repository", Path(config.grpc.model_repository)},
                       },
                       path)},
      {"memory", Table("memory",
                       {
                           {"heaps", HeapOrder(config.heaps.order)},
                           {"dma32", Flag(config.heaps.dma32)},
                           {"contiguous", Flag(config.heaps.contiguous)},
                           {"isolate", Isolation(config.isolate)},
                       },
                       path)},
      {"physical_memory", Windows(config.physical_memory, path)},
      {"grpc", Table("grpc", GrpcKeys(config.grpc), path)},
      {"metrics", Table("metrics", {{"listen", Text(config.metrics)}}, path)},
      {"faults", FaultKeys(config.faults, path)},
  };
  RKNND_RETURN_IF_ERROR(Apply(parsed.table(), top, "", path));
  users.ApplyTo(config.user_limits, config.users, config.groups,
                config.scheduling);
  return absl::OkStatus();
}

absl::Status ReadTomlFile(const std::string& path, Config& config) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return base::ToStatus(
        base::ErrnoError(errno, absl::StrCat("open '", path, "'")));
  }
  // A pipe would hold up whoever reads it.
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is no regular file"));
  }
  if (static_cast<uint64_t>(status.st_size) > kMostText) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has more than ", kMostText,
                     " bytes: it is none of ours"));
  }
  errno = 0;
  std::ifstream file(path);
  std::ostringstream text;
  // An empty file sets failbit: it says nothing, which is fine.
  if (!file.is_open() || (!(text << file.rdbuf()) && status.st_size > 0)) {
    return base::ToStatus(base::ErrnoError(errno == 0 ? EIO : errno,
                                           absl::StrCat("read '", path, "'")));
  }
  return ReadToml(text.str(), path, config);
}

std::string WarningOfFile(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || (status.st_mode & S_IWOTH) == 0) {
    return "";
  }
  return absl::StrCat("'", path,
                      "' can be changed by every user of this machine, who so "
                      "has a say in all others' limits: chmod o-w '",
                      path, "'");
}

absl::Status CheckConfig(const Config& config) {
  Complaints complaints;
  const auto complain = [&complaints](const auto&... words) {
    complaints.Add(absl::InvalidArgumentError(absl::StrCat(words...)));
  };
  if (config.socket.empty() || config.socket.front() != '/' ||
      config.socket.back() == '/') {
    complain("socket '", config.socket,
             "' must be the path of a file from the root");
  } else if (AdminSocketFor(config.socket) == config.socket) {
    complain("socket '", config.socket,
             "' has the name of the operators' socket, which is made beside "
             "it: name it otherwise");
  } else if (const size_t length = LongestSocketName(config);
             length > kLongestSocket) {
    complain("socket '", config.socket, "': it and what is made beside it (",
             length, " bytes) must have at most ", kLongestSocket);
  }
  if (config.device != "auto" && config.device != "soft" &&
      config.device != "rknnrt") {
    complain("device '", config.device,
             "' is unknown: use 'soft', 'rknnrt' or 'auto'");
  }
  if (config.cache != "coherent" && config.cache != "incoherent") {
    complain("cache '", config.cache,
             "' is unknown: use 'coherent' or 'incoherent' (folders for models "
             "are 'cache_dir')");
  }
  if (config.log_level > kMostLogLevel) {
    complain("log_level is ", config.log_level, ", must be 0 to 5");
  }
  for (const driver::PhysicalWindow& window : config.physical_memory) {
    const absl::Status wrong = driver::CheckWindow(window);
    if (!wrong.ok()) complaints.Add(base::Annotate(wrong, "physical_memory"));
  }
  for (const std::string& path : config.preload) {
    if (path.empty() || path.front() != '/') {
      complain("models.preload: '", path, "' must be a path from the root");
    }
  }
  complaints.Add(CheckGrpc(config.grpc));
  if (!config.faults.preset.empty() && !config.faults.enabled) {
    complain(
        "faults.preset is given, but faults are not enabled: set 'enabled = "
        "true' under [faults], or start with --faults");
  }
  for (const driver::Fault& fault : config.faults.preset) {
    // The device's own cores are known when it is opened.
    constexpr uint32_t kMostCores = 32;
    const absl::Status wrong = driver::CheckFault(fault, kMostCores);
    if (wrong.ok()) continue;
    complaints.Add(base::Annotate(
        wrong, absl::StrCat("faults.preset '",
                            std::string(driver::NameOf(fault.kind)), "'")));
  }
  return complaints.status();
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
