// What the engine is made of, each by itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "daemon/transport/grpc/inference/completions.h"
#include "daemon/transport/grpc/inference/open_calls.h"
#include "daemon/transport/grpc/inference/run_queue.h"
#include "daemon/transport/grpc/inference/statistics.h"

namespace rknnd::transport {
namespace {

class RunQueueTest : public ::testing::Test {
 protected:
  class Run final : public InferenceRun {
   public:
    absl::Status Fill(std::span<const std::span<std::byte>>) override {
      return absl::OkStatus();
    }
    void Finish(const absl::Status&, const RunParts&,
                std::span<const std::span<const std::byte>>) override {}
  };

  InferenceRunPtr Push(uint64_t priority,
                       base::Nanoseconds deadline = InferenceRun::kNoDeadline,
                       const char* account = "a") {
    auto run = std::make_shared<Run>();
    run->priority = priority;
    run->deadline = deadline;
    run->account = account;
    run->set_number(++number_);
    queue_.Push(run);
    return run;
  }

  RunQueue queue_;

 private:
  uint64_t number_ = 0;
};

TEST_F(RunQueueTest, OneIsFirstAndNoPriorityIsLast) {
  const InferenceRunPtr none = Push(0);
  const InferenceRunPtr third = Push(3);
  const InferenceRunPtr first = Push(1);
  const InferenceRunPtr later = Push(1);
  EXPECT_EQ(queue_.Pop(), first);
  EXPECT_EQ(queue_.Pop(), later);
  EXPECT_EQ(queue_.Pop(), third);
  EXPECT_EQ(queue_.Pop(), none);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(RunQueueTest, AccountsComeInTurnWhateverTheyHaveSent) {
  constexpr auto kNone = InferenceRun::kNoDeadline;
  const InferenceRunPtr a1 = Push(0, kNone, "a");
  const InferenceRunPtr a2 = Push(0, kNone, "a");
  const InferenceRunPtr a3 = Push(0, kNone, "a");
  const InferenceRunPtr b1 = Push(0, kNone, "b");
  EXPECT_EQ(queue_.Pop(), a1);
  EXPECT_EQ(queue_.Pop(), b1);
  // Who comes back after its turn is behind those that still wait for theirs.
  const InferenceRunPtr b2 = Push(0, kNone, "b");
  const InferenceRunPtr c1 = Push(0, kNone, "c");
  EXPECT_EQ(queue_.Pop(), a2);
  EXPECT_EQ(queue_.Pop(), b2);
  EXPECT_EQ(queue_.Pop(), c1);
  EXPECT_EQ(queue_.Pop(), a3);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(RunQueueTest, WhatWasTakenBackCostsNoTurn) {
  constexpr auto kNone = InferenceRun::kNoDeadline;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(queue_.Remove(*Push(0, kNone, "a")));
  }
  const InferenceRunPtr a = Push(0, kNone, "a");
  const InferenceRunPtr b1 = Push(0, kNone, "b");
  const InferenceRunPtr b2 = Push(0, kNone, "b");
  EXPECT_EQ(queue_.Pop(), a);
  EXPECT_EQ(queue_.Pop(), b1);
  EXPECT_EQ(queue_.Pop(), b2);
}

TEST_F(RunQueueTest, OneThatIsTakenOutIsThereNoMore) {
  const InferenceRunPtr run = Push(2);
  EXPECT_TRUE(queue_.Remove(*run));
  EXPECT_FALSE(queue_.Remove(*run));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(RunQueueTest, LateOnesAreTakenAndTheNextIsNamed) {
  const InferenceRunPtr early = Push(0, 10);
  const InferenceRunPtr late = Push(1, 30);
  Push(2);
  base::Nanoseconds next = InferenceRun::kNoDeadline;
  EXPECT_THAT(queue_.TakeLate(9, &next), ::testing::IsEmpty());
  EXPECT_EQ(next, 10);
  next = InferenceRun::kNoDeadline;
  EXPECT_THAT(queue_.TakeLate(10, &next), ::testing::ElementsAre(early));
  EXPECT_EQ(next, 30);
  EXPECT_EQ(queue_.TakeAll().size(), 2U);
}

TEST(CompletionsTest, EachArrivesOnce) {
  Completions completions;
  std::thread worker([&] {
    for (uint32_t slot = 0; slot < core::kJobSlots; ++slot) {
      core::JobCompletion completion;
      completion.slot = slot;
      completion.frame = 1000 + slot;
      completions.Complete(completion);
    }
  });
  std::vector<bool> seen(core::kJobSlots);
  for (size_t count = 0; count < core::kJobSlots;) {
    for (const auto& completion : completions.Take(base::kSecond)) {
      EXPECT_EQ(completion.frame, 1000 + completion.slot);
      EXPECT_FALSE(seen[completion.slot]);
      seen[completion.slot] = true;
      ++count;
    }
  }
  worker.join();
  // One of a number that there is not is nobody's.
  core::JobCompletion stray;
  stray.slot = core::kJobSlots;
  completions.Complete(stray);
  EXPECT_TRUE(completions.Take(0).empty());
}

TEST(OpenCallsTest, AllAreToldAndNoneComesAfter) {
  struct Call final : OpenCall {
    void End() override { ++ended; }
    int ended = 0;
  };
  OpenCalls calls;
  Call there, gone, after;
  EXPECT_TRUE(calls.Add(&there));
  EXPECT_TRUE(calls.Add(&gone));
  calls.Remove(&gone);
  calls.EndAll();
  EXPECT_FALSE(calls.Add(&after));
  EXPECT_EQ(there.ended, 1);
  EXPECT_EQ(gone.ended + after.ended, 0);
}

TEST(StatisticsTest, FailuresHaveATimeAndNoParts) {
  Statistics statistics;
  RunParts parts;
  parts.queue = 1;
  parts.input = 2;
  parts.run = 3;
  parts.output = 4;
  statistics.Count("a", "1", parts, 12, true);
  statistics.Count("a", "1", parts, 5, false);
  statistics.Count("b", "1", parts, 12, true);
  const auto list = statistics.List("a", "");
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].success.count, 1U);
  EXPECT_EQ(list[0].success.time, 12);
  EXPECT_EQ(list[0].fail.time, 5);
  EXPECT_EQ(list[0].run.count, 1U);
  EXPECT_EQ(list[0].run.time, 3);
  EXPECT_EQ(statistics.List("", "").size(), 2U);
  EXPECT_TRUE(statistics.List("a", "2").empty());
}

}  // namespace
}  // namespace rknnd::transport
