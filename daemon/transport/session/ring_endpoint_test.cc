#include "daemon/transport/session/ring_endpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

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
    endpoint_->Open(gate_);
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

TEST_F(RingEndpointTest, FencesAndFlagsAreAnsweredWithTheirReason) {
  Push(1, 0, 1).fence_in = 3;
  Push(1, 1, 1).flags = 1;
  EXPECT_EQ(endpoint_->Drain().entries, 2U);
  EXPECT_TRUE(gate_->submissions.empty());
  EXPECT_THAT(ring_->texts[0].text, HasSubstr("fences"));
  EXPECT_THAT(ring_->texts[1].text, HasSubstr("flags '1'"));
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
      entry.operation = random() % 3;
      entry.slot = random() % (wire::kRingEntries + 1);
      entry.flags = random() % 2;
      entry.fence_in = entry.fence_out = 0;
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
