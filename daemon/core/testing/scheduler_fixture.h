// A scheduler of three cores with six contexts of one share, in a test's hand.

#ifndef DAEMON_CORE_TESTING_SCHEDULER_FIXTURE_H_
#define DAEMON_CORE_TESTING_SCHEDULER_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/scheduling/scheduler.h"
#include "daemon/core/testing/fake_device.h"
#include "gtest/gtest.h"

namespace rknnd::core::testing {

inline constexpr uint32_t kAny = 0b111;
inline constexpr base::Nanoseconds kRun = 10 * base::kMillisecond;

class SchedulerTest : public ::testing::Test {
 protected:
  // Six contexts of one share.
  SchedulerTest() {
    const auto share = NewShare();
    for (int i = 0; i < 6; ++i) AddContext(share);
  }
  ~SchedulerTest() override {
    for (const auto& context : contexts_) scheduler_.Cancel(*context);
  }

  static std::shared_ptr<Share> NewShare(
      uint32_t weight = 100, std::shared_ptr<ShareGroup> group = nullptr) {
    return std::make_shared<Share>(SharePolicy{Priority::kHigh, weight}, 3,
                                   std::move(group));
  }
  uint32_t AddContext(std::shared_ptr<Share> share,
                      Priority priority = Priority::kMedium,
                      base::Nanoseconds run = kRun,
                      std::string_view model = "") {
    auto loaded = device_.Load({std::as_bytes(std::span(model)), "", "m"});
    auto made = std::make_shared<LoadedModel>();
    made->model = *std::move(loaded);
    made->run_times = std::vector<RunTimes>(1);
    for (const uint32_t mask : {0b1U, 0b11U, 0b111U}) {
      made->run_times[0].Record(mask, run);
    }
    ContextTraits traits;
    traits.number = static_cast<uint32_t>(contexts_.size());
    traits.priority = priority;
    traits.share = std::move(share);
    contexts_.push_back(
        std::make_shared<RunContext>(traits, std::move(made), nullptr));
    return traits.number;
  }

  Scheduler::Entry TryEnqueue(uint32_t context,
                              const CoreChoice& cores = {kAny, false}) {
    jobs_.push_back(std::make_unique<Job>());
    jobs_.back()->hold.context = contexts_[context];
    jobs_.back()->cores = cores;
    return scheduler_.Enqueue(jobs_.back().get());
  }
  Job* Enqueue(uint32_t context, uint32_t cores = kAny, bool gang = false) {
    EXPECT_EQ(TryEnqueue(context, {cores, gang}), Scheduler::Entry::kQueued);
    return jobs_.back().get();
  }
  Job* EnqueueGang(uint32_t context, uint32_t cores) {
    return Enqueue(context, cores, true);
  }
  Job* EnqueueHeld(uint32_t context) {
    jobs_.push_back(std::make_unique<Job>());
    Job* job = jobs_.back().get();
    job->hold.context = contexts_[context];
    job->cores = {kAny, false};
    job->waits_for_fence = true;
    EXPECT_EQ(scheduler_.Enqueue(job), Scheduler::Entry::kQueued);
    return job;
  }
  Job* Take() { return scheduler_.TakeNext().job; }
  // It ran as long as expected.
  bool Release(Job* job, base::Nanoseconds used = kRun) {
    return scheduler_.Release(*job->hold.context, job->granted, used);
  }
  // Runs `count` jobs one after the other on core 0, each followed by another
  // of its context; how many each context had.
  std::vector<int> RunOnCore0(int count) {
    std::vector<int> had(contexts_.size());
    for (int i = 0; i < count; ++i) {
      Job* job = Take();
      if (job == nullptr) break;
      const uint32_t context = job->hold.context->traits().number;
      ++had[context];
      const base::Nanoseconds run = job->expected;
      clock_.Advance(run);
      Enqueue(context, 0b001);
      Release(job, run);
    }
    return had;
  }

  base::FakeClock clock_;
  FakeDevice device_{3, &clock_};
  std::vector<std::shared_ptr<RunContext>> contexts_;
  std::vector<std::unique_ptr<Job>> jobs_;
  Scheduler scheduler_{3, 4, {}, &clock_};
};

}  // namespace rknnd::core::testing

#endif  // DAEMON_CORE_TESTING_SCHEDULER_FIXTURE_H_
