// The service with its environment in a test's hand: a clock that stands
// still, executors and timers that run when told, sinks that remember.

#ifndef DAEMON_CORE_TESTING_CORE_FIXTURE_H_
#define DAEMON_CORE_TESTING_CORE_FIXTURE_H_

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "daemon/core/jobs/job_limits.h"
#include "daemon/core/service.h"
#include "daemon/core/testing/fake_device.h"
#include "driver/memory/heap.h"
#include "gtest/gtest.h"

namespace rknnd::core::testing {

class ManualExecutor final : public base::Executor {
 public:
  void Post(std::function<void()> task) override;
  // Runs the oldest task; false when there is none.
  bool RunOne();

 private:
  base::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ RKNND_GUARDED_BY(mutex_);
};

class ManualTimers final : public TimerQueue {
 public:
  explicit ManualTimers(const base::Clock* clock) : clock_(clock) {}
  uint64_t RunAfter(base::Nanoseconds delay,
                    std::function<void()> task) override;
  void Cancel(uint64_t timer) override { tasks_.erase(timer); }
  void RunDue();
  [[nodiscard]] size_t waiting() const { return tasks_.size(); }

 private:
  struct Task {
    base::Nanoseconds due;
    std::function<void()> run;
  };
  const base::Clock* const clock_;
  uint64_t next_ = 1;
  std::map<uint64_t, Task> tasks_;
};

class RecordingSink final : public CompletionSink {
 public:
  void Complete(const JobCompletion& completion) override;
  void Begin(uint32_t slot, uint32_t sequence) override;
  [[nodiscard]] std::vector<JobCompletion> all() const;
  // The only completion so far; a failure elsewhere is none.
  [[nodiscard]] JobCompletion last() const;
  [[nodiscard]] size_t count() const { return all().size(); }
  // Jobs that were on a core, by slot and sequence.
  [[nodiscard]] std::vector<std::pair<uint32_t, uint32_t>> begun() const;

 private:
  mutable base::Mutex mutex_;
  std::vector<JobCompletion> completions_ RKNND_GUARDED_BY(mutex_);
  std::vector<std::pair<uint32_t, uint32_t>> begun_ RKNND_GUARDED_BY(mutex_);
};

class RecordingLog final : public LogSink {
 public:
  void Log(uint32_t level, const std::string& text) override {
    lines.push_back(std::to_string(level) + " " + text);
  }
  std::vector<std::string> lines;
};

class CountingWaker final : public WorkerWaker {
 public:
  void WakeOne() override { ++count; }
  void ExpireBy(base::Nanoseconds when) override {
    ++alarms;
    base::Nanoseconds set = alarm;
    while (when < set && !alarm.compare_exchange_weak(set, when)) {
    }
  }
  std::atomic<uint32_t> count{0};
  // When the alarm goes off; kNever: it is not set. How often it was.
  std::atomic<base::Nanoseconds> alarm{kNever};
  std::atomic<uint32_t> alarms{0};
};

struct TestSession {
  std::shared_ptr<Session> session;
  std::shared_ptr<RecordingSink> sink;
  std::shared_ptr<RecordingLog> log;
  Session* operator->() const { return session.get(); }
};

class CoreTest : public ::testing::Test {
 protected:
  explicit CoreTest(uint32_t cores = 3);
  ~CoreTest() override;

  // Again, with other options: a restart of the daemon.
  void StartService();
  void StopService();

  TestSession Open(int32_t pid = 100, uint32_t uid = 1000);
  // Runs loop, loaders and pager until all are idle.
  void RunLoops();
  void Advance(base::Nanoseconds time);
  // The alarm goes off whenever it is due meanwhile, as in the daemon.
  void PassTime(base::Nanoseconds time);

  // Each runs the loops until answered; nullopt: never answered.
  std::optional<absl::Status> Upload(const TestSession& session,
                                     const std::string& model,
                                     const std::string& options = "");
  std::optional<absl::Status> Create(const TestSession& session,
                                     uint32_t number, const std::string& model,
                                     uint32_t flags = 0,
                                     uint32_t core_mask = 0);
  absl::StatusOr<BufferInfo> AllocateNow(const TestSession& session,
                                         uint32_t buffer, uint64_t size,
                                         uint32_t flags);
  absl::StatusOr<BufferInfo> ImportNow(const TestSession& session,
                                       uint32_t buffer, base::UniqueFd fd,
                                       uint64_t expected_size);
  absl::Status SetCoreMaskNow(const TestSession& session, uint32_t context,
                              uint32_t core_mask);
  // The same without running the loops.
  void StartUpload(const TestSession& session, const std::string& claimed,
                   const std::string& sent, std::vector<absl::Status>* answers);
  void StartCreate(const TestSession& session, uint32_t number,
                   const std::string& model,
                   std::vector<absl::Status>* answers);

  // A loaded model's context with buffers `number` * 100 + i bound to all its
  // tensors: ready to run.
  void MakeReady(const TestSession& session, uint32_t number,
                 const std::string& model, uint32_t flags = 0,
                 uint32_t core_mask = 0);
  absl::Status Submit(const TestSession& session, uint32_t context,
                      uint32_t slot, uint32_t sequence = 1);
  void RunReady() { service->runner().RunReady(); }
  // As an operator; `done` when nothing runs any more.
  void DrainService(const std::function<void()>& done = [] {}) {
    service->BeginDrain(Drain::Reason::kOperator,
                        [done](const absl::Status& status) {
                          EXPECT_TRUE(status.ok()) << status;
                          done();
                        });
  }

  static ModelId Id(const std::string& model, const std::string& options = "");
  static BindRequest BindTo(uint32_t context, driver::Direction direction,
                            uint32_t index, uint32_t buffer, uint64_t size);
  // Fds this process has open.
  static size_t OpenFds();
  MemoryKinds memory() const { return service->Memory().kinds; }

  base::FakeClock clock;
  FakeDevice device;
  driver::Heaps heaps;
  ManualExecutor loop, loader, quick_loader, pager;
  ManualTimers timers;
  CountingWaker waker;
  ServiceOptions options;
  std::unique_ptr<Service> service;
};

// A fresh folder, removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace rknnd::core::testing

#endif  // DAEMON_CORE_TESTING_CORE_FIXTURE_H_
