#include "base/posix/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/socket.h"

namespace rknnd::base {
namespace {

class EventLoopTest : public ::testing::Test {
 protected:
  EventLoopTest() : loop_(*EventLoop::Create(&clock_)) {}

  UniqueFd EventFd() { return *MakeEventFd(); }

  FakeClock clock_;
  std::unique_ptr<EventLoop> loop_;
};

TEST_F(EventLoopTest, RunsPostedTasksInOrderBeforeItQuits) {
  std::string order;
  loop_->Post([&] { order += 'a'; });
  loop_->Post([&] { order += 'b'; });
  loop_->Quit();
  loop_->Run();
  EXPECT_EQ(order, "ab");
}

TEST_F(EventLoopTest, APostedTaskNeverRunsInline) {
  bool inner = false;
  loop_->Post([&] {
    loop_->Post([&] {
      inner = true;
      loop_->Quit();
    });
    EXPECT_FALSE(inner);
  });
  loop_->Run();
  EXPECT_TRUE(inner);
}

TEST_F(EventLoopTest, OtherThreadsPostAndNoneIsLost) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 1000;
  int count = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kPosts; ++i) {
        loop_->Post([&] {
          EXPECT_TRUE(loop_->InLoopThread());
          if (++count == kThreads * kPosts) loop_->Quit();
        });
      }
    });
  }
  loop_->Run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kPosts);
}

TEST_F(EventLoopTest, QuitFromAnotherThreadEndsAWait) {
  std::thread other([&] { loop_->Quit(); });
  loop_->Run();
  other.join();
}

TEST_F(EventLoopTest, CanRunAgain) {
  loop_->Quit();
  loop_->Run();
  bool ran = false;
  loop_->Post([&] {
    ran = true;
    loop_->Quit();
  });
  loop_->Run();
  EXPECT_TRUE(ran);
}

TEST_F(EventLoopTest, OnlyTheRunningThreadIsTheLoop) {
  EXPECT_FALSE(loop_->InLoopThread());
  bool inside = false;
  loop_->Post([&] { inside = loop_->InLoopThread(); });
  loop_->Quit();
  loop_->Run();
  EXPECT_TRUE(inside);
  EXPECT_FALSE(loop_->InLoopThread());
}

TEST_F(EventLoopTest, TellsWhatIsReady) {
  const UniqueFd fd = EventFd();
  uint32_t seen = 0;
  ASSERT_TRUE(loop_->Watch(fd.get(), EPOLLIN, [&](uint32_t events) {
    seen = events;
    loop_->Quit();
  }));
  SignalEventFd(fd.get());
  loop_->Run();
  EXPECT_EQ(seen, static_cast<uint32_t>(EPOLLIN));
}

TEST_F(EventLoopTest, IsLevelTriggered) {
  const UniqueFd fd = EventFd();
  int calls = 0;
  ASSERT_TRUE(loop_->Watch(fd.get(), EPOLLIN, [&](uint32_t) {
    if (++calls == 3) loop_->Quit();
  }));
  SignalEventFd(fd.get());
  loop_->Run();
  EXPECT_EQ(calls, 3);
}

TEST_F(EventLoopTest, AHangUpIsToldWithoutBeingAskedFor) {
  auto pair = *SeqpacketPair();
  uint32_t seen = 0;
  ASSERT_TRUE(loop_->Watch(pair.first.get(), 0, [&](uint32_t events) {
    seen = events;
    loop_->Quit();
  }));
  pair.second.reset();
  loop_->Run();
  EXPECT_NE(seen & EPOLLHUP, 0U);
}

TEST_F(EventLoopTest, AWatchMayRemoveItself) {
  const UniqueFd fd = EventFd();
  SignalEventFd(fd.get());
  int calls = 0;
  EventLoop::WatchId id = 0;
  // The callback owns what it uses until it returns.
  const auto owned = std::make_shared<int>(7);
  id = *loop_->Watch(fd.get(), EPOLLIN, [&, owned](uint32_t) {
    ++calls;
    loop_->Unwatch(id);
    EXPECT_EQ(*owned, 7);
    loop_->Post([&] { loop_->Quit(); });
  });
  loop_->Run();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, AWatchRemovedInTheSameBatchIsNotCalled) {
  const UniqueFd a = EventFd();
  const UniqueFd b = EventFd();
  SignalEventFd(a.get());
  SignalEventFd(b.get());
  int calls = 0;
  EventLoop::WatchId first = 0;
  EventLoop::WatchId second = 0;
  const auto remove_both = [&](uint32_t) {
    ++calls;
    loop_->Unwatch(first);
    loop_->Unwatch(second);
    loop_->Post([&] { loop_->Quit(); });
  };
  first = *loop_->Watch(a.get(), EPOLLIN, remove_both);
  second = *loop_->Watch(b.get(), EPOLLIN, remove_both);
  loop_->Run();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, AClosedFdsNumberCanBeWatchedAgainInItsOwnCallback) {
  UniqueFd fd = EventFd();
  SignalEventFd(fd.get());
  EventLoop::WatchId id = 0;
  bool second_called = false;
  id = *loop_->Watch(fd.get(), EPOLLIN, [&](uint32_t) {
    loop_->Unwatch(id);
    fd = EventFd();
    SignalEventFd(fd.get());
    ASSERT_TRUE(loop_->Watch(fd.get(), EPOLLIN, [&](uint32_t) {
      second_called = true;
      loop_->Quit();
    }));
  });
  loop_->Run();
  EXPECT_TRUE(second_called);
}

TEST_F(EventLoopTest, EventsCanBeTurnedOffAndOn) {
  const UniqueFd fd = EventFd();
  SignalEventFd(fd.get());
  int calls = 0;
  EventLoop::WatchId id = 0;
  id = *loop_->Watch(fd.get(), EPOLLIN, [&](uint32_t) {
    ++calls;
    loop_->ChangeEvents(id, 0);
    loop_->Post([&] { loop_->Quit(); });
  });
  loop_->Run();
  EXPECT_EQ(calls, 1);
  loop_->ChangeEvents(id, EPOLLIN);
  loop_->Run();
  EXPECT_EQ(calls, 2);
}

TEST_F(EventLoopTest, AClosedFdCannotBeWatched) {
  EXPECT_FALSE(loop_->Watch(-1, EPOLLIN, [](uint32_t) {}).ok());
}

TEST_F(EventLoopTest, UnknownWatchesAndTimersAreIgnored) {
  loop_->Unwatch(12345);
  loop_->ChangeEvents(12345, EPOLLIN);
  loop_->CancelTimer(12345);
}

TEST_F(EventLoopTest, TimersRunInOrderOfTheirTime) {
  std::string order;
  loop_->RunAfter(3 * kSecond, [&] {
    order += '3';
    loop_->Quit();
  });
  loop_->RunAfter(1 * kSecond, [&] { order += '1'; });
  loop_->RunAfter(2 * kSecond, [&] { order += '2'; });
  clock_.Advance(3 * kSecond);
  loop_->Run();
  EXPECT_EQ(order, "123");
}

TEST_F(EventLoopTest, ATimerDoesNotRunBeforeItsTime) {
  bool ran = false;
  loop_->RunAfter(10 * kSecond, [&] { ran = true; });
  clock_.Advance(10 * kSecond - 1);
  loop_->Quit();
  loop_->Run();
  EXPECT_FALSE(ran);
  clock_.Advance(1);
  loop_->Quit();
  loop_->Run();
  EXPECT_TRUE(ran);
}

TEST_F(EventLoopTest, ACancelledTimerNeverRunsNotEvenWhenDue) {
  bool ran = false;
  EventLoop::TimerId second = 0;
  loop_->RunAfter(1, [&] { loop_->CancelTimer(second); });
  second = loop_->RunAfter(2, [&] { ran = true; });
  clock_.Advance(kSecond);
  loop_->Quit();
  loop_->Run();
  EXPECT_FALSE(ran);
}

TEST_F(EventLoopTest, ATimerThatSetsAnotherDoesNotStarveTheRest) {
  int rounds = 0;
  std::function<void()> again = [&] {
    ++rounds;
    loop_->RunAfter(0, again);
  };
  loop_->RunAfter(0, again);
  loop_->Post([&] { loop_->Quit(); });
  loop_->Run();
  EXPECT_GE(rounds, 1);
  EXPECT_LE(rounds, 2);
}

TEST_F(EventLoopTest, AnEndlessDelayIsPossible) {
  loop_->RunAfter(INT64_MAX, [] { FAIL(); });
  loop_->Quit();
  loop_->Run();
}

TEST_F(EventLoopTest, ARealClocksTimerFiresNotEarly) {
  const MonotonicClock clock;
  const auto loop = *EventLoop::Create(&clock);
  const Nanoseconds start = clock.Now();
  loop->RunAfter(3 * kMillisecond, [&] { loop->Quit(); });
  loop->Run();
  EXPECT_GE(clock.Now() - start, 3 * kMillisecond);
}

TEST_F(EventLoopTest, WhatWasPostedAndNeverRunIsReleasedWithTheLoop) {
  const auto token = std::make_shared<int>(0);
  loop_->Post([token] {});
  loop_->RunAfter(kSecond, [token] {});
  const UniqueFd fd = EventFd();
  ASSERT_TRUE(loop_->Watch(fd.get(), EPOLLIN, [token](uint32_t) {}));
  loop_.reset();
  EXPECT_EQ(token.use_count(), 1);
}

TEST_F(EventLoopTest, ATaskReleasedWithTheLoopMayStillPost) {
  EventLoop* loop = loop_.get();
  const std::shared_ptr<void> poster(nullptr,
                                     [loop](void*) { loop->Post([] {}); });
  loop->Post([poster] {});
}

}  // namespace
}  // namespace rknnd::base
