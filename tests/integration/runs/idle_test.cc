// An idle daemon sleeps, however many sessions there are, and an idle session
// costs nothing but its memory and descriptors. The kernel's count of context
// switches is the witness: a thread that is woken has at least one.

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

constexpr int kSessions = 64;
constexpr unsigned kStretchSeconds = 3;

// Of all threads, of their own accord or not.
uint64_t SwitchesOf(pid_t pid) {
  uint64_t total = 0;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream file(task.path() / "status");
    for (std::string line; std::getline(file, line);) {
      const size_t at = line.find("ctxt_switches:");
      if (at != std::string::npos) total += std::stoull(line.substr(at + 14));
    }
  }
  return total;
}

// In a stretch of time, which is what is measured; the last answer's epilogue
// may fall into the first.
uint64_t WakeUps(pid_t pid) {
  uint64_t least = UINT64_MAX;
  for (int look = 0; look < 3 && least != 0; ++look) {
    const uint64_t before = SwitchesOf(pid);
    sleep(kStretchSeconds);
    least = std::min(least, SwitchesOf(pid) - before);
  }
  return least;
}

class IdleTest : public IntegrationTest {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer has a thread that wakes by itself";
#endif
    IntegrationTest::SetUp();
  }
};

TEST_F(IdleTest, DaemonWithoutWorkSleeps) {
  StartDaemon();
  EXPECT_EQ(WakeUps(daemon().pid()), 0U);
}

TEST_F(IdleTest, IdleSessionsAndContextsWakeNobodyAndHaveNoThreads) {
  const TestModel model = MakeRelu(folder());
  StartDaemon();
  const size_t threads = daemon().threads();
  std::vector<std::unique_ptr<ClientProcess>> clients;
  for (int i = 0; i < kSessions; ++i) {
    clients.push_back(StartClient());
    ASSERT_TRUE(Done(clients.back()->Do("init a " + model.path)));
    ASSERT_TRUE(Done(clients.back()->Do("init b " + model.path)));
  }
  EXPECT_EQ(WakeUps(daemon().pid()), 0U);
  EXPECT_EQ(daemon().threads(), threads);
}

TEST_F(IdleTest, IdleClientsSleepToo) {
  const TestModel model = MakeRelu(folder());
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  EXPECT_EQ(WakeUps(client->pid()), 0U);
}

}  // namespace
}  // namespace rknnd::integration
