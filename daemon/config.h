// What rknnd is told: defaults, then /etc/rknnd/rknnd.toml (or --config), then
// the command line. Read once by main, before anything is started.

#ifndef DAEMON_CONFIG_H_
#define DAEMON_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "daemon/core/types.h"
#include "daemon/transport/session/server.h"
#include "driver/fault.h"
#include "driver/faults/faulty_device.h"

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

struct Config {
  std::string socket = kDefaultSocketPath;
  std::string device = "auto";
  std::string soc = "rk3588";
  bool pace = false;  // the software NPU's jobs end when the SoC's would
  // For what must outlive a reboot.
  std::string state_dir;
  // Models by hash. Not set: DefaultCacheDir(). Empty: none kept.
  std::optional<std::string> cache_dir;
  uint32_t log_level = 2;  // as RKNN_LOG_LEVEL: 0 errors to 5 everything
  base::Nanoseconds grace = 30 * base::kSecond;
  core::SessionLimits limits;
  transport::ServerLimits server_limits;
  FaultConfig faults;
};

// Takes over what the text of a TOML file says. A key that is unknown or of
// the wrong type is INVALID_ARGUMENT and named with its line.
absl::Status ReadToml(const std::string& text, const std::string& path,
                      Config& config);
// The same for a file.
absl::Status ReadTomlFile(const std::string& path, Config& config);

// Checks what no parser can: ranges, and values that name things.
absl::Status CheckConfig(const Config& config);

// $CACHE_DIRECTORY (the service manager's), else /var/cache/rknnd where it can
// be written, else none.
std::string DefaultCacheDir();

// admin.sock beside the session socket.
std::string AdminSocketFor(const std::string& socket);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_H_
