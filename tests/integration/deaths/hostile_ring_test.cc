// What a hostile process writes into its submission ring, and does to its
// doorbell. It gets an error or is disconnected; its neighbour does not notice.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/posix/clock.h"
#include "tests/integration/deaths/hostile_client.h"

namespace rknnd::integration {
namespace {

using base::Code;
using testing::HasSubstr;

class HostileRingTest : public HostileClientTest {};

TEST_F(HostileRingTest, RingWithMoreEntriesThanItHasIsDisconnected) {
  enemy_->SayHello();
  enemy_->ring().header.tail = wire::kRingEntries + 1;
  enemy_->Ring();
  EXPECT_TRUE(enemy_->WaitForClose());
}

TEST_F(HostileRingTest, SlotThatIsNotThereIsDisconnected) {
  enemy_->SayHello();
  wire::Submission job{};
  job.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  job.slot = wire::kRingEntries;
  job.sequence = 1;
  enemy_->Push(job);
  enemy_->Ring();
  EXPECT_TRUE(enemy_->WaitForClose());
}

TEST_F(HostileRingTest, EntriesThatMeanNothingAreAnswered) {
  enemy_->SayHello();
  wire::Submission job{};
  job.operation = 4711;
  EXPECT_THAT(enemy_->Submit(job).message, HasSubstr("'4711' is unknown"));
  job.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  job.flags = 1U << 31;
  EXPECT_THAT(enemy_->Submit(job).message, HasSubstr("flags '2147483648'"));
  job.flags = 0;
  job.reserved = 1;
  EXPECT_THAT(enemy_->Submit(job).message, HasSubstr("'reserved' is 1"));
  job.reserved = 0;
  job.fence_in = 3;
  EXPECT_EQ(enemy_->Submit(job).code, Code::kNotFound);
  job.fence_in = 0;
  job.operation = static_cast<uint32_t>(wire::RingOperation::kCancel);
  EXPECT_EQ(enemy_->Submit(job).code, Code::kNotFound);
}

TEST_F(HostileRingTest, RunWithoutMemoryIsAnswered) {
  enemy_->SayHello();
  ASSERT_TRUE(enemy_->Ask(wire::Verb::kCreateContext, NeighboursModel(7)).ok());
  wire::Submission job{};
  job.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  job.context = 7;
  const base::Error answer = enemy_->Submit(job);
  EXPECT_EQ(answer.code, Code::kFailedPrecondition);
  EXPECT_THAT(answer.message, HasSubstr("'x' of model"));
}

TEST_F(HostileRingTest, RingFullOfNoiseHurtsNobody) {
  std::minstd_rand random(4);
  for (int round = 0; round < 50; ++round) {
    RawClient client(daemon().socket());
    client.SayHello();
    const std::vector<std::byte> noise = Noise(random, sizeof(wire::Ring));
    std::memcpy(static_cast<void*>(&client.ring()), noise.data(), noise.size());
    // Within bounds, so that the entries are looked at.
    client.ring().header.tail = static_cast<uint32_t>(round % 128) + 1;
    client.Ring();
    ASSERT_TRUE(NeighbourIsWell());
  }
}

TEST_F(HostileRingTest, CopiesOfAClientAreItsOwnWordAboutItself) {
  const uint32_t neighbour = NeighboursContext();
  enemy_->SayHello();
  ASSERT_TRUE(enemy_->Ask(wire::Verb::kCreateContext, NeighboursModel(7)).ok());
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  // All of the neighbour's number but one: its own, twice.
  for (wire::CopyRecord& record : enemy_->ring().copies) {
    record = {kMost, kMost, neighbour == 7 ? 8 : neighbour, kMost & 0xffffffff};
  }
  enemy_->ring().copies[3].context = enemy_->ring().copies[9].context = 7;
  const auto own = static_cast<uint64_t>(enemy_->welcome().session);
  const wire::Report report =
      enemy_->Report(rknnd_v1_ReportKind_REPORT_CONTEXTS);
  ASSERT_EQ(report.contexts.size(), 2U);
  for (const wire::ContextReport& context : report.contexts) {
    EXPECT_EQ(context.copied.to_device_inputs_set == kMost,
              context.session == own);
    EXPECT_EQ(context.copied.from_device_outputs_get == kMost,
              context.session == own);
  }
}

TEST_F(HostileRingTest, RingThatChangesWhileItIsReadHurtsNobody) {
  enemy_->SayHello();
  std::minstd_rand random(5);
  for (int i = 0; i < 20'000; ++i) {
    wire::Submission job{};
    job.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
    job.slot = static_cast<uint32_t>(random() % wire::kRingEntries);
    job.sequence = 1;
    enemy_->Push(job);
    enemy_->Ring();
    enemy_->ring().submissions[random() % wire::kRingEntries].context =
        static_cast<uint32_t>(random());
    // The daemon's words, overwritten.
    enemy_->ring().header.head = static_cast<uint32_t>(random());
    enemy_->ring().completions[job.slot].sequence =
        static_cast<uint32_t>(random());
  }
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(HostileRingTest, FloodOfTheDoorbellHurtsNobody) {
  enemy_->SayHello();
  const base::MonotonicClock clock;
  int runs = 0;
  for (const base::Nanoseconds end = clock.Now() + base::kSecond / 2;
       clock.Now() < end; ++runs) {
    for (int i = 0; i < 10'000; ++i) enemy_->Ring();
    ASSERT_TRUE(NeighbourIsWell());
  }
  EXPECT_GT(runs, 0);
  // The flooder itself is slowed down, not shut out.
  wire::Submission job{};
  job.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  EXPECT_EQ(enemy_->Submit(job).code, Code::kNotFound);
}

TEST_F(HostileRingTest, FullDoorbellCounterHurtsNobody) {
  enemy_->SayHello();
  const uint64_t most = std::numeric_limits<uint64_t>::max() - 1;
  (void)!write(enemy_->doorbell(), &most, sizeof most);
  enemy_->Ring();
  EXPECT_TRUE(NeighbourIsWell());
}

}  // namespace
}  // namespace rknnd::integration
