// Reaps workers and takes down what they print. The only owner of their process
// ids: nobody else waits for them.

#ifndef DRIVER_RKNNRT_WORKER_WATCH_H_
#define DRIVER_RKNNRT_WORKER_WATCH_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"

namespace rknnd::rknnrt {

// Has one thread, on which all callbacks come. Thread: any, but the destructor,
// which is its owner's: it kills what is left and waits for it.
class WorkerWatch {
 public:
  // `log`: lines that workers print, few of them a second, and what is said of
  // those that were left out.
  using Log = std::function<void(const std::string&)>;
  static absl::StatusOr<std::unique_ptr<WorkerWatch>> Start(
      const base::Clock& clock, Log log);
  ~WorkerWatch();
  WorkerWatch(const WorkerWatch&) = delete;
  WorkerWatch& operator=(const WorkerWatch&) = delete;

  // A process of this number from now on; `ended(wait status)` is called once,
  // when it has been reaped.
  using Number = uint64_t;
  Number Add(pid_t pid, base::UniqueFd pid_fd, base::UniqueFd output,
             std::function<void(int)> ended);
  // It is to end by itself, and is killed where it does not.
  void EndSoon(Number number);

 private:
  struct Process {
    pid_t pid = 0;
    base::UniqueFd pid_fd, output;
    base::EventLoop::WatchId pid_watch = 0, output_watch = 0;
    std::function<void(int)> ended;
    std::string line;              // begun, and not ended yet
    base::Nanoseconds second = 0;  // in which lines are counted
    uint32_t lines = 0, left_out = 0;
  };

  WorkerWatch(std::unique_ptr<base::EventLoop> loop, const base::Clock& clock,
              Log log);
  void OnOutput(Number number);
  void Take(Process& process, const char* text, size_t size);
  void Say(Process& process, const std::string& line);
  void OnEnded(Number number);

  const std::unique_ptr<base::EventLoop> loop_;
  const base::Clock& clock_;
  const Log log_;
  std::atomic<Number> last_{0};
  std::map<Number, Process> processes_;  // of the loop's thread
  std::thread thread_;
};

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_WORKER_WATCH_H_
