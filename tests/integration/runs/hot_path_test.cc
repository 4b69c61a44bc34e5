// What a frame costs in a steady state, counted and not timed: two wake-ups and
// no other system call on either side, and no allocation in the client. That
// the daemon allocates nothing is daemon/transport/session/hot_path_test.cc's.

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/posix/child_process.h"
#include "base/posix/spinning.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/syscalls.h"

namespace rknnd::integration {
namespace {

constexpr uint64_t kFrames = 300;

class HotPathTest : public IntegrationTest {
 protected:
  void StartWith(const std::string& spin) {
    const std::string config = folder() + "/rknnd.toml";
    std::ofstream(config) << "[scheduler]\nspin = " << spin << '\n';
    DaemonOptions options;
    options.more = {"--config", config};
    StartDaemon(options);
    base::ChildProcess::Options program;
    program.arguments = {base::ProgramFolder() + "/integration_hot_path",
                         MakeRelu(folder()).path, std::to_string(kFrames)};
    program.environment = {{"RKNND_TARGET", daemon().target()}};
    auto started = base::ChildProcess::Start(program);
    ASSERT_TRUE(started.ok()) << started.error().message;
    client_ = *std::move(started);
    ASSERT_EQ(NextLine(), "ready");
    // Uncounted: on a busy machine a worker's thread may begin only now.
    for (int i = 0; i < 3; ++i) {
      RunFrames();
      ASSERT_TRUE(NextLine().find("o") != std::string::npos);
    }
  }
  std::string NextLine() {
    auto line = client_.ReadLine(kPatience);
    return line.ok() ? *line : line.error().message;
  }
  void RunFrames() { ASSERT_TRUE(client_.WriteLine("go").ok()); }

  // By name, of client and daemon; of a client that did `frames`.
  void CountSyscalls(std::map<uint64_t, uint64_t>* client,
                     std::map<uint64_t, uint64_t>* daemon_side) {
    SyscallCounter counter({client_.pid(), daemon().pid()}, client_.pid());
    RunFrames();
    if (!counter.problem().empty()) GTEST_SKIP() << counter.problem();
    SyscallCounter::Counts counts = counter.Wait();
    *client = std::move(counts[client_.pid()]);
    *daemon_side = std::move(counts[daemon().pid()]);
    ASSERT_TRUE(NextLine().find("o") != std::string::npos);
  }

  base::ChildProcess client_;
};

// Takes the calls of a kind out of `counts`; their number.
uint64_t Take(std::map<uint64_t, uint64_t>* counts,
              std::initializer_list<uint64_t> calls) {
  uint64_t sum = 0;
  for (const uint64_t call : calls) {
    const auto found = counts->find(call);
    if (found == counts->end()) continue;
    sum += found->second;
    counts->erase(found);
  }
  return sum;
}

// arm64 has only the newer call of such a pair.
#ifdef SYS_poll
constexpr std::initializer_list<uint64_t> kPolls = {SYS_poll, SYS_ppoll};
constexpr std::initializer_list<uint64_t> kEpollWaits = {SYS_epoll_wait,
                                                         SYS_epoll_pwait};
#else
constexpr std::initializer_list<uint64_t> kPolls = {SYS_ppoll};
constexpr std::initializer_list<uint64_t> kEpollWaits = {SYS_epoll_pwait};
#endif

uint64_t Sum(const std::map<uint64_t, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [call, count] : counts) sum += count;
  return sum;
}

std::string Text(const std::map<uint64_t, uint64_t>& counts) {
  std::string text;
  for (const auto& [call, count] : counts) {
    text += " call " + std::to_string(call) + ": " + std::to_string(count);
  }
  return text;
}

TEST_F(HotPathTest, FrameIsTwoWakeUpsAndNoOtherSystemCall) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer makes calls of its own";
#endif
  StartWith("\"off\"");
  std::map<uint64_t, uint64_t> client, daemon_side;
  CountSyscalls(&client, &daemon_side);
  if (IsSkipped() || HasFatalFailure()) return;

  // A frame that takes longer than the client's slice of 20 ms, on a machine
  // with too much to do, has one more look at the socket for each.
  const uint64_t slices = Take(&client, kPolls);
  EXPECT_LE(slices, kFrames / 10);
  // The doorbell, and the sleep. Either may be left out: a worker that is about
  // to look is not rung for, and an answer that is there is not slept for.
  EXPECT_LE(Take(&client, {SYS_write}), kFrames);
  EXPECT_LE(Take(&client, {SYS_futex}), kFrames + slices);
  // With one CPU it is given to the other side before the sleep.
  EXPECT_LE(Take(&client, {SYS_sched_yield}), base::kYields * kFrames);
  EXPECT_EQ(Sum(client), 0U) << Text(client);

  const uint64_t sleeps = Take(&daemon_side, kEpollWaits);
  // Those of other workers, and of the timer of what expires, are not each
  // frame's.
  EXPECT_LE(sleeps, kFrames + 10);
  EXPECT_LE(Take(&daemon_side, {SYS_futex}), kFrames + 10);
  EXPECT_LE(Take(&daemon_side, {SYS_sched_yield}),
            base::kYields * (kFrames + 10));
  EXPECT_LE(Take(&daemon_side, {SYS_timerfd_settime}), 2U);
  EXPECT_EQ(Sum(daemon_side), 0U) << Text(daemon_side);
}

TEST_F(HotPathTest, FrameOfBothSidesAwakeIsNoSystemCallMore) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer makes calls of its own";
#endif
  StartWith("50");
  std::map<uint64_t, uint64_t> client, daemon_side;
  CountSyscalls(&client, &daemon_side);
  if (IsSkipped() || HasFatalFailure()) return;
  const uint64_t slices = Take(&client, kPolls);
  EXPECT_LE(Take(&client, {SYS_write}), kFrames);
  EXPECT_LE(Take(&client, {SYS_futex}), kFrames + slices);
  // With one CPU it is given to the other side before the sleep.
  EXPECT_LE(Take(&client, {SYS_sched_yield}), base::kYields * kFrames);
  EXPECT_EQ(Sum(client), 0U) << Text(client);
}

TEST_F(HotPathTest, FrameAllocatesNothingInTheClient) {
  StartWith("\"off\"");
  RunFrames();
  const std::string line = NextLine();
  if (line == "uncounted") GTEST_SKIP() << "a sanitizer has the allocator";
  EXPECT_EQ(line, "allocations 0");
}

}  // namespace
}  // namespace rknnd::integration
