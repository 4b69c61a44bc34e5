// Thousands of random histories against what the scheduler promises, in a time
// that is counted, not waited for. A failure prints its seed; RKNND_SEED=n runs
// that one alone.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "daemon/core/testing/scheduler_board.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using base::kMillisecond;
using base::kSecond;
using testing::SchedulerBoard;
using testing::Seeds;

constexpr driver::MemoryIdentity kMemory{1, 7};
// What contexts share: the whole, its halves, a part of both, another memory.
constexpr std::array<MemoryRange, 5> kRanges = {{{kMemory, 0, 100},
                                                 {kMemory, 0, 50},
                                                 {kMemory, 50, 100},
                                                 {kMemory, 40, 60},
                                                 {{1, 8}, 0, 10}}};

uint32_t All(uint32_t cores) { return (1U << cores) - 1; }

CoreChoice AnyCores(SchedulerBoard& board, uint32_t cores, bool gangs) {
  const uint32_t choice = board.Below(gangs ? 6 : 4);
  if (choice < 2 || cores == 1) return {All(cores), false};
  if (choice < 4) return {1U << board.Below(cores), false};
  return {choice == 4 ? 0b11 : All(cores), true};
}

Priority AnyPriority(SchedulerBoard& board) {
  return static_cast<Priority>(board.Below(kPriorities));
}

// Everything at once, at random moments; what the board checks is the test.
uint64_t RunAnything(uint32_t seed, int steps) {
  std::mt19937 shape(seed);
  SchedulerBoard::Options options;
  options.cores = 1 + shape() % 4;
  options.jitter = shape() % 2 == 0 ? 0 : 50;
  options.put_back = shape() % 4 == 0;
  SchedulerBoard board(seed, options);
  const bool gangs = options.cores > 1 && shape() % 3 != 0;
  const bool memory = shape() % 2 == 0;
  const bool lends = shape() % 3 == 0;
  const uint32_t shares = 1 + shape() % 5;
  for (uint32_t share = 0; share < shares; ++share) {
    board.AddShare({Priority::kHigh, 1 + board.Below(300)});
    for (uint32_t i = 1 + board.Below(5); i > 0; --i) {
      board.AddContext(share, AnyPriority(board),
                       AnyCores(board, options.cores, gangs),
                       (1 + board.Below(30)) * kMillisecond,
                       /*batch=*/board.Below(5) == 0 ? 3 : 1);
    }
  }
  for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
    const uint32_t context = board.Below(board.programs());
    auto& program = board.program(context);
    switch (const uint32_t choice = board.Below(24)) {
      case 0:
        board.Cancel(context);
        break;
      case 1:
      case 2:
        if (!program.queued.empty()) {
          board.Remove(context, board.Below(program.queued.size()));
        }
        break;
      case 3:
      case 4:
        board.Unhold(context);
        break;
      case 5:
        if (lends && board.Below(4) == 0) {
          board.SetLent(board.Below(1U << options.cores));
        }
        break;
      case 6:
        board.Claim(context);
        break;
      case 7:
        // A program may choose other cores for its next run.
        program.cores = AnyCores(board, options.cores, gangs);
        break;
      default:
        if (choice < 16) {
          board.Submit(context,
                       memory && board.Below(2) == 0
                           ? &kRanges[board.Below(kRanges.size())]
                           : nullptr,
                       /*held=*/board.Below(8) == 0);
        } else {
          board.EndNext();
        }
    }
  }
  board.Finish();
  return board.history();
}

TEST(FairSimulationTest, EveryTurnIsRightWhateverHappens) {
  for (const uint32_t seed : Seeds(4000)) {
    SCOPED_TRACE(std::to_string(seed) + " is the seed");
    RunAnything(seed, 300);
    if (HasFailure()) return;
  }
}

TEST(FairSimulationTest, EqualHistoriesGiveEqualTurns) {
  for (const uint32_t seed : Seeds(200)) {
    SCOPED_TRACE(std::to_string(seed) + " is the seed");
    ASSERT_EQ(RunAnything(seed, 300), RunAnything(seed, 300));
  }
}

TEST(FairSimulationTest, ManyContextsLoseNobody) {
  for (const uint32_t seed : Seeds(20)) {
    SCOPED_TRACE(std::to_string(seed) + " is the seed");
    SchedulerBoard board(seed, {});
    for (uint32_t share = 0; share < 4; ++share) {
      board.AddShare();
      for (uint32_t i = 0; i < 50; ++i) {
        board.AddContext(share, AnyPriority(board),
                         AnyCores(board, 3, /*gangs=*/true), kMillisecond);
      }
    }
    for (int step = 0; step < 3000 && !HasFailure(); ++step) {
      if (board.Below(3) == 0) {
        board.EndNext();
      } else {
        board.Submit(board.Below(board.programs()),
                     &kRanges[board.Below(kRanges.size())]);
      }
    }
    board.Finish();
    if (HasFailure()) return;
  }
}

// Shares that wait all the time for any core, of any weights, with any number
// of contexts and any lengths of jobs.
TEST(FairSimulationTest, SharesOfAClassDifferByOneJobEach) {
  for (const uint32_t seed : Seeds(500)) {
    SCOPED_TRACE(std::to_string(seed) + " is the seed");
    std::mt19937 shape(seed);
    SchedulerBoard::Options options;
    options.cores = 1 + shape() % 4;
    // The bound has its own tests; here nothing is to come in between.
    options.scheduling.starvation_bound = 1000 * kSecond;
    SchedulerBoard board(seed, options);
    const uint32_t shares = 2 + shape() % 6;
    std::vector<base::Nanoseconds> longest(shares);
    for (uint32_t share = 0; share < shares; ++share) {
      board.AddShare({Priority::kMedium, 50 + board.Below(100)});
      for (uint32_t i = options.cores + board.Below(12); i > 0; --i) {
        const base::Nanoseconds run = (1 + board.Below(30)) * kMillisecond;
        longest[share] = std::max(longest[share], run);
        board.AddContext(share, Priority::kMedium, {All(options.cores), false},
                         run);
      }
    }
    for (uint32_t i = 0; i < board.programs(); ++i) board.Submit(i);
    // Those of the first share came before anybody else did.
    board.RunFor(kSecond);
    std::vector<double> before(shares);
    board.on_end = [&board](uint32_t context) { board.Submit(context); };
    for (uint32_t i = 0; i < board.programs(); ++i) {
      while (board.Submit(i)) {
      }
    }
    const auto had = [&board](uint32_t share) {
      const auto& account = board.account(share);
      return static_cast<double>(account.has) / account.policy.weight;
    };
    for (uint32_t share = 0; share < shares; ++share) {
      before[share] = had(share);
    }
    double most = 0;
    for (uint32_t share = 0; share < shares; ++share) {
      most = std::max(most, static_cast<double>(longest[share]) /
                                board.account(share).policy.weight);
    }
    for (int i = 0; i < 20 && !HasFailure(); ++i) {
      board.RunFor(200 * kMillisecond);
      for (uint32_t a = 0; a < shares; ++a) {
        for (uint32_t b = 0; b < a; ++b) {
          const auto job = [&](uint32_t share) {
            return static_cast<double>(longest[share]) /
                   board.account(share).policy.weight;
          };
          // One job each, and what one may have been ahead as it came.
          EXPECT_LE(std::abs(had(a) - before[a] - had(b) + before[b]),
                    job(a) + job(b) + most)
              << "shares " << a << " and " << b;
        }
      }
    }
    if (HasFailure()) return;
  }
}

// Who comes back from a pause has no credit for it.
TEST(FairSimulationTest, PauseGivesNoCredit) {
  for (const uint32_t seed : Seeds(200)) {
    SCOPED_TRACE(std::to_string(seed) + " is the seed");
    SchedulerBoard board(seed, {});
    for (uint32_t share = 0; share < 3; ++share) {
      board.AddShare();
      for (int i = 0; i < 4; ++i) {
        board.AddContext(share, Priority::kMedium, {0b111, false},
                         (5 + board.Below(20)) * kMillisecond);
      }
    }
    board.on_end = [&board](uint32_t context) { board.Submit(context); };
    for (uint32_t i = 0; i < 8; ++i) {
      for (int job = 0; job < 3; ++job) board.Submit(i);
    }
    board.RunFor((1 + board.Below(20)) * kSecond);
    std::array<base::Nanoseconds, 3> before{};
    for (uint32_t i = 8; i < 12; ++i) {
      for (int job = 0; job < 3; ++job) board.Submit(i);
    }
    for (uint32_t s = 0; s < 3; ++s) before[s] = board.account(s).has;
    board.RunFor(2 * kSecond);
    const auto had = [&](uint32_t s) {
      return board.account(s).has - before[s];
    };
    // Six core-seconds among three; one job of each is 25 ms.
    for (uint32_t s = 0; s < 3; ++s) {
      EXPECT_NEAR(static_cast<double>(had(s)), 2.0 * kSecond,
                  100.0 * kMillisecond)
          << "share " << s;
    }
    if (HasFailure()) return;
  }
}

// However high and however many the others are.
TEST(FairSimulationTest, NobodyIsPassedOverForLongerThanTheBound) {
  for (const uint32_t seed : Seeds(500)) {
    SCOPED_TRACE(std::to_string(seed) + " is the seed");
    SchedulerBoard::Options options;
    std::mt19937 shape(seed);
    options.cores = 1 + shape() % 4;
    SchedulerBoard board(seed, options);
    // As many are passed over as there are cores.
    const base::Nanoseconds bound = options.scheduling.starvation_bound;
    const auto longest =
        static_cast<uint32_t>(bound / kMillisecond / (6 * options.cores));
    // All cores are full of HIGH jobs, which submit again before they end.
    for (uint32_t share = 0; share < 3; ++share) {
      board.AddShare({Priority::kHigh, 100});
      for (uint32_t i = 0; i < 2 * options.cores; ++i) {
        board.AddContext(share, Priority::kHigh, {All(options.cores), false},
                         (1 + board.Below(longest)) * kMillisecond);
      }
    }
    for (uint32_t i = 0; i < options.cores; ++i) {
      const uint32_t share = board.AddShare();
      board.AddContext(share,
                       board.Below(2) == 0 ? Priority::kLow : Priority::kMedium,
                       AnyCores(board, options.cores, /*gangs=*/i == 0),
                       (1 + board.Below(longest)) * kMillisecond);
    }
    board.on_end = [&board](uint32_t context) { board.Submit(context); };
    for (uint32_t i = 0; i < board.programs(); ++i) {
      for (int job = 0; job < 3; ++job) board.Submit(i);
    }
    board.RunFor(10 * kSecond);
    EXPECT_LE(board.longest_passed_over(), bound);
    // And no earlier than need be, but where a gang leaves room for them.
    const uint32_t first = 6 * options.cores;
    for (uint32_t i = first; i < board.programs(); ++i) {
      EXPECT_GE(board.program(i).begun, 9U) << "context " << i;
      if (board.program(first).cores.gang) continue;
      EXPECT_LE(board.program(i).begun, 21U) << "context " << i;
    }
    if (HasFailure()) return;
  }
}

// A crowd of low jobs, all of them past the bound, takes every second turn and
// no more.
TEST(FairSimulationTest, CrowdOfLowJobsDoesNotTurnTheOrderRound) {
  SchedulerBoard board(1, {});
  const uint32_t high = board.AddShare({Priority::kHigh, 100});
  for (int i = 0; i < 6; ++i) {
    board.AddContext(high, Priority::kHigh, {0b111, false}, 10 * kMillisecond);
  }
  for (int i = 0; i < 400; ++i) {
    board.AddContext(board.AddShare(), Priority::kLow, {0b111, false},
                     10 * kMillisecond);
  }
  board.on_end = [&board](uint32_t context) { board.Submit(context); };
  for (uint32_t i = 0; i < board.programs(); ++i) {
    for (int job = 0; job < 3; ++job) board.Submit(i);
  }
  board.RunFor(10 * kSecond);
  EXPECT_GE(board.account(high).had, board.busy() * 49 / 100);
}

}  // namespace
}  // namespace rknnd::core
