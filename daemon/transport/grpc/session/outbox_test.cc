// In which order messages leave, and how large they are.

#include "daemon/transport/grpc/session/outbox.h"

#include <gtest/gtest.h>

#include <string>

#include "base/posix/memfd.h"
#include "rknnd/v1/remote.pb.h"

namespace rknnd::transport {
namespace {

class OutboxTest : public ::testing::Test {
 protected:
  // The next message; one without a part when there is none.
  v1::ToClient Next(bool* answers = nullptr) {
    v1::ToClient parsed;
    auto next = outbox_.Next(&slots_);
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok() || !next->has_value()) return parsed;
    const Outbox::Message& message = **next;
    EXPECT_TRUE(parsed.ParseFromArray(message.bytes.bytes.get(),
                                      static_cast<int>(message.bytes.size)));
    if (answers != nullptr) *answers = message.answers;
    return parsed;
  }

  void AnswerWith(uint32_t request, const std::string& file) {
    RemoteFrame frame;
    frame.frame.kind = wire::FrameKind::kReply;
    frame.frame.request = request;
    std::vector<Attachment> attachments;
    if (!file.empty()) {
      auto fd =
          base::MakeImmutableMemfd("test", std::as_bytes(std::span(file)));
      ASSERT_TRUE(fd.ok());
      attachments.emplace_back();
      attachments[0].fd = *std::move(fd);
      attachments[0].size = file.size();
    }
    outbox_.Answer(std::move(frame), std::move(attachments), nullptr);
  }

  // A run that ends with what a buffer of so many bytes holds.
  void EndRun(uint32_t slot, uint64_t bytes, absl::Status status = {}) {
    auto fd = base::MakeMemfd("test", bytes);
    ASSERT_TRUE(fd.ok());
    auto buffer = RemoteBuffer::Map(*std::move(fd), bytes);
    ASSERT_TRUE(buffer.ok());
    ASSERT_TRUE(slots_.Take(slot, 1, {{{5, 0, bytes}, *buffer}}).ok());
    slots_.Complete({.slot = slot, .sequence = 1, .status = std::move(status)});
  }

  std::shared_ptr<Sender> sender_ = std::make_shared<Sender>();
  RequestBudget budget_{{16 << 20, 2}};
  Outbox outbox_{sender_, &budget_, "test"};
  RunSlots slots_{[] {}, false};
};

TEST_F(OutboxTest, AnswersGoFirstAndBytesTakeTurns) {
  const std::string file((size_t{2} << 20) + 1, 'f');
  AnswerWith(1, file);
  EndRun(0, 10);
  EndRun(1, 10);
  bool answers = true;
  EXPECT_EQ(Next(&answers).frame().attachments(0), file.size());
  EXPECT_FALSE(answers);
  EXPECT_EQ(outbox_.attached(), file.size());
  EXPECT_EQ(Next().run_end().outputs(0).data().size(), 10U);
  EXPECT_EQ(Next().chunk().data().size(), size_t{1} << 20);
  AnswerWith(2, "");
  EXPECT_EQ(Next(&answers).frame().request(), 2U);
  EXPECT_TRUE(answers);
  EXPECT_EQ(Next().run_end().slot(), 1U);
  EXPECT_EQ(Next().chunk().data().size(), size_t{1} << 20);
  EXPECT_EQ(Next(&answers).chunk().data(), "f");
  EXPECT_TRUE(answers);
  EXPECT_EQ(outbox_.attached(), 0U);
  EXPECT_EQ(Next().part_case(), v1::ToClient::PART_NOT_SET);
}

TEST_F(OutboxTest, WithoutRoomForMoreTheyLeaveInSmallPieces) {
  const auto first = budget_.Take("first", 1);
  const auto second = budget_.Take("second", 1);
  ASSERT_TRUE(first.ok() && second.ok());
  EndRun(0, 200000);
  size_t received = 0;
  for (;;) {
    const v1::ToClient message = Next();
    ASSERT_LE(message.ByteSizeLong(), size_t{66} << 10);
    if (message.has_read()) {
      EXPECT_EQ(message.read().offset(), received);
      received += message.read().data().size();
      continue;
    }
    ASSERT_TRUE(message.has_run_end());
    EXPECT_EQ(message.run_end().outputs(0).offset(), received);
    received += message.run_end().outputs(0).data().size();
    break;
  }
  EXPECT_EQ(received, 200000U);
}

TEST_F(OutboxTest, ARunThatFailedHasAReasonAndNoOutputs) {
  EndRun(0, 10, absl::NotFoundError("no context 1"));
  const v1::ToClient message = Next();
  EXPECT_EQ(message.run_end().code(), 5);
  EXPECT_EQ(message.run_end().text(), "no context 1");
  EXPECT_EQ(message.run_end().outputs_size(), 0);
}

TEST_F(OutboxTest, EventsThatNobodyReadsAreDropped) {
  size_t taken = 0;
  for (int i = 0; i < 100; ++i) taken += outbox_.TellEvent({}) ? 1 : 0;
  EXPECT_EQ(taken, 16U);
  EXPECT_TRUE(Next().has_frame());
  EXPECT_TRUE(outbox_.TellEvent({}));
}

TEST_F(OutboxTest, OfPingsTheLastIsAnswered) {
  for (uint64_t token = 1; token <= 1000; ++token) outbox_.Pong(token);
  EXPECT_EQ(Next().pong().token(), 1000U);
  EXPECT_EQ(Next().part_case(), v1::ToClient::PART_NOT_SET);
}

}  // namespace
}  // namespace rknnd::transport
