// Tests of buffers: hostile fds, sizes and numbers, limits, and when memory is
// given back.

#include "daemon/core/memory/buffer_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/posix/memfd.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

class BufferTableTest : public testing::CoreTest {
 protected:
  static base::UniqueFd Memfd(uint64_t size) {
    auto fd = base::MakeMemfd("frame", size);
    EXPECT_TRUE(fd.ok());
    return fd.ok() ? *std::move(fd) : base::UniqueFd();
  }
};

TEST_F(BufferTableTest, AllocatedBufferIsMappableByItsClient) {
  const TestSession session = Open();
  auto buffer = AllocateNow(session, 1, 5000, 0);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(buffer->size, 2 * kPage);
  EXPECT_EQ(buffer->heap, "memfd");
  void* mapped = mmap(nullptr, buffer->size, PROT_READ | PROT_WRITE, MAP_SHARED,
                      buffer->fd.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  munmap(mapped, buffer->size);
}

TEST_F(BufferTableTest, BufferIsChargedToItsSessionWithTheKernelsSize) {
  const TestSession session = Open();
  ASSERT_TRUE(AllocateNow(session, 1, 5000, 0).ok());
  ASSERT_TRUE(ImportNow(session, 2, Memfd(kPage), 0).ok());
  EXPECT_EQ(memory().io, 3 * kPage);
  EXPECT_EQ(service->Sessions()[0].memory, 3 * kPage);
  EXPECT_EQ(service->Sessions()[0].buffers, 2U);
}

TEST_F(BufferTableTest, ReleasedBufferLeavesNothing) {
  const TestSession session = Open();
  const size_t fds = OpenFds();
  ASSERT_TRUE(AllocateNow(session, 1, 5000, 0).ok());
  ASSERT_TRUE(ImportNow(session, 2, Memfd(kPage), 0).ok());
  ASSERT_TRUE(session->ReleaseBuffer(1).ok());
  ASSERT_TRUE(session->ReleaseBuffer(2).ok());
  EXPECT_EQ(memory().total(), 0U);
  EXPECT_EQ(device.memories(), 0U);
  EXPECT_EQ(OpenFds(), fds);
}

TEST_F(BufferTableTest, NumberZeroIsRefused) {
  const TestSession session = Open();
  EXPECT_EQ(AllocateNow(session, 0, kPage, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(BufferTableTest, UsedNumberIsRefusedAndFreeAgainAfterRelease) {
  const TestSession session = Open();
  ASSERT_TRUE(AllocateNow(session, 7, kPage, 0).ok());
  EXPECT_EQ(ImportNow(session, 7, Memfd(kPage), 0).status().code(),
            absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(session->ReleaseBuffer(7).ok());
  EXPECT_TRUE(ImportNow(session, 7, Memfd(kPage), 0).ok());
}

TEST_F(BufferTableTest, AnotherSessionsNumberDoesNotExist) {
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  ASSERT_TRUE(AllocateNow(first, 7, kPage, 0).ok());
  EXPECT_EQ(second->ReleaseBuffer(7).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(AllocateNow(second, 7, kPage, 0).ok());
}

TEST_F(BufferTableTest, ImpossibleSizesAreRefused) {
  const TestSession session = Open();
  for (const uint64_t size :
       {uint64_t{0}, UINT64_MAX, UINT64_MAX - 4095, uint64_t{1} << 63}) {
    EXPECT_FALSE(AllocateNow(session, 1, size, 0).ok()) << size;
  }
  EXPECT_EQ(memory().total(), 0U);
}

TEST_F(BufferTableTest, UnknownFlagsAreRefusedAndHintsAccepted) {
  const TestSession session = Open();
  EXPECT_FALSE(AllocateNow(session, 1, kPage, 0x1000).ok());
  EXPECT_TRUE(AllocateNow(session, 1, kPage, 2 | 4).ok());
}

TEST_F(BufferTableTest, ImportOfWhatIsNoMemoryIsRefused) {
  const TestSession session = Open();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  base::UniqueFd write_end(ends[1]);
  EXPECT_FALSE(ImportNow(session, 1, base::UniqueFd(ends[0]), 0).ok());
  EXPECT_FALSE(ImportNow(session, 1,
                         base::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)),
                         0)
                   .ok());
  EXPECT_FALSE(ImportNow(session, 1, base::UniqueFd(), 0).ok());
  const base::UniqueFd unsealed(memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.get(), kPage), 0);
  auto copy = base::Duplicate(unsealed.get());
  ASSERT_TRUE(copy.ok());
  EXPECT_FALSE(ImportNow(session, 1, *std::move(copy), 0).ok());
  EXPECT_EQ(memory().total(), 0U);
}

TEST_F(BufferTableTest, ImportSmallerThanSaidNamesBothSizes) {
  const TestSession session = Open();
  const auto buffer = ImportNow(session, 3, Memfd(kPage), 8000);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(buffer.status().message().find("8000"), std::string::npos);
  EXPECT_NE(buffer.status().message().find("4096"), std::string::npos);
  EXPECT_EQ(memory().total(), 0U);
}

TEST_F(BufferTableTest, SparseImportIsChargedBeforeItIsMapped) {
  options.limits.memory = 1 << 20;
  StartService();
  const TestSession session = Open(42);
  const auto buffer = ImportNow(session, 1, Memfd(uint64_t{1} << 28), 0);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(buffer.status().message().find("'memory' of 1048576"),
            std::string::npos);
  EXPECT_NE(buffer.status().message().find("pid 42 'cam'"), std::string::npos);
  EXPECT_EQ(device.memories(), 0U);
}

TEST_F(BufferTableTest, BufferThatKeepsOthersWaitingIsRefusedUnmapped) {
  options.limits.buffer_bytes = 1 << 20;
  StartService();
  const TestSession session = Open(42);

  const auto made = AllocateNow(session, 1, (1 << 20) + 1, 0);
  const auto imported = ImportNow(session, 2, Memfd(2 << 20), 0);

  for (const auto* refused : {&made, &imported}) {
    EXPECT_EQ(refused->status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(refused->status().message().find("'buffer_bytes' is 1048576"),
              std::string::npos);
  }
  EXPECT_EQ(device.memories(), 0U);
  EXPECT_TRUE(AllocateNow(session, 1, 1 << 20, 0).ok());
}

TEST_F(BufferTableTest, BufferLimitNamesLimitAndHolder) {
  options.limits.buffers = 2;
  StartService();
  const TestSession session = Open(42);
  ASSERT_TRUE(AllocateNow(session, 1, kPage, 0).ok());
  ASSERT_TRUE(AllocateNow(session, 2, kPage, 0).ok());
  const auto refused = AllocateNow(session, 3, kPage, 0);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("'buffers' is 2"),
            std::string::npos);
  EXPECT_NE(refused.status().message().find("pid 42 'cam'"), std::string::npos);
}

TEST_F(BufferTableTest, ReleasedNumbersStillBoundCountTowardsTheLimit) {
  options.limits.buffers = 2;
  StartService();
  const TestSession session = Open();
  Upload(session, "inputs=3");
  Create(session, 1, "inputs=3");
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(AllocateNow(session, 9, kPage, 0).ok());
    ASSERT_TRUE(
        session->Bind(BindTo(1, driver::Direction::kInput, i, 9, kPage)).ok());
    ASSERT_TRUE(session->ReleaseBuffer(9).ok());
  }
  EXPECT_EQ(AllocateNow(session, 9, kPage, 0).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(BufferTableTest, ReadOnlyImportServesInputsOnly) {
  const TestSession session = Open();
  Upload(session, "bytes=16");
  Create(session, 1, "bytes=16");
  const base::UniqueFd writable = Memfd(kPage);
  const std::string path = "/proc/self/fd/" + std::to_string(writable.get());
  base::UniqueFd read_only(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(read_only.valid());
  const auto imported = ImportNow(session, 1, std::move(read_only), kPage);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_TRUE(
      session->Bind(BindTo(1, driver::Direction::kInput, 0, 1, kPage)).ok());
  EXPECT_EQ(
      session->Bind(BindTo(1, driver::Direction::kOutput, 0, 1, kPage)).code(),
      absl::StatusCode::kInvalidArgument);
}

TEST_F(BufferTableTest, FailedAttachLeavesNothing) {
  const TestSession session = Open();
  const size_t fds = OpenFds();
  device.set_attach_limit(1);
  EXPECT_FALSE(AllocateNow(session, 1, kPage, 0).ok());
  EXPECT_FALSE(ImportNow(session, 1, Memfd(kPage), 0).ok());
  EXPECT_EQ(memory().total(), 0U);
  EXPECT_EQ(OpenFds(), fds);
}

}  // namespace
}  // namespace rknnd::core
