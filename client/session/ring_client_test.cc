#include "client/session/ring_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "base/posix/mapping.h"
#include "base/posix/socket.h"

namespace rknnd::client {
namespace {

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
  for (uint32_t i = 0; i < wire::kRingEntries; ++i) Submit(1);
  EXPECT_FALSE(client_.Submit({}).has_value());
  EXPECT_EQ(ring()->header.tail.load(), wire::kRingEntries);
}

TEST_F(RingClientTest, SlotOfAGivenUpJobComesFreeWithItsAnswer) {
  std::optional<Ticket> last;
  for (uint32_t i = 0; i < wire::kRingEntries; ++i) last = Submit(1);
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
  client_.ShowCopies(7, 100, 10);
  client_.ShowCopies(8, 5, 0);
  client_.ShowCopies(7, 200, 20);
  const wire::CopyRecord* copies = ring()->copies;
  EXPECT_EQ(copies[0].context, 7U);
  EXPECT_EQ(copies[0].to_device_inputs_set, 200U);
  EXPECT_EQ(copies[0].from_device_outputs_get, 20U);
  EXPECT_EQ(copies[1].context, 8U);
  EXPECT_EQ(copies[2].context, 0U);
}

TEST_F(RingClientTest, RecordOfAContextThatIsGoneIsUsedAgain) {
  for (uint32_t i = 1; i <= wire::kCopyRecords; ++i)
    client_.ShowCopies(i, 1, 1);
  client_.ShowCopies(1000, 2, 2);  // no room: not seen
  client_.ForgetCopies(3);
  EXPECT_EQ(ring()->copies[2].context, 0U);
  client_.ShowCopies(1000, 3, 3);
  EXPECT_EQ(ring()->copies[2].context, 1000U);
  EXPECT_EQ(ring()->copies[2].to_device_inputs_set, 3U);
}

}  // namespace
}  // namespace rknnd::client
