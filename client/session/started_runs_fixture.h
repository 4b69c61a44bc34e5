// A session with a daemon that lives in the test, dies and comes back, and a
// context that can run. For the tests of runs that are not waited for.

#ifndef CLIENT_SESSION_STARTED_RUNS_FIXTURE_H_
#define CLIENT_SESSION_STARTED_RUNS_FIXTURE_H_

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "base/posix/clock.h"
#include "client/include/rknn_api.h"
#include "client/session/fake_daemon.h"
#include "client/session/target.h"
#include "client/session/target_fixture.h"

namespace rknnd::client {

using Runs = FakeDaemon::Runs;

inline bool CanBeRead(int fd, int timeout_ms = 0) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1;
}
// For what must happen; for what must not, nothing is waited for.
inline constexpr int kPatience = 60'000;

class StartedRunsFixture : public TargetTest {
 protected:
  void SetUp() override { Open(Options()); }
  void Open(SessionOptions options) {
    ASSERT_NO_FATAL_FAILURE(TargetTest::Open(std::move(options)));
    MakeRunnable(kContext);
    daemon_.set_runs(Runs::kHold);
  }

  // Its buffer.
  uint32_t BindNewInput(uint32_t set = 0) {
    return BindNew(Direction::kInput, set);
  }
  uint32_t BindNewOutput() { return BindNew(Direction::kOutput, 0); }
  uint32_t BindNew(Direction direction, uint32_t set) {
    auto buffer = target_->AllocateBuffer(64, 0);
    EXPECT_TRUE(buffer.ok());
    Binding binding;
    binding.set = set;
    binding.buffer = buffer->number;
    binding.size = 64;
    binding.type = RKNN_TENSOR_FLOAT32;
    EXPECT_TRUE(target_->Bind(kContext, direction, 0, binding).ok());
    return buffer->number;
  }

  RunRef Start(uint64_t frame, uint32_t notice = 0,
               uint32_t context = kContext) {
    RunRequest request;
    request.context = context;
    request.frame = frame;
    request.notice = notice;
    return Start(request);
  }
  RunRef Start(const RunRequest& request) {
    auto run = target_->Start(request);
    EXPECT_TRUE(run.ok()) << run.error().message;
    return run.ok() ? *run : RunRef(&none_);
  }
  testing::AssertionResult Ends(const RunRef& run, base::Code code) {
    if (!target_->Await(*run, clock_.Now() + kPatience * base::kMillisecond)) {
      return testing::AssertionFailure() << "it has not ended";
    }
    if (run->code == code) return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << static_cast<int>(run->code) << " " << run->text;
  }
  std::shared_ptr<RunNotice> Notice() {
    auto notice = target_->MakeNotice();
    EXPECT_TRUE(notice.ok()) << notice.error().message;
    return *notice;
  }
  // As a program's event loop does.
  bool EndsByNotice(RunNotice& notice, const RunRef& run) {
    for (;;) {
      if (!CanBeRead(notice.fd(), kPatience)) return false;
      notice.Clear();
      if (target_->Look(*run)) return true;
    }
  }
  void Restart(Runs runs = Runs::kAnswer) {
    daemon_.Stop();
    daemon_.set_runs(runs);
    daemon_.Start();
  }

  const base::MonotonicClock clock_{};
  StartedRun none_;
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_STARTED_RUNS_FIXTURE_H_
