#include "base/posix/memfd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <string>
#include <vector>

namespace rknnd::base {
namespace {

uint64_t SizeOf(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

TEST(MemfdTest, HasItsSizeAndCannotChangeIt) {
  const Expected<UniqueFd> fd = MakeMemfd("test", 10000);
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(SizeOf(fd->get()), 10000U);
  EXPECT_NE(ftruncate(fd->get(), 1), 0);
  EXPECT_NE(ftruncate(fd->get(), 20000), 0);
  EXPECT_EQ(write(fd->get(), "x", 1), 1);
}

TEST(MemfdTest, AFilledOneHasAllOfItsMemory) {
  constexpr uint64_t kSize = 300'000;  // no multiple of what is written at once
  Expected<UniqueFd> fd = MakeMemfd("test", kSize);
  ASSERT_TRUE(fd.ok());
  ASSERT_TRUE(FillMemfd(fd->get(), kSize).ok());
  struct stat status = {};
  ASSERT_EQ(fstat(fd->get(), &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(kSize));
  EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, kSize);
}

TEST(MemfdTest, FillingWhatIsNoMemfdIsAnError) {
  EXPECT_FALSE(FillMemfd(-1, 1).ok());
  EXPECT_TRUE(FillMemfd(-1, 0).ok());
}

TEST(MemfdTest, CannotBeSealedFurther) {
  const Expected<UniqueFd> fd = MakeMemfd("test", 4096);
  ASSERT_TRUE(fd.ok());
  EXPECT_NE(fcntl(fd->get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(MemfdTest, ClosesOnExec) {
  const Expected<UniqueFd> fd = MakeMemfd("test", 1);
  ASSERT_TRUE(fd.ok());
  EXPECT_NE(fcntl(fd->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(MemfdTest, AnImpossibleSizeIsAnError) {
  const Expected<UniqueFd> fd =
      MakeMemfd("test", std::numeric_limits<uint64_t>::max());
  ASSERT_FALSE(fd.ok());
  EXPECT_EQ(fd.error().code, Code::kOutOfRange);
}

TEST(MemfdTest, AGrowingOneIsWrittenUntilItIsSealed) {
  const Expected<UniqueFd> fd = MakeGrowingMemfd("dump");
  ASSERT_TRUE(fd.ok());
  const std::string part(70000, 'p');
  ASSERT_TRUE(AppendToMemfd(fd->get(), std::as_bytes(std::span(part))).ok());
  ASSERT_TRUE(AppendToMemfd(fd->get(), std::as_bytes(std::span(part))).ok());
  EXPECT_EQ(SizeOf(fd->get()), 2 * part.size());
  EXPECT_FALSE(HasSeals(fd->get(), Seals::kImmutable));

  ASSERT_TRUE(SealMemfd(fd->get()).ok());

  EXPECT_TRUE(HasSeals(fd->get(), Seals::kImmutable));
  EXPECT_FALSE(AppendToMemfd(fd->get(), std::as_bytes(std::span(part))).ok());
}

TEST(MemfdTest, AnImmutableOneHoldsItsBytesForEver) {
  const std::string text(100000, 'm');
  const Expected<UniqueFd> fd =
      MakeImmutableMemfd("model", std::as_bytes(std::span(text)));
  ASSERT_TRUE(fd.ok());
  std::string copy(text.size() + 1, ' ');
  ASSERT_EQ(pread(fd->get(), copy.data(), copy.size(), 0),
            static_cast<ssize_t>(text.size()));
  copy.resize(text.size());
  EXPECT_EQ(copy, text);
  EXPECT_EQ(pwrite(fd->get(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(MemfdTest, AnImmutableOneMayBeEmpty) {
  const Expected<UniqueFd> fd = MakeImmutableMemfd("empty", {});
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(SizeOf(fd->get()), 0U);
}

TEST(HasSealsTest, TellsSizeSealsFromAllSeals) {
  const Expected<UniqueFd> sized = MakeMemfd("sized", 4096);
  const Expected<UniqueFd> immutable = MakeImmutableMemfd("immutable", {});
  ASSERT_TRUE(sized.ok() && immutable.ok());
  EXPECT_TRUE(HasSeals(sized->get(), Seals::kFixedSize));
  EXPECT_FALSE(HasSeals(sized->get(), Seals::kImmutable));
  EXPECT_TRUE(HasSeals(immutable->get(), Seals::kFixedSize));
  EXPECT_TRUE(HasSeals(immutable->get(), Seals::kImmutable));
}

TEST(HasSealsTest, AnUnsealedMemfdHasNone) {
  const UniqueFd fd(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_TRUE(fd.valid());
  EXPECT_FALSE(HasSeals(fd.get(), Seals::kFixedSize));
}

TEST(HasSealsTest, AgainstNewWritersOnlyIsNotImmutable) {
  const UniqueFd fd(memfd_create("future", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS,
                  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE),
            0);
  EXPECT_FALSE(HasSeals(fd.get(), Seals::kImmutable));
}

TEST(HasSealsTest, AHugetlbMemfdIsRefusedWhateverItsSeals) {
  const UniqueFd fd(
      memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!fd.valid()) GTEST_SKIP() << "this kernel has no hugetlb memfds";
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_FALSE(HasSeals(fd.get(), Seals::kFixedSize));
}

TEST(HasSealsTest, OtherFilesHaveNone) {
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd out(ends[0]);
  const UniqueFd in(ends[1]);
  EXPECT_FALSE(HasSeals(out.get(), Seals::kFixedSize));
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(HasSeals(null.get(), Seals::kFixedSize));
  EXPECT_FALSE(HasSeals(-1, Seals::kFixedSize));
}

}  // namespace
}  // namespace rknnd::base
