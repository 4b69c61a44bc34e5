// Descriptors whose closing lasts, and others' that do not wait for them.

#include "daemon/transport/session/user_threads.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/memfd.h"
#include "base/posix/testing/lingering.h"
#include "base/posix/unique_fd.h"

namespace rknnd::transport {
namespace {

using base::testing::Lingering;

constexpr int kPatienceMs = 60'000;

// Whose other end sees it closed.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    read = base::UniqueFd(ends[0]);
    write = base::UniqueFd(ends[1]);
  }
  [[nodiscard]] bool IsClosed(int patience = kPatienceMs) const {
    pollfd ready{read.get(), POLLIN, 0};
    return poll(&ready, 1, patience) == 1 && (ready.revents & POLLHUP) != 0;
  }
  base::UniqueFd read, write;
};

std::vector<base::UniqueFd> One(base::UniqueFd fd) {
  std::vector<base::UniqueFd> fds;
  fds.push_back(std::move(fd));
  return fds;
}

TEST(UserThreadsTest, WhoHoldsItUpHoldsUpItsOwn) {
  auto hostile = std::make_unique<Lingering>();
  ASSERT_TRUE(hostile->near.valid());
  Pipe behind, other;
  UserThreads closer;
  closer.Start();
  closer.Close("hostile", One(std::move(hostile->near)));
  closer.Close("hostile", One(std::move(behind.write)));
  closer.Close("other", One(std::move(other.write)));
  EXPECT_TRUE(other.IsClosed());
  EXPECT_FALSE(behind.IsClosed(0));
  EXPECT_TRUE(closer.HasRoom("hostile"));
  // The connection is reset: closing ends.
  hostile.reset();
  EXPECT_TRUE(behind.IsClosed());
}

TEST(UserThreadsTest, NobodyKeepsMoreThanItMay) {
  auto hostile = std::make_unique<Lingering>();
  ASSERT_TRUE(hostile->near.valid());
  UserThreads closer;
  closer.Start();
  closer.Close("hostile", One(std::move(hostile->near)));
  std::vector<base::UniqueFd> many(UserThreads::kMostOfOwner + 1);
  closer.Close("hostile", std::move(many));
  EXPECT_FALSE(closer.HasRoom("hostile"));
  EXPECT_TRUE(closer.HasRoom("other"));
  hostile.reset();
}

TEST(UserThreadsTest, WorkThatAsksForAPauseGetsIt) {
  const base::MonotonicClock clock;
  UserThreads threads;
  threads.Start();
  std::promise<base::Nanoseconds> second, third;
  base::Nanoseconds first = 0;
  // More than one thread would be of use meanwhile, and one stays.
  ASSERT_TRUE(threads.Do("slow", [&] {
    first = clock.Now();
    return 20 * base::kMillisecond;
  }));
  ASSERT_TRUE(threads.Do("slow", [&] {
    second.set_value(clock.Now());
    return 20 * base::kMillisecond;
  }));
  ASSERT_TRUE(threads.Do("other", [] { return base::Nanoseconds{0}; }));
  const base::Nanoseconds began = second.get_future().get();
  EXPECT_GE(began, first + 20 * base::kMillisecond);
  // Also where nothing of it waited when the pause began.
  ASSERT_TRUE(threads.Do("slow", [&] {
    third.set_value(clock.Now());
    return base::Nanoseconds{0};
  }));
  EXPECT_GE(third.get_future().get(), began + 20 * base::kMillisecond);
}

TEST(UserThreadsTest, WhoRestsIsServedAlthoughAThreadIsHeldUp) {
  auto hostile = std::make_unique<Lingering>();
  ASSERT_TRUE(hostile->near.valid());
  UserThreads threads;
  threads.Start();
  std::promise<void> done;
  ASSERT_TRUE(threads.Do("slow", [] { return 20 * base::kMillisecond; }));
  ASSERT_TRUE(threads.Do("slow", [&] {
    done.set_value();
    return base::Nanoseconds{0};
  }));
  threads.Close("hostile", One(std::move(hostile->near)));
  done.get_future().wait();
  hostile.reset();
}

TEST(UserThreadsTest, ClosesAtOnceBeforeItIsStarted) {
  UserThreads closer;
  Pipe pipe;
  closer.Close("any", One(std::move(pipe.write)));
  EXPECT_TRUE(pipe.IsClosed(0));
}

TEST(UserThreadsTest, ItsEndWaitsForWhatCanBeClosed) {
  Pipe pipe;
  {
    UserThreads closer;
    closer.Start();
    closer.Close("any", One(std::move(pipe.write)));
  }
  EXPECT_TRUE(pipe.IsClosed(0));
}

TEST(ClosesElsewhereTest, LeavesAllButLittleMemory) {
  std::vector<base::UniqueFd> left;
  Pipe pipe;
  const int number = pipe.write.get();
  {
    const ClosesElsewhere elsewhere(&left);
    pipe.write.reset();
    ASSERT_TRUE(base::MakeImmutableMemfd("gone", {}).ok());
  }
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].get(), number);
  EXPECT_FALSE(pipe.IsClosed(0));
  left.clear();
  EXPECT_TRUE(pipe.IsClosed(0));
}

TEST(ClosesElsewhereTest, LeavesMemoryOfManyPages) {
  constexpr uint64_t kMany = uint64_t{2} << 20;
  std::vector<base::UniqueFd> left;
  {
    const ClosesElsewhere elsewhere(&left);
    // Without a page yet, whatever its size.
    ASSERT_TRUE(base::MakeMemfd("none", kMany).ok());
    base::UniqueFd filled = *base::MakeMemfd("filled", kMany);
    ASSERT_TRUE(base::FillMemfd(filled.get(), kMany).ok());
  }
  EXPECT_EQ(left.size(), 1U);
}

}  // namespace
}  // namespace rknnd::transport
