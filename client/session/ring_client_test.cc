#include "client/session/ring_client.h"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/futex.h"
#include "base/posix/mapping.h"
#include "base/posix/socket.h"

namespace rknnd::client {
namespace {

// That this thread has used.
base::Nanoseconds OwnCpuTime() {
  timespec used = {};
  EXPECT_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
  return used.tv_sec * base::kSecond + used.tv_nsec;
}

class RingClientTest : public testing::Test {
 protected:
  RingClientTest()
      : memory_(*base::Mapping::Anonymous(wire::kRingBytes)),
        doorbell_(*base::MakeEventFd()),
        client_(ring(), doorbell_.get()) {}

  wire::Ring* ring() { return reinterpret_cast<wire::Ring*>(memory_.data()); }

  Ticket Submit(uint32_t context) {
    wire::Submission job{};
    job.context = context;
    const std::optional<Ticket> ticket = client_.Submit(job);
    EXPECT_TRUE(ticket.has_value());
    return ticket.value_or(Ticket{});
  }

  // As the daemon does.
  void Complete(const Ticket& ticket) {
    wire::Completion& completion = ring()->completions[ticket.slot];
    completion.code = 0;
    completion.run_ns = 42;
    completion.sequence.store(ticket.sequence);
  }

  base::Mapping memory_;
  base::UniqueFd doorbell_;
  RingClient client_;
};

TEST_F(RingClientTest, EntryIsWrittenBeforeTheTailMoves) {
  const Ticket ticket = Submit(7);
  EXPECT_EQ(ring()->header.tail.load(), 1U);
  EXPECT_EQ(ring()->submissions[0].context, 7U);
  EXPECT_EQ(ring()->submissions[0].slot, ticket.slot);
  EXPECT_EQ(ring()->submissions[0].sequence, ticket.sequence);
  EXPECT_NE(ticket.sequence, 0U);
}

TEST_F(RingClientTest, JobWithoutACompletionIsNotDone) {
  EXPECT_FALSE(client_.Wait(Submit(1), 0));
}

TEST_F(RingClientTest, CompletionIsTakenOnce) {
  const Ticket first = Submit(1);
  Complete(first);
  ASSERT_TRUE(client_.Wait(first, 0));
  EXPECT_EQ(client_.Take(first).run_ns, 42U);
  const Ticket second = Submit(1);
  EXPECT_EQ(second.slot, first.slot);
  EXPECT_NE(second.sequence, first.sequence);
  EXPECT_FALSE(client_.Wait(second, 0));
}

TEST_F(RingClientTest, NoMoreJobsThanSlotsAreUnderWay) {
  for (uint32_t i = 0; i < RingClient::kMostRuns; ++i) Submit(1);
  EXPECT_FALSE(client_.Submit({}).has_value());
  EXPECT_FALSE(client_.TrySubmit({}).has_value());
  EXPECT_EQ(ring()->header.tail.load(), RingClient::kMostRuns);
}

TEST_F(RingClientTest, LastSlotIsForTakingRunsBack) {
  for (uint32_t i = 0; i < RingClient::kMostRuns; ++i) Submit(1);
  wire::Submission cancel{};
  cancel.operation = static_cast<uint32_t>(wire::RingOperation::kCancel);
  const std::optional<Ticket> ticket = client_.Submit(cancel);
  ASSERT_TRUE(ticket.has_value());
  EXPECT_FALSE(client_.Submit(cancel).has_value());
  Complete(*ticket);
  client_.Take(*ticket);
  EXPECT_FALSE(client_.TrySubmit({}).has_value());
  EXPECT_TRUE(client_.Submit(cancel).has_value());
}

TEST_F(RingClientTest, SlotOfAGivenUpJobComesFreeWithItsAnswer) {
  std::optional<Ticket> last;
  for (uint32_t i = 0; i < RingClient::kMostRuns; ++i) last = Submit(1);
  client_.Abandon(*last);
  EXPECT_FALSE(client_.Submit({}).has_value());
  Complete(*last);
  const std::optional<Ticket> next = client_.Submit({});
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->slot, last->slot);
}

TEST_F(RingClientTest, TextOfAFailureIsBoundedByItsField) {
  const Ticket ticket = Submit(1);
  wire::Completion& completion = ring()->completions[ticket.slot];
  completion.code = static_cast<int32_t>(base::Code::kInternal);
  completion.text_size = 0xffffffff;
  completion.sequence.store(ticket.sequence);
  EXPECT_EQ(client_.Take(ticket).text.size(),
            sizeof(wire::CompletionText::text));
}

TEST_F(RingClientTest, CodeThatDoesNotExistIsUnknown) {
  const Ticket ticket = Submit(1);
  ring()->completions[ticket.slot].code = -7;
  EXPECT_EQ(client_.Take(ticket).code, base::Code::kUnknown);
}

TEST_F(RingClientTest, CopiesOfAContextStandInOneRecord) {
  client_.ReportCopies(7, 100, 10);
  client_.ReportCopies(8, 5, 0);
  client_.ReportCopies(7, 200, 20);
  const wire::CopyRecord* copies = ring()->copies;
  EXPECT_EQ(copies[0].context, 7U);
  EXPECT_EQ(copies[0].to_device_inputs_set, 200U);
  EXPECT_EQ(copies[0].from_device_outputs_get, 20U);
  EXPECT_EQ(copies[1].context, 8U);
  EXPECT_EQ(copies[2].context, 0U);
}

TEST_F(RingClientTest, RecordOfAContextThatIsGoneIsUsedAgain) {
  for (uint32_t i = 1; i <= wire::kCopyRecords; ++i)
    client_.ReportCopies(i, 1, 1);
  client_.ReportCopies(1000, 2, 2);  // no room: not seen
  client_.ForgetCopies(3);
  EXPECT_EQ(ring()->copies[2].context, 0U);
  client_.ReportCopies(1000, 3, 3);
  EXPECT_EQ(ring()->copies[2].context, 1000U);
  EXPECT_EQ(ring()->copies[2].to_device_inputs_set, 3U);
}

// Both counters, and the number of a slot's job, wrap after 2^32.
TEST_F(RingClientTest, CountersGoOnAfterTheyWrap) {
  ring()->header.tail.store(0xfffffff0);
  RingPolicy policy;
  policy.last_sequence = 0xfffffff0;
  RingClient client(ring(), doorbell_.get(), policy);
  for (uint32_t i = 0; i < 40; ++i) {
    wire::Submission job{};
    job.context = i;
    const std::optional<Ticket> ticket = client.Submit(job);
    ASSERT_TRUE(ticket.has_value());
    ASSERT_NE(ticket->sequence, 0U);
    ASSERT_EQ(ring()->header.tail.load(), 0xfffffff1 + i);
    ASSERT_EQ(
        ring()->submissions[(0xfffffff0 + i) % wire::kRingEntries].context, i);
    ASSERT_FALSE(client.IsDone(*ticket));
    Complete(*ticket);
    ASSERT_TRUE(client.Wait(*ticket, 0));
    client.Take(*ticket);
  }
}

TEST_F(RingClientTest, DoorbellIsLeftOutWhileSomebodyLooks) {
  RingPolicy policy;
  policy.marks_waits = true;
  RingClient client(ring(), doorbell_.get(), policy);
  ring()->header.polled.store(1);
  ASSERT_TRUE(client.Submit({}).has_value());
  uint64_t rings = 0;
  EXPECT_LT(read(doorbell_.get(), &rings, sizeof rings), 0);
  ring()->header.polled.store(0);
  ASSERT_TRUE(client.Submit({}).has_value());
  EXPECT_EQ(read(doorbell_.get(), &rings, sizeof rings),
            static_cast<ssize_t>(sizeof rings));
  EXPECT_EQ(rings, 1U);
}

TEST_F(RingClientTest, DaemonThatDoesNotSaySoIsAlwaysRungFor) {
  ring()->header.polled.store(1);
  Submit(1);
  uint64_t rings = 0;
  EXPECT_EQ(read(doorbell_.get(), &rings, sizeof rings),
            static_cast<ssize_t>(sizeof rings));
}

TEST_F(RingClientTest, WhoSleepsSaysSoAndTakesItBack) {
  RingPolicy policy;
  policy.marks_waits = true;
  RingClient client(ring(), doorbell_.get(), policy);
  const Ticket ticket = client.Submit({}).value_or(Ticket{});
  std::atomic<uint32_t>& asleep = ring()->header.asleep[ticket.slot / 32];
  std::thread daemon([&] {
    while ((asleep.load() >> (ticket.slot % 32) & 1) == 0) {
    }
    Complete(ticket);
    base::FutexWakeOne(&ring()->completions[ticket.slot].sequence);
  });
  EXPECT_TRUE(client.Wait(ticket, 3600 * base::kSecond));
  daemon.join();
  EXPECT_EQ(asleep.load(), 0U);
}

TEST_F(RingClientTest, AnswerWithinTheTimeAwakeNeedsNoSleep) {
  RingPolicy policy;
  policy.marks_waits = true;
  policy.spin = 3600 * base::kSecond;
  RingClient client(ring(), doorbell_.get(), policy);
  const Ticket ticket = client.Submit({}).value_or(Ticket{});
  std::thread daemon([&] { Complete(ticket); });  // and wakes nobody
  EXPECT_TRUE(client.Wait(ticket, 3600 * base::kSecond));
  daemon.join();
}

TEST_F(RingClientTest, NobodyWaitsAwakeForJobsThatTakeLonger) {
  RingPolicy policy;
  policy.marks_waits = true;
  policy.spin = 900 * base::kMillisecond;
  RingClient client(ring(), doorbell_.get(), policy);
  for (int i = 0; i < 40; ++i) {
    const Ticket slow = client.Submit({}).value_or(Ticket{});
    Complete(slow);
    ring()->completions[slow.slot].total_ns = 10 * base::kSecond;
    client.Take(slow);
  }
  const Ticket ticket = client.Submit({}).value_or(Ticket{});
  std::thread daemon([&] {
    while (ring()->header.asleep[ticket.slot / 32].load() == 0) {
      std::this_thread::yield();
    }
    Complete(ticket);
    base::FutexWakeOne(&ring()->completions[ticket.slot].sequence);
  });
  const base::Nanoseconds before = OwnCpuTime();
  EXPECT_TRUE(client.Wait(ticket, 3600 * base::kSecond));
  const base::Nanoseconds awake = OwnCpuTime() - before;
  daemon.join();
  // However busy the machine is: a small part of the time awake.
  EXPECT_LT(awake, policy.spin / 20);
}

TEST_F(RingClientTest, WhoGivesUpLeavesTheOthersMarked) {
  RingPolicy policy;
  policy.marks_waits = true;
  RingClient client(ring(), doorbell_.get(), policy);
  const Ticket ticket = *client.Submit({});
  std::thread patient(
      [&] { EXPECT_TRUE(client.Wait(ticket, 20 * base::kSecond)); });
  const auto& asleep = ring()->header.asleep[ticket.slot / 32];
  while (asleep.load() == 0) std::this_thread::yield();
  EXPECT_FALSE(client.Wait(ticket, base::kMillisecond));
  EXPECT_NE(asleep.load(), 0U);
  Complete(ticket);
  base::FutexWakeOne(&ring()->completions[ticket.slot].sequence);
  patient.join();
  EXPECT_EQ(asleep.load(), 0U);
}

// The daemon wakes one, as the bit says that somebody sleeps.
TEST_F(RingClientTest, OneWakeUpIsEnoughForAllWhoWaitForARun) {
  RingPolicy policy;
  policy.marks_waits = true;
  RingClient client(ring(), doorbell_.get(), policy);
  for (int round = 0; round < 200; ++round) {
    const Ticket ticket = *client.Submit({});
    std::vector<std::thread> threads;
    std::atomic<int> waiting{0};
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        ++waiting;
        // One that nobody wakes sleeps for longer than a test lasts.
        EXPECT_TRUE(client.Wait(ticket, 3600 * base::kSecond));
      });
    }
    const auto& asleep = ring()->header.asleep[ticket.slot / 32];
    while (waiting.load() < 3 || asleep.load() == 0) std::this_thread::yield();
    // Most rounds find all of them asleep.
    for (int i = 0; i < round % 20; ++i) std::this_thread::yield();
    Complete(ticket);
    if (asleep.load() != 0) {
      base::FutexWakeOne(&ring()->completions[ticket.slot].sequence);
    }
    for (std::thread& thread : threads) thread.join();
    client.Take(ticket);
  }
}

}  // namespace
}  // namespace rknnd::client
