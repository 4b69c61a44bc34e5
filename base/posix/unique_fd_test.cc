#include "base/posix/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace rknnd::base {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

UniqueFd OpenNull() { return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)); }

TEST(UniqueFdTest, ClosesWhenItGoes) {
  int number = -1;
  {
    const UniqueFd fd = OpenNull();
    number = fd.get();
    ASSERT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(UniqueFdTest, MovingLeavesTheSourceEmpty) {
  UniqueFd first = OpenNull();
  const int number = first.get();
  UniqueFd second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT: specified to be empty
  EXPECT_EQ(second.get(), number);
}

TEST(UniqueFdTest, AssigningClosesWhatWasThere) {
  UniqueFd fd = OpenNull();
  const int old = fd.get();
  fd = OpenNull();
  EXPECT_FALSE(IsOpen(old));
  EXPECT_TRUE(fd.valid());
}

TEST(UniqueFdTest, ReleaseGivesOwnershipAway) {
  UniqueFd fd = OpenNull();
  const int number = fd.release();
  EXPECT_FALSE(fd.valid());
  EXPECT_TRUE(IsOpen(number));
  close(number);
}

TEST(UniqueFdTest, ResetKeepsErrno) {
  UniqueFd fd(1 << 20);  // closing it fails
  errno = ENOSPC;
  fd.reset();
  EXPECT_EQ(errno, ENOSPC);
}

TEST(DuplicateTest, NamesTheSameOpenFileAndClosesOnExec) {
  const UniqueFd fd = OpenNull();
  const Expected<UniqueFd> copy = Duplicate(fd.get());
  ASSERT_TRUE(copy.ok());
  EXPECT_NE(copy->get(), fd.get());
  EXPECT_NE(fcntl(copy->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(DuplicateTest, ANumberThatIsNotOpenIsAnError) {
  EXPECT_FALSE(Duplicate(-1).ok());
}

}  // namespace
}  // namespace rknnd::base
