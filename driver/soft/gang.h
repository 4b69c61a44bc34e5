// The threads with which several cores share one job. The job runs on the
// thread that submits it, with its lowest core; each further core has a thread
// here, which does that core's part of the layers that are shared out and
// otherwise waits.
//
//   parked --a job begins or shares a layer--> looking --part--> looking
//      ^                                          |
//      +------------ nothing for kPatience -------+
//
// Parked threads sleep in a futex without a timeout: an idle device wakes
// nobody. A part that its thread has not begun when the job's own is done, as
// on a machine with other work, is done by the job's thread: a gang is hardly
// ever slower than one core.

#ifndef DRIVER_SOFT_GANG_H_
#define DRIVER_SOFT_GANG_H_

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// One part of a layer's work, with scratch of its own. May throw.
using PartWork = absl::FunctionRef<absl::Status(Part part, std::byte* scratch)>;

// What one core's thread is told and answers.
class CoreThread {
 public:
  explicit CoreThread(uint32_t core);
  ~CoreThread();  // no work is under way
  CoreThread(const CoreThread&) = delete;
  CoreThread& operator=(const CoreThread&) = delete;

  // Thread: that of the job.
  // There is work soon: the thread looks for it, for a while, on another CPU
  // than `cpu`, which the job's thread is on: where all are busy the kernel
  // would let it wait there for the very thread that waits for it.
  void Rouse(int cpu);
  // One part at a time, each followed by Finish, which gives its answer.
  void Start(const PartWork& work, Part part, std::byte* scratch);
  absl::Status Finish();

 private:
  //   kIdle --Start--> kOffered --thread--> kTaken --thread--> kDone
  //     ^                  |                                     |
  //     +------Finish------+---------------Finish----------------+
  enum State : uint32_t { kIdle, kOffered, kTaken, kDone };

  void Run();

  cpu_set_t cpus_;  // those it may run on
  int left_out_ = -1;

  // All that the two ends tell each other lies in one cache line, which then
  // moves twice for a part.
  // Of the part: the job's thread writes them before it offers it, whoever
  // takes it reads them.
  alignas(64) const PartWork* work_ = nullptr;
  std::byte* scratch_ = nullptr;
  Part part_;
  absl::Status status_;  // written before kDone
  // What each end watches, and whether it sleeps meanwhile.
  std::atomic<uint32_t> offers_{0};  // counts: the thread's
  std::atomic<uint32_t> thread_sleeps_{0};
  std::atomic<uint32_t> state_{kIdle};  // of State: the job's
  std::atomic<uint32_t> caller_sleeps_{0};
  std::atomic<bool> stop_{false};
  alignas(64) std::thread thread_;
};

// The cores of one job. Lives on the stack of its thread.
class Gang {
 public:
  static constexpr uint32_t kMaxCores = 8;

  // The scratch of the job's own core comes first; then a thread and the
  // scratch of its core for each further one.
  explicit Gang(std::byte* scratch) { scratch_[0] = scratch; }
  void Join(CoreThread* thread, std::byte* scratch);

  [[nodiscard]] uint32_t size() const { return size_; }
  // The others look up: there is work soon.
  void Rouse();
  // Does all parts, at most size() of them, at once; the first error.
  absl::Status Share(uint32_t parts, PartWork work);

 private:
  uint32_t size_ = 1;
  std::array<CoreThread*, kMaxCores> threads_{};
  std::array<std::byte*, kMaxCores> scratch_{};
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_GANG_H_
