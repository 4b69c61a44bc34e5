// Words that the classes of daemon/core and its transports share. No sockets,
// no protobuf, no clock of its own in this folder.

#ifndef DAEMON_CORE_TERMS_TYPES_H_
#define DAEMON_CORE_TERMS_TYPES_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"
#include "driver/device.h"
#include "driver/tensor.h"

namespace rknnd::core {

using SessionId = uint64_t;  // the daemon's, never reused

// SHA-256 of a model's bytes and, where it has any, of its options after them.
using ModelId = std::array<uint8_t, 32>;

// Jobs one session may have in flight: the slots of its ring, to which the
// transport asserts this to be equal.
inline constexpr uint32_t kJobSlots = 128;

struct Allocation;

// Who is at the other end, as the kernel says; `comm` is the client's claim
// and used in reports only.
struct SessionPeer {
  int32_t pid = 0;  // 0: of another namespace
  uint32_t uid = 0;
  std::vector<uint32_t> groups;  // the first is its main one
  std::string comm;
  bool admin = false;
  // Of one over gRPC: where it comes from, and the name it proved, if any.
  std::string address = {};
  // Where its process runs, as the kernel's control groups say; or empty.
  std::string unit = {}, container = {};
  // What the share socket gives by which it came in; null: it has what its user
  // has.
  std::shared_ptr<const Allocation> allocation = {};
};

// What one session may hold. Each is there because a client controls it.
struct SessionLimits {
  uint32_t contexts = 4096;  // a program once made one per inference
  uint32_t buffers = 16384;
  uint64_t memory = uint64_t{4} << 30;  // one NPU address space
  // One buffer. Others' large ones wait for the pager meanwhile: this much
  // costs it a fraction of a second, and no tensor comes near it.
  uint64_t buffer_bytes = uint64_t{512} << 20;
  uint64_t model_bytes = uint64_t{4} << 30;
  // All tensors of one run, as float32: ten times a large detector's.
  uint64_t dump_bytes = uint64_t{1} << 30;
  uint32_t jobs_per_context = 32;  // beyond it a submission answers at once
  uint32_t fences = 1024;  // registered at once; each is an fd of this process

  friend bool operator==(const SessionLimits&, const SessionLimits&) = default;
};

// What all sessions of one user may hold together. 0: no limit of its own.
struct UserLimits {
  uint64_t memory = 0;
  uint32_t contexts = 0;
  uint32_t buffers = 0;
  uint32_t sessions = 0;
  uint32_t queue = 0;  // jobs that wait or run

  friend bool operator==(const UserLimits&, const UserLimits&) = default;
};

// Vendor priority flags, bits 0-1 of rknn_init's flags.
enum class Priority : uint32_t { kHigh = 0, kMedium = 1, kLow = 2 };

// What a program's jobs may have of the cores.
struct SharePolicy {
  // Weights are proportions: beyond it one is a mistake.
  static constexpr uint32_t kMostWeight = 1000;

  // The highest. Every program asks for HIGH, whose flag is 0.
  Priority ceiling = Priority::kMedium;
  uint32_t weight = 100;  // of its share; twice as much gets twice the time
  // Bits of those that its jobs may have, of the three that core masks name; 0:
  // all there are.
  uint32_t cores = 0;

  friend bool operator==(const SharePolicy&, const SharePolicy&) = default;
};

// A share of the NPU that was given away as a whole: to a pod, say. Sessions of
// one name have it together, whoever their users are.
struct Allocation {
  std::string name;
  SharePolicy share;
  UserLimits limits;
};

struct SchedulingOptions {
  // So long may a program's jobs of a lower class be passed over.
  base::Nanoseconds starvation_bound = base::kSecond;
  // What one job may be expected to take of all its cores together.
  base::Nanoseconds longest_run = 60 * base::kSecond;
  // A job that runs longer hangs: it is answered, and the timeline written. The
  // vendor's driver gives up after 6 to 18 s and fails all others with it.
  base::Nanoseconds hang = 5 * base::kSecond;
  // What a job without a limit of its own may wait for a fence.
  base::Nanoseconds fence_timeout = 10 * base::kSecond;
  // How long workers and clients may wait awake; 0: not at all.
  base::Nanoseconds spin = 0;
  SharePolicy share;
  // Of some users and groups instead; a user's own comes first, then the best
  // of its groups'.
  std::map<uint32_t, SharePolicy> users, groups;
};

// How jobs of one context wait.
enum class QueuePolicy : uint32_t { kFifo = 0, kNewest = 1 };

struct QueueRequest {
  uint32_t context = 0;
  QueuePolicy policy = QueuePolicy::kFifo;
  uint32_t depth = 0;             // jobs that may wait; 0: the session's limit
  base::Nanoseconds max_age = 0;  // older ones are dropped; 0: no bound
};

// A stream of frames that somebody plans. Of a context's model, or by hash.
struct AdmissionRequest {
  uint32_t context = 0;
  ModelId model{};
  uint64_t rate_mhz = 0;  // frames in 1000 seconds; 0: it ends
  Priority priority = Priority::kMedium;
  uint32_t core_mask = 0;
  bool reserve = false;
  uint32_t streams = 1;
};

struct Admission {
  bool fits = false;
  uint64_t rate_mhz = 0;  // the most that fits, of each stream
  base::Nanoseconds run = 0;
  bool measured = false;
  uint64_t load_ppm = 0;  // of the cores it may use, by admitted streams
  std::string reason;
};

// Sets of bindings of one context: a run names the one it uses.
inline constexpr uint32_t kBindingSets = 8;

struct ContextRequest {
  uint32_t number = 0;
  ModelId model{};
  uint32_t flags = 0;
  uint32_t core_mask = 0;
  uint32_t duplicate_of = 0;
  uint64_t sram_limit = 0;  // bytes it takes at most; 0: no bound of its own
};

struct ModelUpload {
  ModelId id{};
  std::string name;
  std::string options;
  base::UniqueFd bytes;  // sealed against shrink, grow and write
  // The model whose weights this one shares (its options say which), where the
  // daemon has it not in its cache folder: its bytes, likewise sealed, and its
  // options.
  base::UniqueFd weights_of = {};
  std::string weights_of_options = {};
};

struct BindRequest {
  uint32_t context = 0;
  driver::Direction direction = driver::Direction::kInput;
  uint32_t index = 0;
  uint32_t buffer = 0;  // 0: unbind
  uint64_t offset = 0;
  uint64_t size = 0;
  driver::TensorFormat format;
  uint32_t set = 0;  // below kBindingSets
};

// A range of a buffer that becomes a context's internal or weight memory.
struct MemoryRequest {
  uint32_t context = 0;
  uint32_t buffer = 0;  // 0: take it away
  uint64_t offset = 0;
  uint64_t size = 0;
};

// A frame in place of an input's tensor.
struct FrameRequest {
  uint32_t context = 0;
  uint32_t index = 0;  // of the input
  driver::FrameFormat format;
  // Of each plane; one buffer may hold several.
  struct Plane {
    uint32_t buffer = 0;  // 0: no such plane
    uint64_t offset = 0;
    uint64_t size = 0;  // usable from there
  };
  std::array<Plane, driver::kMaxPlanes> planes{};
  uint32_t set = 0;  // below kBindingSets
};

// Memory by its address on the SoC's bus.
struct PhysicalRange {
  uint64_t address = 0;
  uint64_t size = 0;
};

// One input's, as a client writes it.
struct InputShape {
  std::vector<uint32_t> dims;
  driver::TensorLayout layout = driver::TensorLayout::kUndefined;
};

// What a context's next runs have; the model lives as long as the context.
struct ShapeChoice {
  const driver::ModelInfo* model = nullptr;
  uint32_t row = 0;  // of ModelInfo::programs
};

struct BufferInfo {
  base::UniqueFd fd;  // for the client; invalid for imports
  uint64_t size = 0;
  std::string heap;
};

struct MemorySize {
  uint64_t weight = 0, internal = 0, dma_total = 0;
  uint64_t sram_total = 0, sram_free = 0;
};

// The bits of so many cores, of 32 at most.
constexpr uint32_t AllCores(uint32_t count) {
  return static_cast<uint32_t>((uint64_t{1} << count) - 1);
}

// Where jobs of a context run: on any one of these cores (bits), or, as a gang,
// on all of them at once.
struct CoreChoice {
  uint32_t cores = 0;
  bool gang = false;
  friend bool operator==(const CoreChoice&, const CoreChoice&) = default;
};

// What a client asks of a job; copied out of shared memory by the transport.
struct JobSubmission {
  // kCancel: queued jobs of `context` with number `frame`, or all of them for
  // 0, are taken back; answered with how many.
  enum class Operation : uint32_t { kRun, kCancel };
  Operation operation = Operation::kRun;
  uint32_t context = 0;
  uint32_t slot = 0;  // below JobGate's capacity; free, or it is a violation
  uint32_t sequence = 0;
  uint64_t frame = 0;
  uint32_t timeout_ms = 0;
  base::Nanoseconds deadline = 0;  // not begun so long after now; 0: none
  uint32_t set = 0;                // of the context's bindings
  // Numbers of registered fences, 0: none. Two are signalled at the end.
  uint32_t fence_in = 0, fence_out = 0, notify = 0;
  bool shared = false;  // another session's equal run may answer it
};

// The answer to one submission. `status` is OK or says why there is no answer.
struct JobCompletion {
  uint32_t slot = 0;
  uint32_t sequence = 0;
  uint64_t frame = 0;
  base::Nanoseconds queue = 0, run = 0, total = 0;
  uint32_t core = 0;
  uint32_t drops = 0;
  uint32_t count = 0;   // of a kCancel: jobs that were taken back
  bool shared = false;  // another session's run gave it
  absl::Status status;
};

// Bytes of a context's tensors that were copied on their way, by reason.
struct CopiedBytes {
  uint64_t to_device_inputs_set = 0, to_device_conversion = 0;
  uint64_t from_device_outputs_get = 0, from_device_conversion = 0;
};

// Where a session's completions go: its ring. Outlives the session's jobs
// (held by shared_ptr).
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  // Thread: worker, any. Must not block, allocate or call back into core.
  virtual void Complete(const JobCompletion& completion) = 0;
  // The job is on a core from now on. Likewise.
  virtual void Begin(uint32_t /*slot*/, uint32_t /*sequence*/) {}
  // What the client says that it has copied for `context`: its word, to be
  // shown and nothing else. Thread: loop.
  [[nodiscard]] virtual CopiedBytes ClientCopies(uint32_t /*context*/) const {
    return {};
  }
};

// Lines for a session's own log (RKNN_LOG_LEVEL is the client's).
struct EventFields;

class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Log(uint32_t level, const std::string& text) = 0;
  // The same, and what it is about (daemon/core/terms/events.h).
  virtual void LogEvent(uint32_t level, const std::string& text,
                        const EventFields& /*fields*/) {
    Log(level, text);
  }
};

// Wakes one sleeping worker: there is a job and a free core for it.
class WorkerWaker {
 public:
  virtual ~WorkerWaker() = default;
  virtual void WakeOne() = 0;
  // Runner::Expire is to be called at `when`, by the runner's clock, or soon
  // after it; an earlier call stays in force. Thread: any.
  virtual void ExpireBy(base::Nanoseconds /*when*/) {}
};

// The transport's, by which it knows who has the other end of a fence.
class FenceOwner {
 public:
  virtual ~FenceOwner() = default;
};

// What a client registered for jobs to wait for, or to be told by. Its fd is of
// a kind that neither blocks nor lies when it is polled (the transport looked).
struct Fence {
  uint32_t number = 0;
  bool out = false;
  base::UniqueFd fd;
  std::shared_ptr<FenceOwner> owner = nullptr;  // whom one that is `out` tells
};

//   kPending --readable--> kSignalled
//      |
//      +--closed at its other end, with nothing to read--> kClosed
enum class FenceState : uint32_t { kPending, kSignalled, kClosed };

// Waits for fences beside the doorbells, so that no thread does.
class FenceWatcher {
 public:
  virtual ~FenceWatcher() = default;
  // What it is now. Never blocks. Thread: any.
  [[nodiscard]] virtual FenceState Look(const Fence& fence) = 0;
  // Calls Runner::FenceReady(token, state) once, when `fence` is signalled or
  // closed at its other end; at once, or later, on a worker. Thread: any.
  virtual absl::Status Watch(uint64_t token,
                             const std::shared_ptr<Fence>& fence) = 0;
  // No call for `token` after the return but one that is on its way already.
  virtual void Unwatch(uint64_t token) = 0;
  // Tells whoever has the other end. Never blocks. Thread: any.
  virtual void Signal(const std::shared_ptr<Fence>& fence) = 0;
};

// ---- reports ----------------------------------------------------------------

struct MemoryKinds {
  uint64_t weight = 0, internal = 0, io = 0, other = 0;
  [[nodiscard]] uint64_t total() const {
    return weight + internal + io + other;
  }
};

struct CoreReport {
  base::Nanoseconds busy = 0;     // with a job, a running one included
  uint64_t jobs = 0;              // that ended
  std::string lent_to;            // a command, while it is lent out
  std::string model;              // of the job it has, or had last
  SessionId session = 0;          // whose that is; 0: none yet
  base::Nanoseconds running = 0;  // so long that one is on it; 0: it has ended
  std::string holder;             // whose that one is, in words
};

// Somebody who uses the NPU beside this daemon.
struct ForeignUser {
  int32_t pid = 0;
  std::string comm, device;
};

// absl's codes, OK among them.
inline constexpr size_t kStatusCodes = 17;

// How long all jobs took that succeeded: counts by bucket of
// base/posix/latency_buckets.h, without those above the longest, and the sum.
struct TimesReport {
  std::vector<uint64_t> counts;
  base::Nanoseconds sum = 0;
};

// All jobs since the start.
struct JobTotalsReport {
  std::array<uint64_t, kStatusCodes> answers{};  // by absl::StatusCode
  TimesReport queue, run, total;
};

struct StatusReport {
  driver::DeviceInfo device;
  driver::CacheSyncs cache_syncs;
  base::Nanoseconds uptime = 0;
  uint32_t sessions = 0, models = 0, contexts = 0, buffers = 0;
  uint64_t jobs_queued = 0, jobs_running = 0, jobs_done = 0, jobs_failed = 0;
  std::vector<CoreReport> cores;
  MemoryKinds memory;
  uint64_t sram_free = 0;
  uint32_t faults = 0;  // on demand, in force
  uint64_t jobs_dropped = 0, jobs_shared = 0, jobs_hung = 0;
  uint32_t cores_hung = 0;  // with a job that does not end, at present
  bool draining = false;    // nothing new is taken
  uint64_t resets = 0;      // of the device, since the start
  // Of processes that host the vendor's library, likewise.
  uint64_t worker_deaths = 0;
  std::vector<ForeignUser> foreign_users;
  uint64_t admitted_ppm = 0;  // of all cores, by admitted streams
};

struct SessionReport {
  SessionId id = 0;
  SessionPeer peer;
  uint32_t contexts = 0, buffers = 0;
  uint64_t jobs = 0, npu_us = 0, memory = 0;
  // What `jobs` waited for a core and took on it, in all; npu_us is also that
  // of jobs that failed.
  uint64_t queue_us = 0, run_us = 0;
  uint64_t drops = 0;   // frames dropped for newer ones, or for their age
  uint64_t shared = 0;  // answers that another session's run gave
  SharePolicy share;
  std::vector<uint32_t> latency;  // jobs by total time; empty: none
};

struct ModelReport {
  ModelId id{};
  std::string name;
  uint32_t contexts = 0;
  // What it needs, and what of it no other model pays for: that adds up to the
  // weights of the whole board.
  uint64_t weight = 0, weight_held = 0;
  uint64_t internal = 0, loads = 0;
  bool preloaded = false;
  uint64_t jobs = 0, npu_us = 0, queue_us = 0, drops = 0;
  base::Nanoseconds run = 0;  // one run as measured lately; 0: none yet
  // What of the device runs it, and why, where there is more than one way;
  // "none": nothing does.
  std::string run_by, run_by_because;
};

struct ContextReport {
  uint32_t id = 0;
  SessionId session = 0;
  ModelId model{};
  uint32_t core_mask = 0;
  Priority priority = Priority::kMedium;
  uint64_t jobs = 0;
  CopiedBytes copied;
  uint64_t npu_us = 0, queue_us = 0, drops = 0;
  uint32_t queued = 0;
  QueuePolicy policy = QueuePolicy::kFifo;
  uint64_t rate_mhz = 0;  // of the stream it was admitted for
};

// Who has which pages of the NPU's SRAM.
struct SramReport {
  uint64_t base = 0;  // bus address of the first page
  struct Window {
    uint64_t offset = 0, size = 0;
    std::string holder;      // "context 3 of session 7", "shared, core 0"
    uint32_t core_mask = 0;  // whose windows they are; 0: of no core
    uint32_t contexts = 0;   // that take turns in it
    uint64_t saved = 0;      // DDR bytes a run, the most of any of them
  };
  uint64_t total = 0;
  std::vector<Window> windows;  // by offset; what is in none is free
};

// One user's, over all sessions of it.
struct UserReport {
  uint32_t uid = 0;
  uint32_t sessions = 0, contexts = 0, buffers = 0;
  uint64_t memory = 0, memory_limit = 0;  // bytes; limit 0: none
};

struct BufferReport {
  uint32_t id = 0;
  SessionId session = 0;
  uint64_t size = 0;
  std::string heap;
  bool imported = false;
  uint32_t bindings = 0;
};

struct MemoryReport {
  MemoryKinds kinds;
  std::vector<ModelReport> models;
  std::vector<SessionReport> sessions;
  // Weights and internal memory once per context, as without a daemon.
  uint64_t unshared_total = 0;
  // What all of it may be together, and how much of that is taken.
  uint64_t budget = 0, budget_used = 0;
  std::vector<UserReport> users;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_TERMS_TYPES_H_
