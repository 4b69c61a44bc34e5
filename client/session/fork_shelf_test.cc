#include "client/session/fork_shelf.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace rknnd::client {
namespace {

int OpenSomething() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// What runs in a child around its fork.
void BeginAsChild(ForkShelf& shelf) {
  shelf.LockForFork();
  shelf.UnlockInChild();
}

TEST(ForkShelfTest, AChildClosesWhatIsOnIt) {
  ForkShelf shelf;
  const int fd = OpenSomething();
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  shelf.AddFd(fd);
  shelf.AddMapping(page, 4096);
  BeginAsChild(shelf);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  EXPECT_EQ(msync(page, 4096, MS_ASYNC), -1);
}

TEST(ForkShelfTest, WhatWasTakenOffStaysOpen) {
  ForkShelf shelf;
  const int fd = OpenSomething();
  shelf.AddFd(fd);
  shelf.RemoveFd(fd);
  BeginAsChild(shelf);
  EXPECT_GE(fcntl(fd, F_GETFD), 0);
  close(fd);
}

TEST(ForkShelfTest, AChildsChildClosesNothingAgain) {
  ForkShelf shelf;
  const int fd = OpenSomething();
  shelf.AddFd(fd);
  BeginAsChild(shelf);
  const int same_number = OpenSomething();
  ASSERT_EQ(same_number, fd);
  BeginAsChild(shelf);
  EXPECT_GE(fcntl(same_number, F_GETFD), 0);
  close(same_number);
}

}  // namespace
}  // namespace rknnd::client
