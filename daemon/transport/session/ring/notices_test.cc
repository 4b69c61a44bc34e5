// Users for whom it lasts to be told something, and others.

#include "daemon/transport/session/ring/notices.h"

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/testing/recorded_lines.h"
#include "daemon/transport/session/user_threads.h"

namespace rknnd::transport {
namespace {

class NoticesTest : public ::testing::Test {
 protected:
  NoticesTest() { threads_->Start(); }

  // As a send does that walks along a crowd of waiters.
  static base::Expected<void> Dawdle() {
    const std::clock_t begin = std::clock();
    while (std::clock() - begin < CLOCKS_PER_SEC / 10) {
    }
    return {};
  }

  base::FakeClock clock_;
  testing::RecordedLines lines_;
  FailureLog failures_{&lines_, &clock_};
  std::unique_ptr<base::EventLoop> loop_ = *base::EventLoop::Create(&clock_);
  const std::shared_ptr<UserThreads> threads_ = std::make_shared<UserThreads>();
  NoticesByUser users_{threads_, loop_.get(), &failures_};
};

TEST_F(NoticesTest, WhoMakesASendLastIsToldLateFromThenOn) {
  const auto slow = users_.Of("user 7");
  EXPECT_FALSE(slow->late());
  EXPECT_TRUE(slow->Now([] { return base::Expected<void>(); }).ok());
  EXPECT_FALSE(slow->late());
  EXPECT_TRUE(slow->Now(Dawdle).ok());
  EXPECT_TRUE(slow->late());
  EXPECT_TRUE(slow->Now(Dawdle).ok());
  ASSERT_EQ(lines_.lines.size(), 1U);
  EXPECT_EQ(lines_.lines[0].find("user 7 makes it last"), 0U);
  EXPECT_FALSE(users_.Of("user 8")->late());
}

TEST_F(NoticesTest, ItIsRememberedWhenItsProgramsAreGone) {
  EXPECT_TRUE(users_.Of("user 7")->Now(Dawdle).ok());
  users_.Of("user 8");
  EXPECT_TRUE(users_.Of("user 7")->late());
}

TEST_F(NoticesTest, LateOnesAreToldInOrderByAThreadOfTheirUsers) {
  const auto slow = users_.Of("user 7");
  const std::thread::id here = std::this_thread::get_id();
  std::promise<void> go;
  ASSERT_TRUE(slow->Later(
      [wait = go.get_future().share()] {
        wait.wait();
        return base::Expected<void>();
      },
      [](const base::Expected<void>&) {}));
  std::vector<int> order;  // of the user's thread, until the last was told
  std::vector<bool> told;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(slow->Later(
        [&, i]() -> base::Expected<void> {
          EXPECT_NE(std::this_thread::get_id(), here);
          order.push_back(i);
          if (i == 1) return base::Error{base::Code::kUnavailable, "gone"};
          return {};
        },
        [&](const base::Expected<void>& sent) {
          EXPECT_EQ(std::this_thread::get_id(), here);
          told.push_back(sent.ok());
          if (told.size() == 3) loop_->Quit();
        }));
  }
  // Another user's do not wait for them.
  std::promise<void> other;
  ASSERT_TRUE(users_.Of("user 8")->Seldom([&] { other.set_value(); }));
  other.get_future().wait();
  go.set_value();
  loop_->Run();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(told, (std::vector<bool>{true, false, true}));
}

// Nothing else runs on a CPU while somebody is told whom a crowd waits with.
TEST_F(NoticesTest, WhatLastsIsFollowedByALongPauseOfItsUserAlone) {
  const auto slow = users_.Of("user 7");
  std::promise<void> lasted, quick, done;
  std::atomic<bool> again{false};
  ASSERT_TRUE(slow->Seldom([&] {
    EXPECT_TRUE(Dawdle().ok());
    lasted.set_value();
  }));
  ASSERT_TRUE(slow->Seldom([&] { again = true; }));
  lasted.get_future().wait();
  // Others, and what else the user is told, do not wait for it, although a
  // thread would come to them later.
  ASSERT_TRUE(users_.Of("user 8")->Seldom([&] { quick.set_value(); }));
  quick.get_future().wait();
  ASSERT_TRUE(slow->Later(
      [&] {
        done.set_value();
        return base::Expected<void>();
      },
      [](const base::Expected<void>&) {}));
  done.get_future().wait();
  // It would be told within forty seconds.
  EXPECT_FALSE(again);
}

TEST_F(NoticesTest, WhatIsToldAfterTheEndIsForgotten) {
  std::promise<void> go, gone;
  {
    NoticesByUser users(threads_, loop_.get(), &failures_);
    ASSERT_TRUE(users.Of("user 7")->Later(
        [wait = go.get_future().share()] {
          wait.wait();
          return base::Expected<void>();
        },
        [](const base::Expected<void>&) { FAIL() << "its loop has ended"; }));
    ASSERT_TRUE(users.Of("user 7")->Later(
        [&] {
          gone.set_value();
          return base::Expected<void>();
        },
        [](const base::Expected<void>&) {}));
  }
  go.set_value();
  gone.get_future().wait();
  loop_->Post([this] { loop_->Quit(); });
  loop_->Run();
}

}  // namespace
}  // namespace rknnd::transport
