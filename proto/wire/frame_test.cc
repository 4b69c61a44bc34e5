#include "proto/wire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"

namespace rknnd::wire {
namespace {

using ::testing::HasSubstr;

// Two connected ends; the test writes raw bytes to one.
class FrameTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = base::SeqpacketPair();
    ASSERT_TRUE(pair.ok()) << pair.error().message;
    sender_ = std::move(pair->first);
    receiver_ = std::move(pair->second);
  }

  // Sends a header, bytes behind it, and fds, whatever they are.
  void SendRaw(const FrameHeader& header, size_t body,
               const std::vector<int>& fds = {}) {
    std::vector<std::byte> bytes(sizeof header + body);
    std::memcpy(bytes.data(), &header, sizeof header);
    ASSERT_TRUE(
        base::SendMessage(sender_.get(), bytes, fds, base::Block::kYes).ok());
  }

  base::Expected<FrameResult> Receive() {
    return ReceiveFrame(receiver_.get(), base::Block::kNo);
  }

  void ExpectBroken(const std::string& why) {
    auto result = Receive();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, base::Code::kDataLoss);
    EXPECT_THAT(result.error().message, HasSubstr(why));
  }

  base::UniqueFd sender_, receiver_;
};

std::vector<std::byte> Pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

TEST_F(FrameTest, SmallFrameArrivesAsItWasSent) {
  Frame frame;
  frame.verb = Verb::kBind;
  frame.kind = FrameKind::kReply;
  frame.request = 77;
  frame.code = base::Code::kNotFound;
  frame.body = Pattern(100);
  ASSERT_TRUE(SendFrame(sender_.get(), frame, base::Block::kYes).ok());

  auto result = Receive();

  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->kind, FrameResult::Kind::kFrame);
  EXPECT_EQ(result->frame.verb, Verb::kBind);
  EXPECT_EQ(result->frame.kind, FrameKind::kReply);
  EXPECT_EQ(result->frame.request, 77U);
  EXPECT_EQ(result->frame.code, base::Code::kNotFound);
  EXPECT_EQ(result->frame.body, frame.body);
  EXPECT_TRUE(result->frame.fds.empty());
}

TEST_F(FrameTest, LargestInlineBodyNeedsNoMemfd) {
  Frame frame;
  frame.body = Pattern(kMaxInlineBody);
  ASSERT_TRUE(SendFrame(sender_.get(), frame, base::Block::kYes).ok());

  auto result = Receive();

  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->frame.body, frame.body);
}

TEST_F(FrameTest, LargeBodyTravelsInMemfdBesideTheFramesOwnFds) {
  Frame frame;
  frame.body = Pattern(1'000'000);
  auto fd = base::MakeMemfd("test", 4096);
  ASSERT_TRUE(fd.ok());
  frame.fds.push_back(*std::move(fd));
  ASSERT_TRUE(SendFrame(sender_.get(), frame, base::Block::kYes).ok());

  auto result = Receive();

  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->frame.body, frame.body);
  ASSERT_EQ(result->frame.fds.size(), 1U);
  struct stat sent {
  }, received{};
  ASSERT_EQ(fstat(frame.fds[0].get(), &sent), 0);
  ASSERT_EQ(fstat(result->frame.fds[0].get(), &received), 0);
  EXPECT_EQ(sent.st_ino, received.st_ino);
}

TEST_F(FrameTest, BodyAboveTheLimitIsNotSent) {
  Frame frame;
  frame.body.resize(kMaxMemfdBody + 1);

  auto sent = SendFrame(sender_.get(), frame, base::Block::kYes);

  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, base::Code::kOutOfRange);
}

TEST_F(FrameTest, NothingToReadSaysSo) {
  auto result = Receive();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->kind, FrameResult::Kind::kWouldBlock);
}

TEST_F(FrameTest, ClosedPeerIsEndOfFile) {
  sender_.reset();
  auto result = Receive();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->kind, FrameResult::Kind::kEndOfFile);
}

TEST_F(FrameTest, UnknownVerbIsStillAFrame) {
  FrameHeader header{};
  header.verb = 4711;
  SendRaw(header, 0);
  auto result = Receive();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(static_cast<uint16_t>(result->frame.verb), 4711);
}

TEST_F(FrameTest, DatagramShorterThanTheHeaderIsRefused) {
  const std::vector<std::byte> bytes(sizeof(FrameHeader) - 1);
  ASSERT_TRUE(
      base::SendMessage(sender_.get(), bytes, {}, base::Block::kYes).ok());
  ExpectBroken("shorter");
}

TEST_F(FrameTest, AnnouncedSizeMustBeThatOfTheDatagram) {
  FrameHeader header{};
  header.size = 0xffffffffU;
  SendRaw(header, 16);
  ExpectBroken("announces 4294967295 bytes and brings 16");
}

TEST_F(FrameTest, UnknownKindIsRefused) {
  FrameHeader header{};
  header.kind = 3;
  SendRaw(header, 0);
  ExpectBroken("unknown kind 3");
}

TEST_F(FrameTest, UnknownFlagsAreRefused) {
  FrameHeader header{};
  header.flags = 0x80;
  SendRaw(header, 0);
  ExpectBroken("unknown flags");
}

TEST_F(FrameTest, MemfdBodyWithoutAnFdIsRefused) {
  FrameHeader header{};
  header.flags = kBodyInMemfd;
  header.size = 100;
  SendRaw(header, 0);
  ExpectBroken("without its body's memfd");
}

TEST_F(FrameTest, MemfdBodyThatCanStillBeWrittenIsRefused) {
  auto memfd = base::MakeMemfd("writable", 50'000);
  ASSERT_TRUE(memfd.ok());
  FrameHeader header{};
  header.flags = kBodyInMemfd;
  header.size = 50'000;
  SendRaw(header, 0, {memfd->get()});
  ExpectBroken("no memfd sealed");
}

TEST_F(FrameTest, MemfdBodyMustBeAMemfd) {
  FrameHeader header{};
  header.flags = kBodyInMemfd;
  header.size = 100;
  SendRaw(header, 0, {receiver_.get()});
  ExpectBroken("no memfd sealed");
}

TEST_F(FrameTest, MemfdBodyOfAnotherSizeIsRefused) {
  auto memfd = base::MakeImmutableMemfd("short", Pattern(100));
  ASSERT_TRUE(memfd.ok());
  FrameHeader header{};
  header.flags = kBodyInMemfd;
  header.size = 101;
  SendRaw(header, 0, {memfd->get()});
  ExpectBroken("differ in size");
}

TEST_F(FrameTest, MemfdBodyAboveTheLimitIsRefusedBeforeItIsRead) {
  auto memfd = base::MakeImmutableMemfd("small", Pattern(100));
  ASSERT_TRUE(memfd.ok());
  FrameHeader header{};
  header.flags = kBodyInMemfd;
  header.size = static_cast<uint32_t>(kMaxMemfdBody) + 1;
  SendRaw(header, 0, {memfd->get()});
  ExpectBroken("at most");
}

TEST_F(FrameTest, BodyInBothPlacesIsRefused) {
  auto memfd = base::MakeImmutableMemfd("body", Pattern(100));
  ASSERT_TRUE(memfd.ok());
  FrameHeader header{};
  header.flags = kBodyInMemfd;
  header.size = 100;
  SendRaw(header, 100, {memfd->get()});
  ExpectBroken("two bodies");
}

TEST_F(FrameTest, GarbageNeverComesThroughAsAFrameOfTheWrongSize) {
  std::mt19937 random(20240229);  // the same bytes in every run
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes(1 + random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    // Let some through the first checks.
    if (bytes.size() >= sizeof(FrameHeader) && random() % 2 == 0) {
      FrameHeader header{};
      header.size = static_cast<uint32_t>(bytes.size() - sizeof header);
      header.verb = static_cast<uint16_t>(random());
      std::memcpy(bytes.data(), &header, sizeof header);
    }
    ASSERT_TRUE(
        base::SendMessage(sender_.get(), bytes, {}, base::Block::kYes).ok());
    auto result = Receive();
    if (result.ok()) {
      EXPECT_EQ(result->frame.body.size(), bytes.size() - sizeof(FrameHeader));
    } else {
      EXPECT_EQ(result.error().code, base::Code::kDataLoss);
    }
  }
}

}  // namespace
}  // namespace rknnd::wire
