// What rknnd is told: defaults, then /etc/rknnd/rknnd.toml (or --config), then
// the command line. Read by main before anything is started, and again by
// reload.cc.

#ifndef DAEMON_CONFIG_CONFIG_H_
#define DAEMON_CONFIG_CONFIG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/grpc/options.h"
#include "daemon/transport/session/server.h"
#include "driver/fault.h"
#include "driver/faults/faulty_device.h"
#include "driver/memory/heap.h"
#include "driver/memory/physical.h"

namespace rknnd {

inline constexpr char kDefaultConfigPath[] = "/etc/rknnd/rknnd.toml";
inline constexpr char kDefaultSocketPath[] = "/run/rknnd/session.sock";

// Faults on demand. Off unless somebody says so at start: whoever reaches
// admin.sock could stop the NPU for everybody.
struct FaultConfig {
  bool enabled = false;
  // After so long the modelled driver resets the NPU under a job that hangs; 0:
  // never.
  base::Nanoseconds give_up = driver::kDriverGiveUp;
  std::vector<driver::Fault> preset;
};

inline constexpr uint32_t kMostLogLevel = 5;  // as RKNN_LOG_LEVEL

struct Config {
  // Of those that we make ourselves, when the service manager passes none. No
  // group: the daemon's own.
  std::string socket = kDefaultSocketPath;
  uint32_t socket_mode = 0660, admin_mode = 0600;
  std::optional<uint32_t> socket_group, admin_group;
  // [service]: whom a daemon that was started as root becomes; empty: nobody
  // else.
  std::string run_as;
  std::string device = "auto";
  std::string soc = "rk3588";
  bool pace = false;  // the software NPU's jobs end when the SoC's would
  // Of the software NPU and the CPU: "coherent", or "incoherent" as on a board.
  std::string cache = "coherent";
  // [vendor]: the library that runs what nothing else can. Empty: where
  // `rknnd-divert` puts it.
  std::string vendor_library;
  std::string vendor_workers = "each";  // or "one", for all models
  uint32_t vendor_deaths = 3;
  driver::HeapConfig heaps;  // of [memory]
  // Likewise: whether internal memory is cleared between sessions.
  bool isolate = true;
  // For what must outlive a reboot.
  std::string state_dir;
  // Models by hash. Not set: DefaultCacheDir(). Empty: none kept.
  std::optional<std::string> cache_dir;
  uint32_t log_level = 2;  // as RKNN_LOG_LEVEL: 0 errors to 5 everything
  base::Nanoseconds grace = 30 * base::kSecond;
  // [models]: what all files of the cache folder may have together, and what is
  // loaded at start and kept for good.
  uint64_t cache_bytes = uint64_t{4} << 30;
  std::vector<std::string> preload;
  core::SessionLimits limits;
  // What the NPU may map at one time; 0: as much as it can.
  uint64_t address_space = 0;
  // Mappings that the daemon may have; 0: as many as the kernel allows.
  uint64_t mappings = 0;
  uint32_t kept_free = 10;  // percent
  // Of each user's sessions together; and of some, by uid or gid, instead.
  core::UserLimits user_limits;
  std::map<uint32_t, core::UserLimits> users, groups;
  // [scheduler], and what users and groups may have of the cores; its `spin` is
  // not set here.
  core::SchedulingOptions scheduling;
  // How long workers and clients may wait awake. Not set: AutomaticSpin().
  std::optional<base::Nanoseconds> spin;
  transport::ServerLimits server_limits;
  // What rknn_create_mem_from_phys may reach, by user.
  std::vector<driver::PhysicalWindow> physical_memory;
  FaultConfig faults;
  // [metrics]: where Prometheus asks; empty: nowhere.
  std::string metrics;
  transport::GrpcOptions grpc;  // no addresses: no gRPC
  // What is to be said of a file that is taken: keys by older names.
  std::vector<std::string> warnings;
};

// Takes over what the text of a TOML file says. Keys that are unknown, of the
// wrong type or out of their range are INVALID_ARGUMENT and named with their
// lines, all of them, one a line of the message. Keys have their names in the
// tables of key_table.h.
absl::Status ReadToml(const std::string& text, const std::string& path,
                      Config& config);
// The same for a file.
absl::Status ReadTomlFile(const std::string& path, Config& config);

// What is to be said of who may change the file; empty: nothing.
std::string WarningOfFile(const std::string& path);

// Checks what no parser can: what does not go together, and what the command
// line may say. All that is wrong, as above.
absl::Status CheckConfig(const Config& config);

// $CACHE_DIRECTORY (the service manager's), else /var/cache/rknnd where it can
// be written, else none.
std::string DefaultCacheDir();

// admin.sock beside the session socket.
std::string AdminSocketFor(const std::string& socket);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_CONFIG_H_
