#include "daemon/transport/session/ring/ring_endpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/futex.h"
#include "base/posix/mapping.h"
#include "base/posix/memfd.h"

namespace rknnd::transport {
namespace {

using ::testing::HasSubstr;

// Notes what it is given.
class FakeGate final : public core::JobGate {
 public:
  absl::Status Submit(const core::JobSubmission& submission) override {
    submissions.push_back(submission);
    return answer;
  }
  std::vector<core::JobSubmission> submissions;
  absl::Status answer;
};

class RingEndpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto endpoint = RingEndpoint::Create();
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    endpoint_ = *std::move(endpoint);
    gate_ = std::make_shared<FakeGate>();
    endpoint_->Open(gate_, /*marks_sleepers=*/true);
    auto mapping =
        base::Mapping::OfFd(endpoint_->memory_fd(), 0, wire::kRingBytes,
                            base::Mapping::Access::kReadWrite);
    ASSERT_TRUE(mapping.ok());
    client_ = *std::move(mapping);
    ring_ = reinterpret_cast<wire::Ring*>(client_.data());
  }

  // What an honest client does.
  wire::Submission& Push(uint32_t context, uint32_t slot, uint32_t sequence) {
    const uint32_t tail = ring_->header.tail.load();
    wire::Submission& entry = ring_->submissions[tail % wire::kRingEntries];
    entry = {};
    entry.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
    entry.context = context;
    entry.slot = slot;
    entry.sequence = sequence;
    ring_->header.tail.store(tail + 1);
    return entry;
  }

  std::shared_ptr<RingEndpoint> endpoint_;
  std::shared_ptr<FakeGate> gate_;
  base::Mapping client_;
  wire::Ring* ring_ = nullptr;
};

TEST_F(RingEndpointTest, MemoryCanNeitherShrinkNorGrow) {
  EXPECT_TRUE(base::HasSeals(endpoint_->memory_fd(), base::Seals::kFixedSize));
  EXPECT_NE(ftruncate(endpoint_->memory_fd(), 0), 0);
  EXPECT_EQ(ring_->header.magic, wire::kRingMagic);
  EXPECT_EQ(ring_->header.entries, wire::kRingEntries);
}

TEST_F(RingEndpointTest, EntriesReachTheGateInOrder) {
  Push(7, 0, 1).frame = 99;
  Push(8, 1, 1).timeout_ms = 20;

  const RingEndpoint::Drained drained = endpoint_->Drain();

  EXPECT_TRUE(drained.violation.ok());
  EXPECT_EQ(drained.entries, 2U);
  ASSERT_EQ(gate_->submissions.size(), 2U);
  EXPECT_EQ(gate_->submissions[0].context, 7U);
  EXPECT_EQ(gate_->submissions[0].frame, 99U);
  EXPECT_EQ(gate_->submissions[1].context, 8U);
  EXPECT_EQ(gate_->submissions[1].timeout_ms, 20U);
  EXPECT_EQ(ring_->header.head.load(), 2U);
  EXPECT_FALSE(endpoint_->HasEntries());
}

TEST_F(RingEndpointTest, IndicesGoOnAroundTheRing) {
  for (uint32_t i = 0; i < 3 * wire::kRingEntries; ++i) {
    Push(1, i % wire::kRingEntries, i + 1);
    ASSERT_EQ(endpoint_->Drain().entries, 1U);
  }
  EXPECT_EQ(gate_->submissions.back().sequence, 3 * wire::kRingEntries);
}

TEST_F(RingEndpointTest, JobThatHasBegunIsMarkedForItsClient) {
  endpoint_->Begin(3, 7);
  EXPECT_EQ(ring_->completions[3].begun.load(), 7U);
  EXPECT_EQ(ring_->completions[3].sequence.load(), 0U);
  // Whatever a client makes of it, it is its own word from then on.
  ring_->completions[3].begun.store(99);
  endpoint_->Begin(3, 8);
  EXPECT_EQ(ring_->completions[3].begun.load(), 8U);
  endpoint_->Begin(wire::kRingEntries, 9);  // writes nowhere
}

TEST_F(RingEndpointTest, EmptyRingGivesNothing) {
  EXPECT_EQ(endpoint_->Drain().entries, 0U);
  EXPECT_TRUE(endpoint_->Drain().violation.ok());
}

TEST_F(RingEndpointTest, TailBeyondTheRingIsAViolation) {
  ring_->header.tail.store(wire::kRingEntries + 1);
  const RingEndpoint::Drained drained = endpoint_->Drain();
  EXPECT_TRUE(absl::IsFailedPrecondition(drained.violation));
  EXPECT_TRUE(gate_->submissions.empty());
}

TEST_F(RingEndpointTest, TailThatGoesBackIsAViolation) {
  Push(1, 0, 1);
  ASSERT_EQ(endpoint_->Drain().entries, 1U);
  ring_->header.tail.store(0);
  EXPECT_TRUE(absl::IsFailedPrecondition(endpoint_->Drain().violation));
}

TEST_F(RingEndpointTest, HeadOfTheClientIsOfNoInterest) {
  Push(1, 0, 1);
  ring_->header.head.store(0xdeadbeef);
  EXPECT_EQ(endpoint_->Drain().entries, 1U);
  EXPECT_EQ(ring_->header.head.load(), 1U);
}

TEST_F(RingEndpointTest, AfterAViolationNothingIsTaken) {
  ring_->header.tail.store(1'000'000);
  ASSERT_FALSE(endpoint_->Drain().violation.ok());
  ring_->header.tail.store(0);
  Push(1, 0, 1);
  EXPECT_EQ(endpoint_->Drain().entries, 0U);
}

TEST_F(RingEndpointTest, SlotOutsideTheRingIsAViolation) {
  Push(1, wire::kRingEntries, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(endpoint_->Drain().violation));
  EXPECT_TRUE(gate_->submissions.empty());
}

TEST_F(RingEndpointTest, SequenceZeroIsAViolation) {
  Push(1, 0, 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(endpoint_->Drain().violation));
}

TEST_F(RingEndpointTest, GatesRefusalIsAViolation) {
  gate_->answer = absl::FailedPreconditionError("slot in flight");
  Push(1, 0, 1);
  EXPECT_THAT(std::string(endpoint_->Drain().violation.message()),
              HasSubstr("in flight"));
}

TEST_F(RingEndpointTest, UnknownOperationIsAnsweredAndNotSubmitted) {
  Push(1, 5, 9).operation = 77;
  EXPECT_EQ(endpoint_->Drain().entries, 1U);
  EXPECT_TRUE(gate_->submissions.empty());
  const wire::Completion& completion = ring_->completions[5];
  EXPECT_EQ(completion.sequence.load(), 9U);
  EXPECT_EQ(completion.code,
            static_cast<int32_t>(absl::StatusCode::kUnimplemented));
}

TEST_F(RingEndpointTest, UndefinedFlagsAreAnsweredAndNotSubmitted) {
  Push(1, 1, 1).flags = 2;
  EXPECT_EQ(endpoint_->Drain().entries, 1U);
  EXPECT_TRUE(gate_->submissions.empty());
  EXPECT_THAT(ring_->texts[1].text, HasSubstr("flags '2'"));
}

TEST_F(RingEndpointTest, FieldsOfLaterVersionsAreAnsweredAndNotPassedOver) {
  Push(1, 1, 1).reserved = 5;
  EXPECT_EQ(endpoint_->Drain().entries, 1U);
  EXPECT_TRUE(gate_->submissions.empty());
  EXPECT_THAT(ring_->texts[1].text, HasSubstr("'reserved' is 5"));
}

TEST_F(RingEndpointTest, WhatAnEntryAsksForReachesTheGate) {
  wire::Submission& entry = Push(7, 3, 1);
  entry.deadline_ns = 5'000'000;
  entry.set = 2;
  entry.fence_in = 11;
  entry.fence_out = 12;
  entry.notify = 13;
  entry.flags = wire::kSubmitShared;
  Push(7, 4, 1).operation = static_cast<uint32_t>(wire::RingOperation::kCancel);

  EXPECT_EQ(endpoint_->Drain().entries, 2U);

  ASSERT_EQ(gate_->submissions.size(), 2U);
  const core::JobSubmission& run = gate_->submissions[0];
  EXPECT_EQ(run.operation, core::JobSubmission::Operation::kRun);
  EXPECT_EQ(run.deadline, 5 * base::kMillisecond);
  EXPECT_EQ(run.set, 2U);
  EXPECT_EQ(run.fence_in, 11U);
  EXPECT_EQ(run.fence_out, 12U);
  EXPECT_EQ(run.notify, 13U);
  EXPECT_TRUE(run.shared);
  EXPECT_EQ(gate_->submissions[1].operation,
            core::JobSubmission::Operation::kCancel);
  EXPECT_FALSE(gate_->submissions[1].shared);
}

TEST_F(RingEndpointTest, DeadlineBeyondAllTimeIsAPositiveOne) {
  Push(1, 0, 1).deadline_ns = ~uint64_t{0};
  EXPECT_EQ(endpoint_->Drain().entries, 1U);
  EXPECT_GT(gate_->submissions[0].deadline, 0);
}

// The counters of both ends wrap after 2^32 entries.
TEST_F(RingEndpointTest, CountersOfEntriesWrapAround) {
  auto old = RingEndpoint::Create(0xffffffff - 100);
  ASSERT_TRUE(old.ok());
  (*old)->Open(gate_);
  auto mapping = base::Mapping::OfFd((*old)->memory_fd(), 0, wire::kRingBytes,
                                     base::Mapping::Access::kReadWrite);
  ASSERT_TRUE(mapping.ok());
  client_ = *std::move(mapping);
  ring_ = reinterpret_cast<wire::Ring*>(client_.data());
  for (uint32_t i = 0; i < 300; ++i) {
    Push(i, i % wire::kRingEntries, i + 1);
    ASSERT_TRUE((*old)->HasEntries());
    ASSERT_EQ((*old)->Drain().entries, 1U);
    ASSERT_FALSE((*old)->HasEntries());
    ASSERT_EQ(gate_->submissions.back().context, i);
  }
  EXPECT_EQ(ring_->header.head.load(), 199U);
}

TEST_F(RingEndpointTest, FullRingAcrossTheWrapIsTakenWhole) {
  auto old = RingEndpoint::Create(0xffffffff - 60);
  ASSERT_TRUE(old.ok());
  (*old)->Open(gate_);
  auto mapping = base::Mapping::OfFd((*old)->memory_fd(), 0, wire::kRingBytes,
                                     base::Mapping::Access::kReadWrite);
  ASSERT_TRUE(mapping.ok());
  client_ = *std::move(mapping);
  ring_ = reinterpret_cast<wire::Ring*>(client_.data());
  for (uint32_t i = 0; i < wire::kRingEntries; ++i) Push(1, i, i + 1);
  EXPECT_EQ((*old)->Drain().entries, wire::kRingEntries);
  // One more than fits is one too many there, too.
  ring_->header.tail.fetch_add(wire::kRingEntries + 1);
  EXPECT_FALSE((*old)->Drain().violation.ok());
}

TEST_F(RingEndpointTest, EntryThatComesAsPollingEndsIsReported) {
  ASSERT_TRUE(endpoint_->BeginPolling());
  EXPECT_EQ(ring_->header.polled.load(), 1U);
  EXPECT_FALSE(endpoint_->EndPolling());
  EXPECT_EQ(ring_->header.polled.load(), 0U);
  ASSERT_TRUE(endpoint_->BeginPolling());
  Push(1, 0, 1);
  EXPECT_TRUE(endpoint_->EndPolling());
}

TEST_F(RingEndpointTest, OneThreadAtATimePolls) {
  ASSERT_TRUE(endpoint_->BeginPolling());
  EXPECT_FALSE(endpoint_->BeginPolling());
  EXPECT_FALSE(endpoint_->EndPolling());
  EXPECT_TRUE(endpoint_->BeginPolling());
}

TEST_F(RingEndpointTest, ClientThatRingsForEachEntryIsNotPolled) {
  auto endpoint = RingEndpoint::Create();
  ASSERT_TRUE(endpoint.ok());
  (*endpoint)->Open(gate_, /*marks_sleepers=*/false);
  EXPECT_FALSE((*endpoint)->BeginPolling());
}

TEST_F(RingEndpointTest, EntriesThatCameWhileItWasPolledAreQuiet) {
  Push(1, 0, 1);
  ASSERT_TRUE(endpoint_->BeginPolling());
  Push(1, 1, 1);
  Push(1, 2, 1);
  ASSERT_TRUE(endpoint_->EndPolling());
  Push(1, 3, 1);
  const RingEndpoint::Drained all = endpoint_->Drain();
  EXPECT_EQ(all.entries, 4U);
  EXPECT_EQ(all.quiet, 2U);

  // Another thread takes them meanwhile.
  ASSERT_TRUE(endpoint_->BeginPolling());
  Push(1, 4, 1);
  EXPECT_EQ(endpoint_->Drain().quiet, 1U);
  EXPECT_FALSE(endpoint_->EndPolling());
  Push(1, 5, 1);
  EXPECT_EQ(endpoint_->Drain().quiet, 0U);
}

// A client that says who sleeps is believed, as it is the one that would sleep
// on; one that does not know how to is woken each time.
TEST_F(RingEndpointTest, SleeperIsWokenWhetherOrNotItSaysSo) {
  for (const bool marks : {false, true}) {
    auto endpoint = RingEndpoint::Create();
    ASSERT_TRUE(endpoint.ok());
    (*endpoint)->Open(gate_, marks);
    auto mapping =
        base::Mapping::OfFd((*endpoint)->memory_fd(), 0, wire::kRingBytes,
                            base::Mapping::Access::kReadWrite);
    ASSERT_TRUE(mapping.ok());
    auto* ring = reinterpret_cast<wire::Ring*>(mapping->data());
    if (marks) ring->header.asleep[70 / 32].fetch_or(1U << (70 % 32));
    std::thread sleeper([ring] {
      // No shorter than the test may take: only a wake-up ends it in time.
      while (ring->completions[70].sequence.load() == 0) {
        base::FutexWait(&ring->completions[70].sequence, 0,
                        3600 * base::kSecond);
      }
    });
    core::JobCompletion completion;
    completion.slot = 70;
    completion.sequence = 1;
    (*endpoint)->Complete(completion);
    sleeper.join();
  }
}

// An entry that changes while it is read: what was checked is what is used.
TEST_F(RingEndpointTest, EntryThatChangesMeanwhileIsCheckedAsItIsUsed) {
  std::atomic<bool> stop{false};
  wire::Ring* const ring = ring_;
  std::thread scribbler([ring, &stop] {
    uint32_t value = 0;
    while (!stop.load()) {
      // Now a slot, now none; and every other word of all entries.
      for (wire::Submission& entry : ring->submissions) {
        ++value;
        __atomic_store_n(&entry.slot, value % 2 == 0 ? 5 : 0xffffff00,
                         __ATOMIC_RELAXED);
        __atomic_store_n(&entry.sequence, value % 3, __ATOMIC_RELAXED);
        __atomic_store_n(&entry.operation, value % 4, __ATOMIC_RELAXED);
        __atomic_store_n(&entry.flags, value % 5 == 0 ? value : 0,
                         __ATOMIC_RELAXED);
        __atomic_store_n(&entry.deadline_ns, uint64_t{value} << 40,
                         __ATOMIC_RELAXED);
      }
    }
  });
  for (int round = 0; round < 2000; ++round) {
    endpoint_->Open(gate_);
    ring->header.tail.fetch_add(wire::kRingEntries);
    const RingEndpoint::Drained drained = endpoint_->Drain();
    ASSERT_LE(drained.entries, wire::kRingEntries);
    // What a violation left in the ring.
    while (endpoint_->HasEntries()) {
      endpoint_->Open(gate_);
      ring->header.tail.store(ring->header.head.load());
    }
  }
  stop.store(true);
  scribbler.join();
  for (const core::JobSubmission& submission : gate_->submissions) {
    ASSERT_LT(submission.slot, wire::kRingEntries);
    ASSERT_NE(submission.sequence, 0U);
    ASSERT_GE(submission.deadline, 0);
  }
}

TEST_F(RingEndpointTest, CompletionCarriesItsNumbers) {
  core::JobCompletion completion;
  completion.slot = 3;
  completion.sequence = 4;
  completion.frame = 5;
  completion.queue = 6;
  completion.run = 7;
  completion.total = 8;
  completion.core = 2;
  completion.drops = 1;
  completion.count = 9;
  endpoint_->Complete(completion);
  const wire::Completion& out = ring_->completions[3];
  EXPECT_EQ(out.sequence.load(), 4U);
  EXPECT_EQ(out.code, 0);
  EXPECT_EQ(out.frame, 5U);
  EXPECT_EQ(out.queue_ns, 6U);
  EXPECT_EQ(out.run_ns, 7U);
  EXPECT_EQ(out.total_ns, 8U);
  EXPECT_EQ(out.core, 2U);
  EXPECT_EQ(out.drops, 1U);
  EXPECT_EQ(out.count, 9U);
  EXPECT_EQ(out.text_size, 0U);
}

TEST_F(RingEndpointTest, LongReasonIsCutToItsPlace) {
  core::JobCompletion completion;
  completion.slot = 0;
  completion.sequence = 1;
  completion.status = absl::InternalError(std::string(5000, 'x'));
  endpoint_->Complete(completion);
  EXPECT_EQ(ring_->completions[0].text_size, sizeof(wire::CompletionText) - 1);
  EXPECT_EQ(std::strlen(ring_->texts[0].text),
            sizeof(wire::CompletionText) - 1);
  EXPECT_EQ(ring_->texts[1].text[0], '\0');
}

TEST_F(RingEndpointTest, CompletionAfterCloseStillHasItsMemory) {
  endpoint_->Close();
  core::JobCompletion completion;
  completion.sequence = 1;
  endpoint_->Complete(completion);
  EXPECT_EQ(ring_->completions[0].sequence.load(), 1U);
  Push(1, 0, 2);
  EXPECT_EQ(endpoint_->Drain().entries, 0U);
}

TEST_F(RingEndpointTest, HolePunchedIntoTheRingHurtsNobody) {
  Push(1, 0, 1);
  ASSERT_EQ(fallocate(endpoint_->memory_fd(),
                      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      wire::kRingBytes),
            0);
  // The tail reads as zero now: no new entry.
  EXPECT_EQ(endpoint_->Drain().entries, 0U);
}

// Every byte of the ring changes between any two looks at it.
TEST_F(RingEndpointTest, ScribbledRingNeverTakesMoreThanItHolds) {
  std::mt19937 random(99);  // the same bytes in every run
  for (int round = 0; round < 300; ++round) {
    auto fresh = RingEndpoint::Create();
    ASSERT_TRUE(fresh.ok());
    (*fresh)->Open(gate_);
    auto mapping =
        base::Mapping::OfFd((*fresh)->memory_fd(), 0, wire::kRingBytes,
                            base::Mapping::Access::kReadWrite);
    ASSERT_TRUE(mapping.ok());
    auto* words = reinterpret_cast<uint32_t*>(mapping->data());
    for (size_t i = 0; i < wire::kRingBytes / 4; ++i) words[i] = random();
    auto* ring = reinterpret_cast<wire::Ring*>(mapping->data());
    // Plausible enough to be taken, some of it.
    ring->header.tail.store(random() % (wire::kRingEntries + 8));
    for (wire::Submission& entry : ring->submissions) {
      entry.operation = random() % 4;
      entry.slot = random() % (wire::kRingEntries + 1);
      entry.flags = random() % 3;
    }
    gate_->submissions.clear();
    const RingEndpoint::Drained drained = (*fresh)->Drain();
    EXPECT_LE(drained.entries, wire::kRingEntries);
    for (const core::JobSubmission& submission : gate_->submissions) {
      EXPECT_LT(submission.slot, wire::kRingEntries);
      EXPECT_NE(submission.sequence, 0U);
    }
  }
}

TEST_F(RingEndpointTest, ClientsCopiesAreReadAsTheyStand) {
  ring_->copies[wire::kCopyRecords - 1] = {300, 40, 9, 0};
  EXPECT_EQ(endpoint_->ClientCopies(9).to_device_inputs_set, 300U);
  EXPECT_EQ(endpoint_->ClientCopies(9).from_device_outputs_get, 40U);
  EXPECT_EQ(endpoint_->ClientCopies(8).to_device_inputs_set, 0U);
}

}  // namespace
}  // namespace rknnd::transport
