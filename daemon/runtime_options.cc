// See the header.

#include "daemon/runtime_options.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "base/posix/map_count.h"
#include "daemon/board/power.h"
#include "driver/rknnrt/protocol.h"

namespace rknnd {
namespace {

// Where a pin of the clocks is noted: beside the socket unless told where, as a
// reboot undoes it anyway.
std::string PinRecord(const Config& config) {
  constexpr char kName[] = "/pinned-clocks";
  if (!config.state_dir.empty()) return config.state_dir + kName;
  const size_t slash = config.socket.rfind('/');
  return slash == std::string::npos ? ""
                                    : config.socket.substr(0, slash) + kName;
}

// To which main raises it.
uint64_t DescriptorLimit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : 0;
}

// Of the kernel, or fewer where the configuration says so.
uint64_t MappingLimit(uint64_t configured) {
  const uint64_t most = base::MostMappings();
  if (configured == 0 || most == 0) return std::max(configured, most);
  return std::min(configured, most);
}

// The time that a job has in a worker of the vendor's library is so small a
// part of that after which its program is told.
constexpr base::Nanoseconds kTurnsBeforeAHang = 3;

}  // namespace

core::LiveOptions LiveOptionsOf(const Config& config) {
  core::LiveOptions options;
  options.limits = config.limits;
  options.sessions = config.server_limits.sessions;
  options.address_space = config.address_space;
  options.kept_free = config.kept_free;
  options.descriptors = DescriptorLimit();
  options.mappings = MappingLimit(config.mappings);
  options.user_limits = config.user_limits;
  options.users = config.users;
  options.groups = config.groups;
  options.scheduling = config.scheduling;
  options.model_grace = config.grace;
  options.preload = config.preload;
  options.cache_limit = config.cache_bytes;
  return options;
}

RuntimeOptions RuntimeOptionsOf(const Config& config, board::LogTail& log,
                                core::ModelKeeper* keeper) {
  RuntimeOptions options;
  static_cast<core::LiveOptions&>(options) = LiveOptionsOf(config);
  options.device = config.device;
  options.library.path = config.vendor_library;
  options.library.worker = {"/proc/self/exe", rknnrt::kWorkerArgument};
  options.library.one_for_all = config.vendor_workers == "one";
  options.library.most_deaths = config.vendor_deaths;
  // A job whose worker hangs runs again before its program is told that it
  // hangs.
  options.library.job_limit = config.scheduling.hang / kTurnsBeforeAHang;
  options.soc = config.soc;
  options.pace = config.pace;
  options.incoherent = config.cache == "incoherent";
  options.heaps = config.heaps;
  options.isolate = config.isolate;
  options.trace_dir = config.state_dir;
  options.scheduling.spin = config.spin.value_or(AutomaticSpin());
  options.server_limits = config.server_limits;
  options.physical_memory = config.physical_memory;
  options.cache_dir = config.cache_dir.value_or(DefaultCacheDir());
  options.keeper = keeper;
  if (config.faults.enabled) {
    options.faults = RuntimeFaults{config.faults.give_up, config.faults.preset};
  }
  options.log = &log;
  options.give_back_memory = [] { malloc_trim(0); };
  options.board = RuntimeBoard{"", PinRecord(config), RKNND_VERSION, &log};
  return options;
}

}  // namespace rknnd
