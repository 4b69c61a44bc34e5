// Files in pieces, and back.

#include "client/remote/transfers.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/posix/memfd.h"
#include "rknnd/v1/remote.pb.h"

namespace rknnd::client {
namespace {

using ::testing::ElementsAre;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

base::UniqueFd FileOf(const std::string& text) {
  return *base::MakeImmutableMemfd("test", Bytes(text));
}

std::string TextOf(int fd) {
  std::string text;
  EXPECT_TRUE(ReadAll(fd, [&](uint64_t offset, auto bytes) {
                EXPECT_EQ(offset, text.size());
                text.append(reinterpret_cast<const char*>(bytes.data()),
                            bytes.size());
                return true;
              }).ok());
  return text;
}

TEST(OutgoingTransferTest, PartsGoInTheirOrder) {
  OutgoingTransfer transfer(7);
  std::vector<uint64_t> progress;
  transfer.set_progress([&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, 9U);
    progress.push_back(done);
  });
  ASSERT_TRUE(transfer.Add(FileOf("first")).ok());
  ASSERT_TRUE(transfer.Add(FileOf("")).ok());
  const std::string body = "body";
  transfer.Add(std::vector<std::byte>(Bytes(body).begin(), Bytes(body).end()));
  v1::Frame frame;
  transfer.Announce(&frame);
  EXPECT_THAT(frame.attachments(), ElementsAre(5, 0, 4));
  std::vector<std::string> pieces;
  while (const auto message = transfer.Next()) {
    EXPECT_EQ(message->chunk().request(), 7U);
    pieces.push_back(message->chunk().data());
  }
  EXPECT_THAT(pieces, ElementsAre("first", "body"));
  EXPECT_THAT(progress, ElementsAre(5, 9));
}

TEST(OutgoingTransferTest, AFileAboveTwoGigabytesGoesToItsLastByte) {
  // Holes that cost no memory, and a mark at the end.
  constexpr uint64_t kSize = (uint64_t{2} << 30) + 12345;
  base::UniqueFd file(memfd_create("large", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(kSize)), 0);
  ASSERT_EQ(pwrite(file.get(), "end", 3, static_cast<off_t>(kSize - 3)), 3);
  OutgoingTransfer transfer(1);
  ASSERT_TRUE(transfer.Add(std::move(file)).ok());
  uint64_t sent = 0;
  std::string last;
  while (const auto message = transfer.Next()) {
    last = message->chunk().data();
    EXPECT_LE(last.size(), size_t{1} << 20);
    sent += last.size();
  }
  EXPECT_EQ(sent, kSize);
  EXPECT_TRUE(last.ends_with("end"));
}

TEST(OutgoingTransferTest, WhatNobodyWantsAnyMoreStops) {
  OutgoingTransfer transfer(1);
  ASSERT_TRUE(transfer.Add(FileOf("text")).ok());
  transfer.GiveUp();
  EXPECT_EQ(transfer.Next(), nullptr);
}

v1::Frame FrameWith(std::initializer_list<uint64_t> sizes) {
  v1::Frame frame;
  frame.set_verb(static_cast<uint32_t>(wire::Verb::kDump));
  frame.set_kind(static_cast<uint32_t>(wire::FrameKind::kReply));
  frame.set_request(3);
  for (const uint64_t size : sizes) frame.add_attachments(size);
  return frame;
}

TEST(IncomingFrameTest, IsThereWhenItsLastByteIs) {
  v1::Frame frame = FrameWith({3, 0, 4});
  frame.set_body("body");
  auto incoming = IncomingFrame::Begin(frame);
  ASSERT_TRUE(incoming.ok());
  EXPECT_FALSE(incoming->complete());
  ASSERT_TRUE(incoming->Add(Bytes("abc")).ok());
  ASSERT_TRUE(incoming->Add(Bytes("de")).ok());
  EXPECT_FALSE(incoming->complete());
  ASSERT_TRUE(incoming->Add(Bytes("fg")).ok());
  ASSERT_TRUE(incoming->complete());
  const wire::Frame whole = incoming->Take();
  EXPECT_EQ(whole.request, 3U);
  ASSERT_EQ(whole.fds.size(), 3U);
  EXPECT_EQ(TextOf(whole.fds[0].get()), "abc");
  EXPECT_EQ(TextOf(whole.fds[1].get()), "");
  EXPECT_EQ(TextOf(whole.fds[2].get()), "defg");
  EXPECT_TRUE(base::HasSeals(whole.fds[2].get(), base::Seals::kImmutable));
}

TEST(IncomingFrameTest, ALargeBodyComesBehindIt) {
  v1::Frame frame = FrameWith({2, 4});
  frame.set_body_attached(true);
  auto incoming = IncomingFrame::Begin(frame);
  ASSERT_TRUE(incoming.ok());
  ASSERT_TRUE(incoming->Add(Bytes("ab")).ok());
  ASSERT_TRUE(incoming->Add(Bytes("body")).ok());
  ASSERT_TRUE(incoming->complete());
  const wire::Frame whole = incoming->Take();
  EXPECT_EQ(whole.fds.size(), 1U);
  EXPECT_EQ(whole.body.size(), 4U);
}

TEST(IncomingFrameTest, MoreThanWasSaidIsNoFrame) {
  auto incoming = IncomingFrame::Begin(FrameWith({3}));
  ASSERT_TRUE(incoming.ok());
  EXPECT_FALSE(incoming->Add(Bytes("abcd")).ok());
  v1::Frame body = FrameWith({uint64_t{1} << 40});
  body.set_body_attached(true);
  EXPECT_FALSE(IncomingFrame::Begin(body).ok());
  v1::Frame many = FrameWith({1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_FALSE(IncomingFrame::Begin(many).ok());
}

TEST(IncomingFrameTest, WhatNoMemoryHoldsIsNotBegun) {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  EXPECT_FALSE(IncomingFrame::Begin(FrameWith({kHalf})).ok());
  // Their sum is 0.
  EXPECT_FALSE(IncomingFrame::Begin(FrameWith({kHalf, kHalf})).ok());
  EXPECT_FALSE(IncomingFrame::Begin(FrameWith({1, UINT64_MAX})).ok());
}

}  // namespace
}  // namespace rknnd::client
