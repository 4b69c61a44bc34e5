// Tests of turns in shared internal memory, through the scheduler that keeps
// them.

#include "daemon/core/scheduling/memory_turns.h"

#include <array>
#include <memory>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/scheduling/scheduler.h"
#include "daemon/core/testing/fake_device.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

constexpr uint32_t kAnyCore = 0b111;
constexpr size_t kContexts = 100;
constexpr driver::MemoryIdentity kMemory{1, 7};

class MemoryTurnsTest : public ::testing::Test {
 protected:
  MemoryTurnsTest() {
    auto loaded = device_.Load({{}, "", "m"});
    auto model = std::make_shared<LoadedModel>();
    model->model = *std::move(loaded);
    for (uint32_t i = 0; i < contexts_.size(); ++i) {
      ContextTraits traits;
      traits.number = i;
      contexts_[i] = std::make_shared<RunContext>(traits, model, nullptr);
    }
  }

  // Null: without memory of the program's.
  Job* Enqueue(uint32_t context, const MemoryRange* alone,
               uint32_t cores = kAnyCore, bool gang = false) {
    jobs_.push_back(std::make_unique<Job>());
    Job* job = jobs_.back().get();
    job->hold.context = contexts_[context];
    job->cores = {cores, gang};
    job->alone = alone;
    EXPECT_EQ(scheduler_.Enqueue(job), Scheduler::Entry::kQueued);
    return job;
  }
  Job* Take() { return scheduler_.TakeNext().job; }
  bool Release(Job* job) {
    return scheduler_.Release(*job->hold.context, job->granted, 0);
  }

  const MemoryRange all_{kMemory, 0, 100};
  const MemoryRange left_{kMemory, 0, 50};
  const MemoryRange right_{kMemory, 50, 100};
  base::FakeClock clock_;
  testing::FakeDevice device_{3, &clock_};
  std::array<std::shared_ptr<RunContext>, kContexts> contexts_;
  std::vector<std::unique_ptr<Job>> jobs_;
  Scheduler scheduler_{3, 4, {}, &clock_};
};

TEST_F(MemoryTurnsTest, ContextsOfOneMemoryRunOneAfterTheOther) {
  Job* first = Enqueue(0, &all_);
  Job* second = Enqueue(1, &all_);
  EXPECT_EQ(Take(), first);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_TRUE(Release(first));
  EXPECT_EQ(Take(), second);
}

TEST_F(MemoryTurnsTest, MoreIsSaidOnlyOfWhatCanRun) {
  Enqueue(0, &all_);
  Enqueue(1, &all_);
  const Scheduler::Turn turn = scheduler_.TakeNext();
  ASSERT_NE(turn.job, nullptr);
  EXPECT_FALSE(turn.more);
}

TEST_F(MemoryTurnsTest, RangesBesideEachOtherRunAtOnce) {
  Job* first = Enqueue(0, &left_);
  Job* second = Enqueue(1, &right_);
  EXPECT_EQ(Take(), first);
  EXPECT_EQ(Take(), second);
}

TEST_F(MemoryTurnsTest, OtherContextsPassOneThatWaits) {
  Job* first = Enqueue(0, &all_);
  Enqueue(1, &all_);
  Job* free = Enqueue(2, nullptr);
  EXPECT_EQ(Take(), first);
  EXPECT_EQ(Take(), free);
}

TEST_F(MemoryTurnsTest, WaitingContextComesBackInItsOldPlace) {
  Job* first = Enqueue(0, &all_, 1);
  Job* waits = Enqueue(1, &all_, 1);
  Job* younger = Enqueue(2, nullptr, 1);
  ASSERT_EQ(Take(), first);
  ASSERT_EQ(Take(), nullptr);
  Release(first);
  EXPECT_EQ(Take(), waits);
  Release(waits);
  EXPECT_EQ(Take(), younger);
}

TEST_F(MemoryTurnsTest, OldestThatWaitsHasTheNextTurn) {
  Job* first = Enqueue(0, &all_);
  ASSERT_EQ(Take(), first);
  Job* second = Enqueue(1, &all_);
  ASSERT_EQ(Take(), nullptr);
  // Comes back at once, and again and again.
  Job* again = Enqueue(0, &all_);
  Release(first);
  EXPECT_EQ(Take(), second);
  EXPECT_EQ(Take(), nullptr);
  Release(second);
  EXPECT_EQ(Take(), again);
}

TEST_F(MemoryTurnsTest, PartsDoNotKeepTheWholeFromItsTurn) {
  Job* left = Enqueue(0, &left_);
  ASSERT_EQ(Take(), left);
  Job* whole = Enqueue(1, &all_);
  ASSERT_EQ(Take(), nullptr);
  // Its memory is free, but somebody older waits for it.
  Job* right = Enqueue(2, &right_);
  EXPECT_EQ(Take(), nullptr);
  Release(left);
  EXPECT_EQ(Take(), whole);
  Release(whole);
  EXPECT_EQ(Take(), right);
}

TEST_F(MemoryTurnsTest, MemoryIsKeptForOneThatThenWaitsForItsCore) {
  Job* runs = Enqueue(0, &all_, 2);
  ASSERT_EQ(Take(), runs);
  Job* waits = Enqueue(1, &all_, 1);
  ASSERT_EQ(Take(), nullptr);
  Job* core = Enqueue(2, nullptr, 1);
  ASSERT_EQ(Take(), core);
  Job* younger = Enqueue(3, &all_, 4);
  Release(runs);
  // Core 2 and the memory are free, but it is another one's turn.
  EXPECT_EQ(Take(), nullptr);
  Release(core);
  EXPECT_EQ(Take(), waits);
  Release(waits);
  EXPECT_EQ(Take(), younger);
}

TEST_F(MemoryTurnsTest, HigherClassTakesMemoryThatIsOnlyKept) {
  ContextTraits traits;
  traits.priority = Priority::kHigh;
  contexts_[3] =
      std::make_shared<RunContext>(traits, contexts_[0]->model(), nullptr);
  Job* runs = Enqueue(0, &all_, 2);
  ASSERT_EQ(Take(), runs);
  Job* waits = Enqueue(1, &all_, 1);
  ASSERT_EQ(Take(), nullptr);
  Job* core = Enqueue(2, nullptr, 1);
  ASSERT_EQ(Take(), core);
  Release(runs);
  Job* high = Enqueue(3, &left_, 4);
  EXPECT_EQ(Take(), high);
  Release(core);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_TRUE(Release(high));
  EXPECT_EQ(Take(), waits);
}

TEST_F(MemoryTurnsTest, HigherClassHasTheNextTurnThoughItCameLater) {
  ContextTraits traits;
  traits.priority = Priority::kHigh;
  contexts_[2] =
      std::make_shared<RunContext>(traits, contexts_[0]->model(), nullptr);
  Job* runs = Enqueue(0, &all_);
  ASSERT_EQ(Take(), runs);
  Job* older = Enqueue(1, &all_, 2);
  ASSERT_EQ(Take(), nullptr);
  Job* higher = Enqueue(2, &all_, 4);
  ASSERT_EQ(Take(), nullptr);
  Release(runs);
  EXPECT_EQ(Take(), higher);
  EXPECT_EQ(Take(), nullptr);
  Release(higher);
  EXPECT_EQ(Take(), older);
}

// A frame that is replaced while its context waits for memory.
TEST_F(MemoryTurnsTest, ReplacedJobLeavesItsPlaceToTheNext) {
  Job* runs = Enqueue(0, &all_);
  ASSERT_EQ(Take(), runs);
  Job* old = Enqueue(1, &all_);
  ASSERT_EQ(Take(), nullptr);
  Job* behind = Enqueue(2, &all_);
  ASSERT_EQ(Take(), nullptr);
  Job* newer = Enqueue(1, &all_);
  EXPECT_TRUE(scheduler_.Remove(old));
  Release(runs);
  EXPECT_EQ(Take(), newer);
  Release(newer);
  EXPECT_EQ(Take(), behind);
}

TEST_F(MemoryTurnsTest, GangThatWaitsForMemoryKeepsNoCore) {
  Job* runs = Enqueue(0, &all_, 1);
  ASSERT_EQ(Take(), runs);
  Job* gang = Enqueue(1, &all_, 0b11, true);
  Job* younger = Enqueue(2, nullptr, 0b10);
  EXPECT_EQ(Take(), younger);
  Release(runs);
  // Now it keeps them: this one would end later than `younger`.
  clock_.Advance(base::kMillisecond);
  Enqueue(3, nullptr, 1);
  EXPECT_EQ(Take(), nullptr);
  Release(younger);
  EXPECT_EQ(Take(), gang);
}

TEST_F(MemoryTurnsTest, CancelledContextGivesUpItsPlaceAndItsTurn) {
  Job* runs = Enqueue(0, &all_);
  ASSERT_EQ(Take(), runs);
  Enqueue(1, &all_);
  ASSERT_EQ(Take(), nullptr);
  EXPECT_NE(scheduler_.Cancel(*contexts_[1]), nullptr);
  Job* next = Enqueue(2, &all_, 1);
  ASSERT_EQ(Take(), nullptr);
  Job* last = Enqueue(3, &all_, 2);
  ASSERT_EQ(Take(), nullptr);
  Release(runs);
  // Its turn, but not its core's: cancelled there.
  EXPECT_NE(scheduler_.Cancel(*contexts_[2]), nullptr);
  EXPECT_EQ(next->next, nullptr);
  EXPECT_EQ(Take(), last);
  Release(last);
  EXPECT_EQ(scheduler_.counts().queued, 0U);
  EXPECT_EQ(scheduler_.counts().running, 0U);
}

TEST_F(MemoryTurnsTest, RunningContextIsCancelledWithoutHarm) {
  Job* runs = Enqueue(0, &all_);
  ASSERT_EQ(Take(), runs);
  Enqueue(0, &all_);
  Job* other = Enqueue(1, &all_);
  ASSERT_EQ(Take(), nullptr);
  EXPECT_NE(scheduler_.Cancel(*contexts_[0]), nullptr);
  EXPECT_EQ(Take(), nullptr);
  Release(runs);
  EXPECT_EQ(Take(), other);
}

TEST_F(MemoryTurnsTest, AllOfMoreThanAreLookedAtHaveTheirTurn) {
  for (uint32_t i = 0; i < kContexts; ++i) {
    Enqueue(i, &all_);
    Enqueue(i, i % 2 == 0 ? &left_ : &right_);
  }
  // Whatever runs never overlaps, and nothing is left.
  std::vector<Job*> running;
  size_t done = 0;
  while (done < 2 * kContexts) {
    while (Job* job = Take()) {
      for (const Job* other : running) {
        ASSERT_FALSE(other->alone->Overlaps(*job->alone));
      }
      running.push_back(job);
    }
    ASSERT_FALSE(running.empty());
    Release(running.front());
    running.erase(running.begin());
    ++done;
  }
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(MemoryTurnsTest, RandomHistoryLosesNothingAndOverlapsNever) {
  uint32_t state = 7;
  const auto next = [&state](uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  const MemoryRange ranges[] = {
      all_, left_, right_, {kMemory, 40, 60}, {{1, 8}, 0, 10}};
  std::vector<Job*> running;
  size_t queued = 0, taken = 0, cancelled = 0;
  for (int step = 0; step < 20000; ++step) {
    const uint32_t choice = next(10);
    if (choice < 4) {
      auto job = std::make_unique<Job>();
      job->hold.context = contexts_[next(12)];
      const uint32_t cores = next(5);
      job->cores = cores == 4   ? CoreChoice{0b111, true}
                   : cores == 3 ? CoreChoice{kAnyCore, false}
                                : CoreChoice{1U << cores, false};
      const uint32_t range = next(6);
      job->alone = range == 5 ? nullptr : &ranges[range];
      if (scheduler_.Enqueue(job.get()) == Scheduler::Entry::kQueued) {
        ++queued;
        jobs_.push_back(std::move(job));
      }
    } else if (choice < 5 && next(20) == 0) {
      for (Job* job = scheduler_.Cancel(*contexts_[next(12)]); job != nullptr;
           job = job->next) {
        ++cancelled;
      }
    } else if (choice < 8) {
      Job* job = Take();
      if (job == nullptr) continue;
      ++taken;
      for (const Job* other : running) {
        if (other->alone == nullptr || job->alone == nullptr) continue;
        ASSERT_FALSE(other->alone->Overlaps(*job->alone)) << step;
      }
      running.push_back(job);
    } else if (!running.empty()) {
      const size_t at = next(static_cast<uint32_t>(running.size()));
      Release(running[at]);
      running.erase(running.begin() + static_cast<ptrdiff_t>(at));
    }
  }
  for (;;) {
    while (Job* job = Take()) {
      ++taken;
      running.push_back(job);
    }
    if (running.empty()) break;
    Release(running.back());
    running.pop_back();
  }
  EXPECT_EQ(taken + cancelled, queued);
  EXPECT_EQ(scheduler_.counts().queued, 0U);
}

}  // namespace
}  // namespace rknnd::core
