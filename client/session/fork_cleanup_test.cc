#include "client/session/fork_cleanup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace rknnd::client {
namespace {

int OpenSomething() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// What runs in a child around its fork.
void BeginAsChild(ForkCleanup& cleanup) {
  cleanup.LockForFork();
  cleanup.UnlockInChild();
}

TEST(ForkCleanupTest, AChildClosesWhatIsOnIt) {
  ForkCleanup cleanup;
  const int fd = OpenSomething();
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  cleanup.AddFd(fd);
  cleanup.AddMapping(page, 4096);
  BeginAsChild(cleanup);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  EXPECT_EQ(msync(page, 4096, MS_ASYNC), -1);
}

TEST(ForkCleanupTest, WhatWasTakenOffStaysOpen) {
  ForkCleanup cleanup;
  const int fd = OpenSomething();
  cleanup.AddFd(fd);
  cleanup.RemoveFd(fd);
  BeginAsChild(cleanup);
  EXPECT_GE(fcntl(fd, F_GETFD), 0);
  close(fd);
}

TEST(ForkCleanupTest, AChildsChildClosesNothingAgain) {
  ForkCleanup cleanup;
  const int fd = OpenSomething();
  cleanup.AddFd(fd);
  BeginAsChild(cleanup);
  const int same_number = OpenSomething();
  ASSERT_EQ(same_number, fd);
  BeginAsChild(cleanup);
  EXPECT_GE(fcntl(same_number, F_GETFD), 0);
  close(same_number);
}

}  // namespace
}  // namespace rknnd::client
