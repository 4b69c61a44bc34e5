// What the doctor looks at beside the cores themselves: files of the kernel and
// of the system. Each check says what it saw also when all is well, and what
// to do when it is not (docs/doctor.md has them all). A file that this kernel
// lacks is never an error by itself.

#ifndef DAEMON_BOARD_CHECKS_H_
#define DAEMON_BOARD_CHECKS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/board/files.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/session/board.h"

namespace rknnd::board {

// What this daemon knows without files, taken on the loop.
struct DaemonFacts {
  std::string version;    // of the daemon
  uint32_t protocol = 0;  // of the session socket, the highest
  driver::DeviceInfo device;
  std::string heaps;  // as Heaps::Describe
  std::vector<core::ForeignUser> foreign_users;
  std::vector<std::string> slow_models;  // as Service::SlowModels
  uint64_t open_files = 0;               // RLIMIT_NOFILE of this process
  uint64_t locked_bytes = 0;             // RLIMIT_MEMLOCK
  bool root = false;                     // this process may do all
};

// "0.9.8" as {0, 9, 8}; nullopt for what is no version.
using Version = std::array<uint32_t, 3>;
std::optional<Version> ParseVersion(const std::string& text);

// Which NPU driver the kernel has, and where.
struct NpuDriver {
  enum class Kind { kNone, kRknpu, kRocket };
  Kind kind = Kind::kNone;
  std::string version;             // of rknpu, where it can be read
  std::vector<std::string> nodes;  // "/dev/dri/renderD129", "/dev/rknpu"
  std::string device;              // its folder below /sys, or empty
  std::string tree_node;           // "npu@fdab0000"; empty: no device tree
  std::string tree_status;         // "okay", "disabled", or empty
};
NpuDriver FindDriver(const Files& files);

// A bridge of the vendor's to a PC, which uses the NPU by itself.
struct VendorServer {
  std::string pid;
  std::string unit;  // of systemd; empty: started otherwise
};
std::vector<VendorServer> FindVendorServers(const Files& files);
std::string DescribeVendorServer(const VendorServer& server);
std::string RemedyForVendorServer(const VendorServer& server);

// Thread: any. All read files, some of them hundreds.
using Findings = std::vector<transport::Finding>;
void CheckVersions(const DaemonFacts& here, Findings* out);
void CheckDriver(const Files& files, const DaemonFacts& here,
                 const NpuDriver& npu, Findings* out);
void CheckSram(const Files& files, const DaemonFacts& here,
               const NpuDriver& npu, Findings* out);
void CheckNpu(const Files& files, Findings* out);
void CheckInterrupts(const Files& files, Findings* out);
void CheckMemory(const Files& files, const DaemonFacts& here,
                 const NpuDriver& npu, Findings* out);
void CheckLimits(const Files& files, const DaemonFacts& here, Findings* out);
void CheckModels(const DaemonFacts& here, Findings* out);
void CheckClocks(const std::vector<transport::BoardClock>& clocks,
                 Findings* out);
void CheckNeighbours(const Files& files, const DaemonFacts& here,
                     Findings* out);

}  // namespace rknnd::board

#endif  // DAEMON_BOARD_CHECKS_H_
