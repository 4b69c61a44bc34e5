// Ends that a program takes from queues of completions, whole or by callbacks;
// and how frames wait before.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "client/rknnrt/api/run_api_fixture.h"

namespace rknnd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class QueueApiTest : public RunApiFixture {};

TEST_F(QueueApiTest, QueueCanBeReadWhileCompletionsAreThere) {
  const rknn_context context = Ready();
  const int fd = rknnd_queue_fd(Queue());
  ASSERT_GE(fd, 0);
  EXPECT_FALSE(CanBeRead(fd));
  Hold();
  rknnd_run_options options = Queued();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
  }
  AwaitRuns(3);
  EXPECT_FALSE(CanBeRead(fd));
  EXPECT_TRUE(IsEmpty());
  Daemon().Release(3);
  std::vector<uint64_t> frames;
  while (frames.size() < 3) {
    ASSERT_TRUE(CanBeRead(fd, kPatience)) << frames.size();
    ASSERT_TRUE(CanBeRead(fd)) << frames.size();
    rknnd_completion completion;
    ASSERT_TRUE(Next(&completion));
    EXPECT_EQ(completion.code, RKNN_SUCC);
    frames.push_back(completion.frame_id);
  }
  EXPECT_THAT(frames, ElementsAre(1, 2, 3));
  EXPECT_TRUE(IsEmpty());
  EXPECT_FALSE(CanBeRead(fd));
}

TEST_F(QueueApiTest, TenContextsShareAQueueAndOneThread) {
  constexpr int kCameras = 10;
  constexpr uint64_t kFrames = 50;
  std::vector<uint64_t> last(kCameras);
  std::vector<rknn_context> contexts;
  for (int i = 0; i < kCameras; ++i) {
    contexts.push_back(Ready());
    for (int ahead = 0; ahead < 2; ++ahead) {
      rknnd_run_options options = Queued(&last[static_cast<size_t>(i)]);
      ASSERT_EQ(rknnd_submit(contexts.back(), &options, nullptr), RKNN_SUCC);
    }
  }
  size_t ended = 0;
  while (ended < kCameras * kFrames) {
    rknnd_completion completion;
    ASSERT_TRUE(Next(&completion)) << ended;
    ++ended;
    ASSERT_EQ(completion.code, RKNN_SUCC);
    auto* at = static_cast<uint64_t*>(completion.user);
    ASSERT_EQ(completion.frame_id, *at + 1);
    *at = completion.frame_id;
    if (*at + 2 <= kFrames) {
      rknnd_run_options options = Queued(at);
      ASSERT_EQ(rknnd_submit(completion.context, &options, nullptr), RKNN_SUCC);
    }
  }
  EXPECT_TRUE(IsEmpty());
  for (const uint64_t frames : last) EXPECT_EQ(frames, kFrames);
}

TEST_F(QueueApiTest, DispatchCallsTheCallbacksOfWhatIsThere) {
  const rknn_context context = Ready();
  std::vector<uint64_t> seen;
  rknnd_run_options options = Queued(&seen);
  options.callback = [](const rknnd_completion* completion) {
    static_cast<std::vector<uint64_t>*>(completion->user)
        ->push_back(completion->frame_id);
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
  }
  uint32_t all = 0;
  while (all < 3) {
    ASSERT_TRUE(CanBeRead(rknnd_queue_fd(queue_), kPatience));
    uint32_t called = 0;
    ASSERT_EQ(rknnd_dispatch(queue_, &called), RKNN_SUCC);
    all += called;
  }
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
  uint32_t called = 7;
  EXPECT_EQ(rknnd_dispatch(queue_, &called), RKNN_SUCC);
  EXPECT_EQ(called, 0U);
}

TEST_F(QueueApiTest, CallbackMayDestroyItsQueue) {
  const rknn_context context = Ready();
  rknnd_run_options options = Queued(&queue_);
  options.callback = [](const rknnd_completion* completion) {
    auto* queue = static_cast<rknnd_queue*>(completion->user);
    EXPECT_EQ(rknnd_queue_destroy(*queue), RKNN_SUCC);
    *queue = 0;
  };
  ASSERT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
  ASSERT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
  ASSERT_TRUE(CanBeRead(rknnd_queue_fd(queue_), kPatience));
  EXPECT_EQ(rknnd_dispatch(queue_, nullptr), RKNN_SUCC);
  EXPECT_EQ(queue_, 0U);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
}

TEST_F(QueueApiTest, FailureIsACompletionWithItsText) {
  const rknn_context context = Ready();
  Daemon().set_runs(Runs::kFail);
  rknnd_run_options options = Queued();
  ASSERT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
  rknnd_completion completion;
  ASSERT_TRUE(Next(&completion));
  EXPECT_EQ(completion.code, RKNN_ERR_FAIL);
  EXPECT_STREQ(rknnd_last_error(), "rknnd_queue_next: told to fail");
}

TEST_F(QueueApiTest, QueueThatIsDestroyedWithRunsOnTheirWayHarmsNobody) {
  const rknn_context context = Ready();
  Hold();
  rknnd_run_options options = Queued();
  ASSERT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
  AwaitRuns(1);
  const rknnd_queue gone = queue_;
  ASSERT_EQ(rknnd_queue_destroy(queue_), RKNN_SUCC);
  queue_ = 0;
  Daemon().Release(1);
  Daemon().set_runs(Runs::kAnswer);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(rknnd_wait(context, 0, 0, nullptr, 0), RKNND_ERR_EMPTY);
  rknnd_completion completion;
  EXPECT_EQ(rknnd_queue_next(gone, &completion, sizeof completion),
            RKNN_ERR_PARAM_INVALID);
  EXPECT_LT(rknnd_queue_fd(gone), 0);
  EXPECT_EQ(rknnd_dispatch(gone, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknnd_queue_destroy(gone), RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("does not exist"));
  EXPECT_EQ(rknnd_submit(context, &options, nullptr), RKNN_ERR_PARAM_INVALID);
}

TEST_F(QueueApiTest, ProgramThatTakesNoCompletionsIsToldSoInTime) {
  const rknn_context context = Ready();
  rknnd_run_options options = Queued();
  int accepted = 0;
  int code = RKNN_SUCC;
  for (; accepted < 10000; ++accepted) {
    code = rknnd_submit(context, &options, nullptr);
    if (code != RKNN_SUCC &&
        std::strstr(rknnd_last_error(), "on their way") != nullptr) {
      // The ring is full: until one has ended.
      ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
      code = rknnd_submit(context, &options, nullptr);
    }
    if (code != RKNN_SUCC) break;
  }
  EXPECT_EQ(code, RKNN_ERR_MALLOC_FAIL);
  EXPECT_EQ(accepted, 4096);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("rknnd_queue_next"));
  // None of them is lost.
  rknnd_completion completion;
  for (int i = 0; i < accepted; ++i) ASSERT_TRUE(Next(&completion));
  EXPECT_TRUE(IsEmpty());
}

TEST_F(QueueApiTest, NoCompletionIsLostOrDoubledAmongThreads) {
  constexpr int kThreads = 3;
  constexpr int kRuns = 200;
  Queue();
  std::vector<rknn_context> contexts;
  for (int i = 0; i < kThreads; ++i) contexts.push_back(Ready());
  base::Mutex mutex;
  std::multiset<std::pair<rknn_context, uint64_t>> seen;
  std::atomic<size_t> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < kRuns;) {
        rknnd_run_options options = Queued();
        if (rknnd_submit(contexts[static_cast<size_t>(i)], &options, nullptr) ==
            RKNN_SUCC) {
          ++n;
        }
      }
    });
    threads.emplace_back([&] {
      while (taken < kThreads * kRuns) {
        rknnd_completion completion;
        if (rknnd_queue_next(queue_, &completion, sizeof completion) !=
            RKNN_SUCC) {
          CanBeRead(rknnd_queue_fd(queue_), 5);
          continue;
        }
        ++taken;
        const base::MutexLock lock(mutex);
        seen.emplace(completion.context, completion.frame_id);
      }
    });
  }
  testing::internal::CaptureStderr();
  for (std::thread& thread : threads) thread.join();
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(seen.size(), size_t{kThreads} * kRuns);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), seen.size());
}

TEST_F(QueueApiTest, RestartOfTheDaemonGivesLateCompletions) {
  const rknn_context context = Ready();
  Hold();
  rknnd_run_options options = Queued();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
  }
  AwaitRuns(3);
  Daemon().Stop();
  Daemon().set_runs(Runs::kAnswer);
  EXPECT_TRUE(CanBeRead(rknnd_queue_fd(queue_), kPatience));
  EXPECT_TRUE(IsEmpty());
  Daemon().Start();
  for (uint64_t frame = 1; frame <= 3; ++frame) {
    rknnd_completion completion;
    ASSERT_TRUE(Next(&completion));
    EXPECT_EQ(completion.code, RKNN_SUCC);
    EXPECT_EQ(completion.frame_id, frame);
  }
  EXPECT_TRUE(IsEmpty());
}

// A thread that finds the daemon gone while no run is on its way does not look
// for the next one; a run that another thread is starting at that moment is
// told of all the same.
TEST_F(QueueApiTest, RunSubmittedWhileTheDaemonDiesIsToldOf) {
  const rknn_context context = Ready();
  const int fd = rknnd_queue_fd(Queue());
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> ready{0};
    const auto meet = [&ready] {
      ++ready;
      while (ready.load() < 3) std::this_thread::yield();
    };
    bool told = false;
    std::thread dies([&meet] {
      meet();
      Daemon().Stop();
      Daemon().Start();
    });
    std::thread takes([&] {
      meet();
      rknnd_completion completion;
      while (!told && CanBeRead(fd, kPatience)) {
        told = rknnd_queue_next(queue_, &completion, sizeof completion) ==
               RKNN_SUCC;
      }
    });
    rknnd_run_options options = Queued();
    meet();
    for (uint32_t spins = random() % 20000; spins > 0; --spins) ready.load();
    EXPECT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
    dies.join();
    takes.join();
    ASSERT_TRUE(told) << "round " << round;
  }
}

TEST_F(QueueApiTest, QueuePolicyReachesTheDaemon) {
  const rknn_context context = Ready();
  rknnd_queue_policy policy = {};
  policy.size = sizeof policy;
  policy.policy = RKNND_QUEUE_NEWEST;
  policy.max_age_ms = 40;
  ASSERT_EQ(rknnd_set_queue_policy(context, &policy), RKNN_SUCC);
  EXPECT_EQ(Daemon().seen().last_queue.policy, 1U);
  EXPECT_EQ(Daemon().seen().last_queue.max_age_ns, 40000000U);
  policy.policy = 2;
  EXPECT_EQ(rknnd_set_queue_policy(context, &policy), RKNN_ERR_PARAM_INVALID);
  policy = {};
  EXPECT_EQ(rknnd_set_queue_policy(context, &policy), RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("sizeof(rknnd_queue_policy)"));
  EXPECT_EQ(rknnd_set_queue_policy(context, nullptr), RKNN_ERR_PARAM_INVALID);
}

TEST_F(QueueApiTest, QueueOfTheParentIsRefusedInAChild) {
  Queue();
  const pid_t child = fork();
  if (child == 0) {
    rknnd_completion completion;
    const bool refused =
        rknnd_queue_next(queue_, &completion, sizeof completion) ==
            RKNN_ERR_PARAM_INVALID &&
        std::strstr(rknnd_last_error(), "before fork()") != nullptr;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  // And nothing of it is spoilt.
  const rknn_context context = Ready();
  rknnd_run_options options = Queued();
  ASSERT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
  rknnd_completion completion;
  EXPECT_TRUE(Next(&completion));
}

// Programs of any kind: threads that submit and cancel, threads that sleep on
// the descriptor and take, a daemon that holds, refuses, dies and comes back.
// Whoever sleeps is woken, and each run is told of exactly once.
class QueueSchedulesTest : public QueueApiTest,
                           public testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr uint32_t kRuns = 150;  // of each thread
  static constexpr uint32_t kThreads = 2;

  void SubmitAll(uint32_t thread, const std::vector<rknn_context>& contexts) {
    std::mt19937 random(GetParam() * 10 + thread);
    for (uint32_t i = 0; i < kRuns; ++i) {
      const rknn_context context = contexts[random() % contexts.size()];
      rknnd_run_options options = Options();
      options.queue = queue_;
      options.user = &told_[thread * kRuns + i];
      int code = RKNN_SUCC;
      // As many as can be may be on their way.
      while ((code = rknnd_submit(context, &options, nullptr)) ==
             RKNN_ERR_MALLOC_FAIL) {
        std::this_thread::yield();
      }
      EXPECT_EQ(code, RKNN_SUCC) << rknnd_last_error();
      if (random() % 16 == 0) rknnd_cancel(context, 0, nullptr);
    }
  }
  // Takes only where the descriptor says that there is something.
  void TakeAll() {
    const int fd = rknnd_queue_fd(queue_);
    for (int idle = 0; left_.load() > 0 && idle < kPatience / 100;) {
      if (!CanBeRead(fd, 100)) {
        ++idle;
        continue;
      }
      rknnd_completion completion;
      while (rknnd_queue_next(queue_, &completion, sizeof completion) ==
             RKNN_SUCC) {
        static_cast<std::atomic<int>*>(completion.user)->fetch_add(1);
        --left_;
        idle = 0;
      }
    }
  }

  std::vector<std::atomic<int>> told_ =
      std::vector<std::atomic<int>>(kThreads * kRuns);
  std::atomic<int> left_{kThreads * kRuns};
};

TEST_P(QueueSchedulesTest, EachRunIsToldOfOnceAndNobodySleepsThroughIt) {
  std::mt19937 random(GetParam());
  Queue();
  const std::vector<rknn_context> contexts = {Ready(), Ready(), Ready()};
  std::atomic<uint32_t> submitting{kThreads};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      SubmitAll(t, contexts);
      --submitting;
    });
  }
  for (int t = 0; t < 2; ++t) threads.emplace_back([this] { TakeAll(); });
  const base::MonotonicClock clock;
  int restarts = 0;
  while (submitting.load() > 0) {
    switch (random() % 8) {
      case 0:
        Daemon().set_runs(Runs::kDrain);
        break;
      case 1:
        if (++restarts > 2) break;
        Daemon().Stop();
        Daemon().set_runs(Runs::kAnswer);
        Daemon().Start();
        break;
      case 2:
      case 3:
        Daemon().set_runs(Runs::kAnswer);
        break;
      case 4:
        Daemon().set_runs(Runs::kHold);
        break;
      default:
        Daemon().Release(1 + random() % 40);
        break;
    }
    // By time: on a busy machine a turn of the CPU takes many milliseconds.
    const base::Nanoseconds until =
        clock.Now() +
        static_cast<base::Nanoseconds>(random() % 2000) * base::kMicrosecond;
    while (clock.Now() < until) std::this_thread::yield();
  }
  Daemon().set_runs(Runs::kAnswer);
  Daemon().Release(kThreads * kRuns);
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& told : told_) EXPECT_EQ(told.load(), 1);
}

INSTANTIATE_TEST_SUITE_P(Seeds, QueueSchedulesTest, testing::Range(1U, 9U));

}  // namespace
}  // namespace rknnd::client
