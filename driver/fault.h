// Faults on demand: the words for what goes wrong with a device, with which of
// its jobs and how often, and the interface by which they are asked for.
// driver/faults makes them happen around any device; the configuration file
// and rknnctl fault write them. Their values are an operator's: wrong, perhaps,
// and checked here.

#ifndef DRIVER_FAULT_H_
#define DRIVER_FAULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rknnd::driver {

enum class FaultKind {
  kSlow,         // a job's answer comes late
  kHang,         // a job does not come back until the driver gives up
  kWrongStatus,  // a job ran and is said to have failed, or the reverse
  kOutOfMemory,  // models or memory are refused
  kDeadCore,     // every job of a core fails
  kCrash,        // the device goes away with all jobs it had
  kIncoherent,   // CPU and NPU see each other's writes only after a sync
  kThrottle,     // the modelled clock is lowered
};

// "slow", "hang", "wrong-status", "out-of-memory", "dead-core", "crash",
// "incoherent", "throttle".
std::string_view NameOf(FaultKind kind);
// INVALID_ARGUMENT listing the names.
absl::StatusOr<FaultKind> FaultKindOf(std::string_view name);

// Field names are those of the configuration file and of rknnctl's options.
struct Fault {
  FaultKind kind = FaultKind::kSlow;

  // Which jobs: those on this core, of this model (its name, or the first
  // digits of its SHA-256).
  std::optional<uint32_t> core = {};
  std::string model = {};
  // Of these the first `after` go well, then each `every`-th is hit, `times`
  // times in all; 0: without end.
  uint64_t after = 0;
  uint64_t every = 1;
  uint64_t times = 0;

  // slow: so much later; hang: until it goes on by itself; crash: until the
  // device is back. 0: until cleared.
  uint64_t ms = 0;
  // slow, throttle: so many times as long.
  double factor = 0;
  // out-of-memory: only what is larger than this.
  uint64_t bytes = 0;
  // wrong-status: what the core reports; 0: "done", of a job that never ran.
  std::optional<uint32_t> status = {};

  friend bool operator==(const Fault&, const Fault&) = default;
};

// OK, or which field is wrong and why. `cores`: those of the device.
absl::Status CheckFault(const Fault& fault, uint32_t cores);

// "hang, core 1, each 3rd, 2 times".
std::string Describe(const Fault& fault);

struct FaultReport {
  uint64_t id = 0;
  Fault fault;
  uint64_t matched = 0;  // jobs or requests it looked at
  uint64_t fired = 0;    // of them: hit
};

// Thread: any.
class FaultControl {
 public:
  virtual ~FaultControl() = default;
  // From the next job on. The number names it afterwards.
  virtual absl::StatusOr<FaultReport> Set(const Fault& fault) = 0;
  [[nodiscard]] virtual std::vector<FaultReport> List() const = 0;
  // What waits because of it goes on. 0: all of them. NOT_FOUND for others.
  virtual absl::Status Clear(uint64_t id) = 0;
};

}  // namespace rknnd::driver

#endif  // DRIVER_FAULT_H_
