// Memories and contexts that come and go leave nothing: in the daemon, in the
// client. ./dev bench memory does the same a hundred thousand times.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/proc.h"
#include "tests/integration/harness/sanitized.h"

namespace rknnd::integration {
namespace {

// Until allocators and tables have the size they stay at.
constexpr int kFirst = 300;
constexpr int kRounds = 3000;
// What one page a hundred rounds would exceed.
constexpr uint64_t kTolerance = uint64_t{96} << 10;
// Mappings that are no leak, which would be one a round: a thread that first
// allocates in the second half makes its heap, of two.
constexpr size_t kHeaps = 8;

class MemoryChurnTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    model_ = MakeRelu(folder());
    client_ = StartClient();
    ASSERT_TRUE(Done(client_->Do("init m " + model_.path)));
  }

  void ExpectNothingLeft(const std::string& command) {
    ASSERT_TRUE(Done(client_->Do(command + " " + std::to_string(kFirst))));
    const ProcessUse daemon_before = UseOf(daemon().pid());
    const ProcessUse client_before = UseOf(client_->pid());

    ASSERT_TRUE(Done(client_->Do(command + " " + std::to_string(kRounds))));

    ExpectSame("daemon", daemon().pid(), daemon_before);
    ExpectSame("client", client_->pid(), client_before);
  }

  static void ExpectSame(const char* who, pid_t pid, const ProcessUse& before) {
    ProcessUse after;
    // Freed by another thread a moment later.
    EXPECT_TRUE(Eventually([&] {
      after = UseOf(pid);
      return after.fds <= before.fds &&
             (kSanitized || (after.mappings <= before.mappings + kHeaps &&
                             after.rss <= before.rss + kTolerance));
    })) << who
        << ": " << testing::PrintToString(after) << ", before "
        << testing::PrintToString(before);
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_F(MemoryChurnTest, SmallMemories) {
  ExpectNothingLeft("churn_mems m 4096");
}

TEST_F(MemoryChurnTest, MemoriesOfSeveralPages) {
  ExpectNothingLeft("churn_mems m 200000");
}

TEST_F(MemoryChurnTest, ImportedMemories) {
  ASSERT_TRUE(Done(client_->Do("import i m sealed 65536 65536 0")));
  ExpectNothingLeft("churn_imports m i");
}

TEST_F(MemoryChurnTest, Contexts) {
  ExpectNothingLeft("churn_contexts " + model_.path);
}

TEST_F(MemoryChurnTest, LargeMemories) {
  // On the pager: fewer, as each is populated.
  ASSERT_TRUE(Done(client_->Do("churn_mems m 2097152 20")));
  const ProcessUse before = UseOf(daemon().pid());
  ASSERT_TRUE(Done(client_->Do("churn_mems m 2097152 200")));
  ExpectSame("daemon", daemon().pid(), before);
}

}  // namespace
}  // namespace rknnd::integration
