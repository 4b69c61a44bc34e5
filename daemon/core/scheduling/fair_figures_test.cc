// The figures that the scheduler is to reach, by simulation: cores busy, equal
// sessions, waits by class, and gangs beside single jobs against the best
// schedule there is.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/core/testing/scheduler_board.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using base::kMillisecond;
using base::kSecond;
using testing::SchedulerBoard;
using testing::Seeds;

constexpr CoreChoice kAny{0b111, false};

// `contexts` of a new share, which submit again as soon as they are answered.
std::vector<uint32_t> AddProcess(SchedulerBoard& board, int contexts,
                                 Priority priority, base::Nanoseconds run,
                                 std::shared_ptr<ShareGroup> user = nullptr) {
  const uint32_t share =
      board.AddShare({Priority::kHigh, 100}, std::move(user));
  std::vector<uint32_t> added;
  for (int i = 0; i < contexts; ++i) {
    added.push_back(board.AddContext(share, priority, kAny, run));
  }
  return added;
}

void SubmitForEver(SchedulerBoard& board) {
  board.on_end = [&board](uint32_t context) { board.Submit(context); };
  for (uint32_t i = 0; i < board.programs(); ++i) board.Submit(i);
}

// Sixteen processes, three contexts each, jobs of 10 ms and more.
TEST(FairFiguresTest, SixteenProcessesKeepThreeCoresBusyAndGetTheSame) {
  for (const uint32_t seed : Seeds(20)) {
    SCOPED_TRACE(std::to_string(seed) + " is the seed");
    SchedulerBoard::Options options;
    options.jitter = 5;
    SchedulerBoard board(seed, options);
    base::Nanoseconds most = 0;
    for (int process = 0; process < 16; ++process) {
      // Models of all sizes.
      const base::Nanoseconds run = (10 + board.Below(20)) * kMillisecond;
      most = std::max(most, run);
      AddProcess(board, 3, Priority::kMedium, run);
    }
    SubmitForEver(board);
    const base::Nanoseconds time = 16 * 200 * most / 3;
    board.RunFor(time);
    EXPECT_GE(board.busy(), 3 * time / 100 * 99);
    base::Nanoseconds least = INT64_MAX;
    base::Nanoseconds greatest = 0;
    for (uint32_t share = 0; share < board.accounts(); ++share) {
      least = std::min(least, board.account(share).had);
      greatest = std::max(greatest, board.account(share).had);
    }
    EXPECT_LE(greatest - least, greatest / 50);
    if (HasFailure()) return;
  }
}

TEST(FairFiguresTest, TwelveContextsGetWhatOneGets) {
  SchedulerBoard board(1, {});
  for (int process = 0; process < 15; ++process) {
    AddProcess(board, 3, Priority::kMedium, 10 * kMillisecond);
  }
  AddProcess(board, 12, Priority::kMedium, 10 * kMillisecond);
  AddProcess(board, 1, Priority::kMedium, 10 * kMillisecond);
  SubmitForEver(board);
  board.RunFor(20 * kSecond);
  const auto twelve = static_cast<double>(board.account(15).had);
  const auto one = static_cast<double>(board.account(16).had);
  EXPECT_NEAR(one / twelve, 1, 0.02);
  EXPECT_NEAR(one, static_cast<double>(board.busy()) / 17, one / 50);
}

// A process is one of its user's while its only job runs, too: else those with
// one context would pay more for each job than those with twelve.
TEST(FairFiguresTest, ProcessesOfOneUserGetTheSameWithOneContextOrTwelve) {
  SchedulerBoard::Options options;
  options.jitter = 5;
  SchedulerBoard board(1, options);
  const auto user = std::make_shared<ShareGroup>();
  for (const int contexts : {1, 1, 1, 12, 12, 12}) {
    AddProcess(board, contexts, Priority::kMedium, 10 * kMillisecond, user);
  }
  SubmitForEver(board);
  board.RunFor(20 * kSecond);
  const auto had = [&](uint32_t first) {
    double sum = 0;
    for (uint32_t share = first; share < first + 3; ++share) {
      sum += static_cast<double>(board.account(share).had);
    }
    return sum;
  };
  EXPECT_NEAR(had(3) / had(0), 1, 0.02);
}

TEST(FairFiguresTest, HighWaitsForOneRunningJobAndLowForTheBound) {
  SchedulerBoard::Options options;
  SchedulerBoard board(1, options);
  for (int process = 0; process < 14; ++process) {
    AddProcess(board, 3, Priority::kMedium,
               (10 + board.Below(20)) * kMillisecond);
  }
  const uint32_t low =
      AddProcess(board, 1, Priority::kLow, 10 * kMillisecond).front();
  const uint32_t high =
      AddProcess(board, 1, Priority::kHigh, 10 * kMillisecond).front();
  SubmitForEver(board);
  // The high one comes now and then.
  board.on_end = [&](uint32_t context) {
    if (context != high) board.Submit(context);
  };
  for (int frame = 0; frame < 1000; ++frame) {
    board.RunFor((15 + board.Below(30)) * kMillisecond);
    if (board.program(high).queued.empty()) board.Submit(high);
  }
  EXPECT_GE(board.program(high).ended, 900U);
  EXPECT_LE(board.program(high).longest_wait, 30 * kMillisecond);
  EXPECT_LE(board.program(low).longest_wait,
            options.scheduling.starvation_bound);
  EXPECT_GE(board.program(low).ended, 28U);
}

// ---- gangs beside single jobs -----------------------------------------------

// A small board: each process has one context, each context one kind of job,
// always another one behind it. Times are whole ticks.
struct Kind {
  bool gang = false;
  int ticks = 1;
};

// The most core time with a job in `horizon` ticks, over all schedules that
// keep the rules: a job is not interrupted, one of a context at a time, gangs
// whole; and no process that waits falls behind another by more than `slack`
// ticks of core time when that one begins.
class BestSchedule {
 public:
  BestSchedule(std::vector<Kind> kinds, int slack)
      : kinds_(std::move(kinds)), slack_(slack) {}

  int Find(int horizon) {
    known_.clear();
    return Best({}, horizon);
  }

 private:
  static constexpr size_t kMost = 5;
  struct State {
    std::array<int, 3> left{};  // of the job on each core
    std::array<int, 3> who{-1, -1, -1};
    std::array<int, kMost> had{};  // beyond the least
  };

  [[nodiscard]] bool Runs(const State& state, size_t process) const {
    return std::any_of(state.who.begin(), state.who.end(), [&](int who) {
      return who == static_cast<int>(process);
    });
  }

  // Cores are alike: sorted, so that equal states are known as such.
  static uint64_t Key(State state, int horizon) {
    std::array<std::pair<int, int>, 3> cores;
    for (size_t core = 0; core < 3; ++core) {
      cores[core] = {state.who[core], state.left[core]};
    }
    std::sort(cores.begin(), cores.end());
    uint64_t key = static_cast<uint64_t>(horizon);
    for (const auto& [who, left] : cores) {
      key = key * 8 + static_cast<uint64_t>(who + 1);
      key = key * 8 + static_cast<uint64_t>(left);
    }
    for (const int had : state.had) {
      key = key * 64 + static_cast<uint64_t>(std::min(had, 63));
    }
    return key;
  }

  int Best(State state, int horizon) {
    if (horizon == 0) return 0;
    const int least = *std::min_element(
        state.had.begin(),
        state.had.begin() + static_cast<ptrdiff_t>(kinds_.size()));
    for (size_t p = 0; p < kinds_.size(); ++p) state.had[p] -= least;
    const uint64_t key = Key(state, horizon);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    // Nothing more begins now: a tick passes.
    State next = state;
    int busy = 0;
    for (size_t core = 0; core < 3; ++core) {
      if (next.left[core] == 0) continue;
      ++busy;
      if (--next.left[core] == 0) next.who[core] = -1;
    }
    int best = busy == 0 ? 0 : busy + Best(next, horizon - 1);
    for (size_t p = 0; p < kinds_.size(); ++p) {
      if (Runs(state, p) || !MayBegin(state, p)) continue;
      next = state;
      int cores = kinds_[p].gang ? 3 : 1;
      next.had[p] += cores * kinds_[p].ticks;
      for (size_t core = 0; core < 3 && cores > 0; ++core) {
        if (next.left[core] != 0) continue;
        next.left[core] = kinds_[p].ticks;
        next.who[core] = static_cast<int>(p);
        --cores;
      }
      if (cores == 0) best = std::max(best, Best(next, horizon));
    }
    known_[key] = best;
    return best;
  }

  [[nodiscard]] bool MayBegin(const State& state, size_t process) const {
    for (size_t other = 0; other < kinds_.size(); ++other) {
      if (Runs(state, other)) continue;
      if (state.had[process] > state.had[other] + slack_) return false;
    }
    return true;
  }

  const std::vector<Kind> kinds_;
  const int slack_;
  std::unordered_map<uint64_t, int> known_;
};

// Processes of gangs among others, runs of any length, not quite as expected:
// the best schedule keeps all cores busy.
TEST(FairFiguresTest, GangsAmongManyKeepCoresBusyAndGetTheSame) {
  for (const uint32_t seed : Seeds(20)) {
    SCOPED_TRACE(std::to_string(seed) + " is the seed");
    SchedulerBoard::Options options;
    options.jitter = 20;
    SchedulerBoard board(seed, options);
    const uint32_t gangs = 1 + seed % 8;
    for (uint32_t process = 0; process < 16; ++process) {
      const uint32_t share = board.AddShare();
      board.AddContext(share, Priority::kMedium, {0b111, process < gangs},
                       (10 + board.Below(30)) * kMillisecond);
    }
    SubmitForEver(board);
    board.RunFor(20 * kSecond);
    EXPECT_GE(board.busy(), 3 * 20 * kSecond / 100 * 97);
    // Gangs may lead.
    base::Nanoseconds least = INT64_MAX;
    base::Nanoseconds greatest = 0;
    for (uint32_t share = 0; share < board.accounts(); ++share) {
      least = std::min(least, board.account(share).had);
      greatest = std::max(greatest, board.account(share).had);
    }
    EXPECT_LE(greatest - least,
              Scheduler::kGangLead + 2 * 3 * 48 * kMillisecond);
    if (HasFailure()) return;
  }
}

TEST(FairFiguresTest, GangsBesideSingleJobsLoseLittleToTheBestSchedule) {
  constexpr int kHorizon = 18;
  constexpr base::Nanoseconds kTick = 10 * kMillisecond;
  double ours = 0, best = 0, worst = 1;
  for (const uint32_t seed : Seeds(8)) {
    SCOPED_TRACE(std::to_string(seed) + " is the seed");
    std::mt19937 shape(seed);
    std::vector<Kind> kinds;
    const size_t gangs = 1 + shape() % 2;
    for (size_t i = 0; i < 5; ++i) {
      kinds.push_back({i < gangs, 1 + static_cast<int>(shape() % 4)});
    }
    int longest = 0;
    for (const Kind& kind : kinds) {
      longest = std::max(longest, kind.ticks * (kind.gang ? 3 : 1));
    }
    const int found = BestSchedule(kinds, longest).Find(kHorizon);

    SchedulerBoard board(seed, {});
    for (const Kind& kind : kinds) {
      const uint32_t share = board.AddShare();
      board.AddContext(share, Priority::kMedium, {0b111, kind.gang},
                       kind.ticks * kTick);
    }
    SubmitForEver(board);
    board.on_end = [&board](uint32_t context) { board.Submit(context); };
    // As many ticks, many times over: where it begins does not count.
    constexpr int kTimes = 50;
    board.RunFor(kTimes * kHorizon * kTick);
    const double busy = static_cast<double>(board.busy()) / (kTimes * kTick);
    ours += busy;
    best += found;
    if (busy / found < worst) worst = busy / found;
    if (std::getenv("RKNND_SEED") != nullptr || busy / found < 0.9) {
      std::printf("seed %u: %.1f of %d core ticks:", seed, busy, found);
      for (const Kind& kind : kinds) {
        std::printf(" %s%d", kind.gang ? "gang " : "", kind.ticks);
      }
      std::printf("\n");
    }
    if (HasFailure()) return;
  }
  std::printf("%.1f %% of the best on average, %.1f %% at worst\n",
              100 * ours / best, 100 * worst);
  EXPECT_GE(ours / best, 0.95);
}

}  // namespace
}  // namespace rknnd::core
