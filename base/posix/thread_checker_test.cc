#include "base/posix/thread_checker.h"

#include <gtest/gtest.h>

#include <thread>

namespace rknnd::base {
namespace {

bool AskedOnAnotherThread(const ThreadChecker& checker) {
  bool answer = false;
  std::thread([&] { answer = checker.CalledOnItsThread(); }).join();
  return answer;
}

TEST(ThreadCheckerTest, BelongsToTheFirstThreadThatAsks) {
  const ThreadChecker checker;
  EXPECT_TRUE(checker.CalledOnItsThread());
  EXPECT_TRUE(checker.CalledOnItsThread());
  EXPECT_FALSE(AskedOnAnotherThread(checker));
}

TEST(ThreadCheckerTest, DetachedItBelongsToTheNext) {
  ThreadChecker checker;
  EXPECT_TRUE(checker.CalledOnItsThread());
  checker.Detach();
  EXPECT_TRUE(AskedOnAnotherThread(checker));
  EXPECT_FALSE(checker.CalledOnItsThread());
}

}  // namespace
}  // namespace rknnd::base
