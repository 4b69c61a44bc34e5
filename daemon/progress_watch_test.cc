// Tests of what counts as standing still, for made-up parts and for the real
// ones that main has looked at.

#include "daemon/progress_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/posix/task_thread.h"
#include "daemon/core/running/worker_pulse.h"
#include "daemon/task_meter.h"

namespace rknnd {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr base::Nanoseconds kLimit = 30 * base::kSecond;
constexpr base::Nanoseconds kPeriod = kLimit / 2;

class ProgressWatchTest : public ::testing::Test {
 protected:
  // As the watchdog does, for so long; what the last look said.
  std::string LookFor(base::Nanoseconds time) {
    std::string standing;
    for (; time > 0; time -= kPeriod) {
      clock_.Advance(kPeriod);
      standing = watch_.Check();
    }
    return standing;
  }

  base::FakeClock clock_;
  ProgressWatch watch_{&clock_, kLimit};
  ProgressWatch::Look look_;
};

TEST_F(ProgressWatchTest, NothingToWatchIsWell) {
  EXPECT_THAT(LookFor(kLimit * 3), IsEmpty());
}

TEST_F(ProgressWatchTest, IdlePartsMayStandForEver) {
  watch_.Add("it", [this] { return look_; });
  EXPECT_THAT(LookFor(kLimit * 10), IsEmpty());
}

TEST_F(ProgressWatchTest, BusyPartThatStandsForTheLimitIsNamed) {
  watch_.Add("the loader", [this] { return look_; });
  look_ = {true, 7};
  EXPECT_THAT(watch_.Check(), IsEmpty());
  EXPECT_THAT(LookFor(kPeriod), IsEmpty());
  EXPECT_EQ(LookFor(kPeriod), "the loader has stood still for 30 s");
  look_.steps = 8;
  EXPECT_THAT(LookFor(kPeriod), IsEmpty());
  EXPECT_THAT(LookFor(kPeriod), IsEmpty());
  EXPECT_THAT(LookFor(kPeriod), Not(IsEmpty()));
}

TEST_F(ProgressWatchTest, StepsAreProgressHoweverBusy) {
  watch_.Add("it", [this] {
    ++look_.steps;
    return look_;
  });
  look_.busy = true;
  EXPECT_THAT(LookFor(kLimit * 10), IsEmpty());
}

TEST_F(ProgressWatchTest, PauseBetweenTwoTasksIsNoStandingStill) {
  watch_.Add("it", [this] { return look_; });
  for (int i = 0; i < 5; ++i) {
    look_.busy = true;
    EXPECT_THAT(LookFor(kPeriod), IsEmpty());
    look_.busy = false;
    EXPECT_THAT(LookFor(kPeriod), IsEmpty());
  }
}

TEST_F(ProgressWatchTest, PartMayHaveALongerLimitOfItsOwn) {
  watch_.Add(
      "a task", [this] { return look_; }, kLimit * 4);
  look_.busy = true;
  EXPECT_THAT(LookFor(kLimit * 4), IsEmpty());
  EXPECT_THAT(LookFor(kPeriod), HasSubstr("a task"));
}

TEST_F(ProgressWatchTest, EachPartThatStandsIsNamed) {
  watch_.Add("one", [this] { return look_; });
  watch_.Add("idle", [] { return ProgressWatch::Look(); });
  watch_.Add("two", [this] { return look_; });
  look_.busy = true;
  const std::string standing = LookFor(kLimit * 2);
  EXPECT_THAT(standing, HasSubstr("one has stood"));
  EXPECT_THAT(standing, HasSubstr("; two has stood"));
  EXPECT_THAT(standing, Not(HasSubstr("idle")));
}

TEST_F(ProgressWatchTest, TimeInWhichNobodyLookedDoesNotCount) {
  watch_.Add("it", [this] { return look_; });
  look_.busy = true;
  EXPECT_THAT(watch_.Check(), IsEmpty());
  // Stopped as a whole, by a signal say.
  clock_.Advance(kLimit * 100);
  EXPECT_THAT(watch_.Check(), IsEmpty());
  EXPECT_THAT(LookFor(kPeriod), IsEmpty());
  EXPECT_THAT(LookFor(kPeriod), Not(IsEmpty()));
}

// ---- the parts --------------------------------------------------------------

TEST_F(ProgressWatchTest, WorkerInTheDeviceOrAsleepIsNotStuckOneAtWorkIs) {
  using core::WorkerPulse;
  WorkerPulse pulse;
  watch_.Add("worker 0", [&pulse] {
    return ProgressWatch::Look{WorkerPulse::IsAtWork(pulse.word()),
                               pulse.word()};
  });
  EXPECT_THAT(LookFor(kLimit * 2), IsEmpty()) << "asleep";
  pulse.Step(WorkerPulse::At::kWork);
  EXPECT_THAT(LookFor(kPeriod), IsEmpty());
  pulse.Step(WorkerPulse::At::kWork);
  EXPECT_THAT(LookFor(kPeriod * 2), IsEmpty()) << "one step further";
  WorkerPulse::SetOfThread(&pulse);
  {
    const core::InDevice device;
    EXPECT_THAT(LookFor(kLimit * 2), IsEmpty()) << "a device that hangs";
  }
  WorkerPulse::SetOfThread(nullptr);
  EXPECT_THAT(LookFor(kLimit * 2), HasSubstr("worker 0"));
}

// A task that is held until it is let go.
class Gate {
 public:
  void Wait() {
    std::unique_lock lock(mutex_);
    in_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void AwaitEntered() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return in_; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool in_ = false, open_ = false;
};

class TaskMeterTest : public ProgressWatchTest {
 protected:
  void SetUp() override {
    thread_.Start();
    watch_.Add("the loader", [this] {
      return ProgressWatch::Look{meter_.busy(),
                                 meter_.ended() + meter_.cpu_time()};
    });
  }
  // Until all that was posted has ended.
  void AwaitIdle() {
    while (meter_.busy()) std::this_thread::yield();
  }

  base::TaskThread thread_{"test"};
  TaskMeter meter_{&thread_};
};

TEST_F(TaskMeterTest, ThreadWithoutTasksIsIdle) {
  EXPECT_FALSE(meter_.busy());
  meter_.Post([] {});
  AwaitIdle();
  EXPECT_EQ(meter_.ended(), 1U);
  EXPECT_THAT(LookFor(kLimit * 2), IsEmpty());
}

TEST_F(TaskMeterTest, TaskThatWaitsForSomethingIsStuck) {
  Gate gate;
  meter_.Post([&gate] { gate.Wait(); });
  gate.AwaitEntered();
  // It falls asleep a moment later; from then on its CPU time stands still.
  std::string standing;
  for (int i = 0; i < 1'000'000 && standing.empty(); ++i) {
    clock_.Advance(kPeriod);
    standing = watch_.Check();
  }
  EXPECT_THAT(standing, HasSubstr("the loader"));
  gate.Open();
  AwaitIdle();
  EXPECT_THAT(LookFor(kPeriod), IsEmpty());
}

TEST_F(TaskMeterTest, TaskThatComputesIsNotStuck) {
  std::atomic<bool> begun{false}, end{false};
  meter_.Post([&] {
    begun.store(true);
    while (!end.load()) {
    }
  });
  while (!begun.load()) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) {
    // As long as a look is short, the thread has computed in between.
    const uint64_t before = meter_.cpu_time();
    while (meter_.cpu_time() == before) std::this_thread::yield();
    clock_.Advance(kPeriod);
    EXPECT_THAT(watch_.Check(), IsEmpty());
  }
  end.store(true);
  AwaitIdle();  // it looks at both until then
}

TEST_F(TaskMeterTest, TaskIsOverWhenWhatItOwnsHasGone) {
  // Destroyed on the thread, before the task counts as ended.
  struct Owned {
    explicit Owned(const TaskMeter* m, std::atomic<bool>* b)
        : meter(m), busy_at_end(b) {}
    ~Owned() { busy_at_end->store(meter->busy()); }
    const TaskMeter* meter;
    std::atomic<bool>* busy_at_end;
  };
  std::atomic<bool> busy_at_end{false};
  meter_.Post([owned = std::make_shared<Owned>(&meter_, &busy_at_end)] {});
  AwaitIdle();
  EXPECT_TRUE(busy_at_end.load());
}

}  // namespace
}  // namespace rknnd
