// Each case runs in a process of its own, which is filtered for good.

#include "driver/rknnrt/worker/call_filter.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "driver/rknnrt/testing/can_filter_calls.h"
#include "gtest/gtest.h"

namespace rknnd::rknnrt {
namespace {

constexpr char kFolder[] = "/opt/vendor";

TEST(MayOpenTest, TheNpuAndItsMemoryForWriting) {
  EXPECT_TRUE(MayOpen("/dev/dri/card1", true, kFolder));
  EXPECT_TRUE(MayOpen("/dev/dma_heap/system", true, kFolder));
  EXPECT_FALSE(MayOpen("/dev/video0", true, kFolder));
  EXPECT_FALSE(MayOpen("/dev/mem", false, kFolder));
  EXPECT_FALSE(MayOpen("/dev/drive", true, kFolder));
  EXPECT_FALSE(MayOpen("/opt/vendor-of-others/secret", false, kFolder));
}

TEST(MayOpenTest, LibrariesAndTheSystemForReading) {
  EXPECT_TRUE(MayOpen("/usr/lib/librga.so", false, kFolder));
  EXPECT_TRUE(MayOpen("/opt/vendor/librknn_api.so", false, kFolder));
  EXPECT_TRUE(MayOpen("/proc/device-tree/compatible", false, kFolder));
  EXPECT_TRUE(MayOpen("/proc/self/maps", false, kFolder));
  EXPECT_FALSE(MayOpen("/usr/lib/librga.so", true, kFolder));
  EXPECT_FALSE(MayOpen("/home/user/.ssh/id_rsa", false, kFolder));
  EXPECT_FALSE(MayOpen("/proc/1/environ", false, kFolder));
}

TEST(MayOpenTest, NoWayUpAndOut) {
  EXPECT_FALSE(MayOpen("/usr/lib/../../etc/shadow", false, kFolder));
  EXPECT_FALSE(MayOpen("/dev/dri/../mem", true, kFolder));
  EXPECT_FALSE(MayOpen("/usr/lib/..", false, kFolder));
}

class CallFilterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::CanFilterCalls()) {
      GTEST_SKIP() << "this kernel has no filters with a listener";
    }
  }
};

// The status of a process whose calls are filtered; `what` gives it.
template <class What>
void Filtered(What what) {
  EXPECT_EXIT(
      {
        if (!InstallCallFilter(kFolder).ok()) _exit(100);
        _exit(what());
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(CallFilterTest, SocketsAreRefusedAndCounted) {
  Filtered([] {
    if (socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0) return 1;
    if (errno != EPERM) return 2;
    if (RefusedCalls() != 1) return 3;
    return LastRefusedCall() == "socket" ? 0 : 4;
  });
}

TEST_F(CallFilterTest, FilesAreOpenedByTheirPath) {
  Filtered([] {
    if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0) return 1;
    if (errno != EACCES || RefusedCalls() != 1) return 2;
    if (LastRefusedCall() != "open '/etc/passwd'") return 3;
    if (open("/proc/self/maps", O_RDONLY | O_CLOEXEC) < 0) return 4;
    if (open("/usr/lib/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) >= 0) return 5;
    // What is not there is no offence.
    if (open("/no/such/file", O_RDONLY | O_CLOEXEC) >= 0) return 6;
    return RefusedCalls() == 2 ? 0 : 7;
  });
}

TEST_F(CallFilterTest, FilesBelowAnOpenFolderToo) {
  Filtered([] {
    const int folder = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return 1;
    if (openat(folder, "../../etc/passwd", O_RDONLY | O_CLOEXEC) >= 0) return 2;
    return RefusedCalls() == 1 ? 0 : 3;
  });
}

TEST_F(CallFilterTest, NoProcessesButThreads) {
  Filtered([] {
    int sum = 0;
    std::thread([&] { sum = 1; }).join();
    if (sum != 1) return 1;
    if (fork() >= 0) return 2;
    pid_t pid = 0;
    char name[] = "/bin/true";
    char* const arguments[] = {name, nullptr};
    if (posix_spawn(&pid, name, nullptr, nullptr, arguments, nullptr) == 0) {
      return 3;
    }
    return 0;
  });
}

}  // namespace
}  // namespace rknnd::rknnrt
