#include "daemon/metrics/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace rknnd::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Keeps what is posted and runs none of it.
class StoppedLoop final : public base::Executor {
 public:
  void Post(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  void RunAll() {
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
};

absl::StatusOr<std::unique_ptr<MetricsServer>> StartAt(
    const std::string& address, base::Executor* loop) {
  return MetricsServer::Start({address, loop, [] { return BoardFigures(); }});
}

TEST(MetricsServerTest, AddressesThatAreNoneAreRefused) {
  StoppedLoop loop;
  for (const char* address :
       {"", "9464", ":9464", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x",
        "127.0.0.1:0,127.0.0.2:0", "127.0.0.1:0s"}) {
    const auto server = StartAt(address, &loop);
    EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST(MetricsServerTest, KernelChoosesThePort) {
  StoppedLoop loop;
  const auto server = StartAt("127.0.0.1:0", &loop);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->address(), StartsWith("127.0.0.1:"));
  EXPECT_NE((*server)->address(), "127.0.0.1:0");
}

TEST(MetricsServerTest, AddressInUseIsAnErrorThatSaysSo) {
  StoppedLoop loop;
  const auto first = StartAt("127.0.0.1:0", &loop);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = StartAt((*first)->address(), &loop);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use"));
}

TEST(MetricsServerTest, WhatIsPostedMayRunAfterItsEnd) {
  StoppedLoop loop;
  auto server = StartAt("127.0.0.1:0", &loop);
  ASSERT_TRUE(server.ok()) << server.status();
  server->reset();
  loop.RunAll();
}

}  // namespace
}  // namespace rknnd::metrics
