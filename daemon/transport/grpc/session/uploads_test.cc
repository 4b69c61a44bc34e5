// Chunks into whole requests, and what several sessions may hold of them.

#include "daemon/transport/grpc/session/uploads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/posix/mapping.h"
#include "base/posix/memfd.h"

namespace rknnd::transport {
namespace {

using ::testing::HasSubstr;

RemoteFrame UploadOf(uint32_t request, std::vector<uint64_t> sizes) {
  RemoteFrame frame;
  frame.frame.verb = wire::Verb::kUploadModel;
  frame.frame.request = request;
  frame.attachments = std::move(sizes);
  return frame;
}

RemoteChunk ChunkOf(uint32_t request, const std::string& bytes) {
  RemoteChunk chunk;
  chunk.request = request;
  chunk.size = bytes.size();
  // In two pieces, as gRPC cuts it.
  const auto all = std::as_bytes(std::span(bytes));
  chunk.data = {all.first(bytes.size() / 2), all.subspan(bytes.size() / 2)};
  return chunk;
}

std::string TextOf(const base::UniqueFd& fd, size_t size) {
  const auto mapping =
      base::Mapping::OfFd(fd.get(), 0, size, base::Mapping::Access::kRead);
  EXPECT_TRUE(mapping.ok());
  return {reinterpret_cast<const char*>(mapping->data()), size};
}

TEST(Uploads, EachAttachmentIsASealedFileAndTheLastTheBody) {
  Uploads uploads(std::make_shared<TransferBudget>(1000), 100);
  RemoteFrame frame = UploadOf(1, {5, 0, 3});
  frame.body_attached = true;
  EXPECT_FALSE(uploads.Begin(std::move(frame), 0).whole.has_value());
  const std::string first = "model", last = "yml";
  EXPECT_FALSE(
      uploads.Append(ChunkOf(1, first.substr(0, 2)), 0).whole.has_value());
  EXPECT_FALSE(
      uploads.Append(ChunkOf(1, first.substr(2)), 0).whole.has_value());
  auto step = uploads.Append(ChunkOf(1, last), 0);
  ASSERT_TRUE(step.whole.has_value());
  const wire::Frame& whole = step.whole->frame;
  ASSERT_EQ(whole.fds.size(), 2U);
  EXPECT_TRUE(base::HasSeals(whole.fds[0].get(), base::Seals::kImmutable));
  EXPECT_TRUE(base::HasSeals(whole.fds[1].get(), base::Seals::kImmutable));
  EXPECT_EQ(TextOf(whole.fds[0], 5), "model");
  EXPECT_EQ(whole.body.size(), 3U);
  EXPECT_EQ(static_cast<char>(whole.body[2]), 'l');
}

TEST(Uploads, ThoseOfOthersTakeTheRoomAndGiveItBack) {
  const auto budget = std::make_shared<TransferBudget>(100);
  Uploads first(budget, 100), second(budget, 100);
  first.Begin(UploadOf(1, {90}), 0);
  const std::string most(80, 'x');
  EXPECT_FALSE(first.Append(ChunkOf(1, most), 0).refused.has_value());
  // Announcing is free.
  EXPECT_FALSE(second.Begin(UploadOf(7, {30}), 0).refused.has_value());
  const std::string some(30, 'y');
  const auto step = second.Append(ChunkOf(7, some), 0);
  ASSERT_TRUE(step.refused.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(step.refused->why));
  EXPECT_THAT(std::string(step.refused->why.message()), HasSubstr("80 of 100"));
  // The rest of it may still come.
  EXPECT_TRUE(second.Append(ChunkOf(7, some), 0).violation.ok());
  first.Clear();
  EXPECT_EQ(budget->used(), 0U);
  second.Begin(UploadOf(8, {30}), 0);
  EXPECT_TRUE(second.Append(ChunkOf(8, some), 0).whole.has_value());
  EXPECT_EQ(budget->used(), 0U);  // with the step that held it
}

TEST(Uploads, NoMoreThanAFewAtOnce) {
  Uploads uploads(std::make_shared<TransferBudget>(100), 100);
  for (uint32_t i = 1; i <= Uploads::kMost; ++i) {
    EXPECT_FALSE(uploads.Begin(UploadOf(i, {9}), 0).refused.has_value());
  }
  EXPECT_TRUE(uploads.Begin(UploadOf(99, {9}), 0).refused.has_value());
}

TEST(Uploads, StalledOnesAreTakenAway) {
  Uploads uploads(std::make_shared<TransferBudget>(100), 100);
  uploads.Begin(UploadOf(1, {9}), 10);
  uploads.Begin(UploadOf(2, {9}), 10);
  const std::string bytes = "abc";
  uploads.Append(ChunkOf(2, bytes), 20);
  const auto stalled = uploads.TakeStalled(20);
  ASSERT_EQ(stalled.size(), 1U);
  EXPECT_EQ(stalled[0].request, 1U);
  EXPECT_TRUE(absl::IsDeadlineExceeded(stalled[0].why));
}

}  // namespace
}  // namespace rknnd::transport
