// Many histories of contexts that want cores, gangs and each other's memory,
// in a time that is counted, not waited for: whatever happens, the scheduler
// keeps what scheduler.h promises, and nobody waits for ever.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/fifo_scheduler.h"
#include "daemon/core/testing/fake_device.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

constexpr uint32_t kCores = 3;
constexpr size_t kJobsPerContext = 3;
constexpr driver::MemoryIdentity kMemory{1, 7};
// What contexts share: the whole, its halves, a part of both, another memory.
constexpr MemoryRange kRanges[] = {{kMemory, 0, 100},
                                   {kMemory, 0, 50},
                                   {kMemory, 50, 100},
                                   {kMemory, 40, 60},
                                   {{1, 8}, 0, 10}};

// A board with programs that go on submitting. Workers do what RunnerImpl's do:
// one is woken by a submission, by a release that says so, and by a turn that
// says there is more; what nobody is woken for does not start.
class Board {
 public:
  Board(uint32_t seed, size_t contexts) : random_(seed) {
    auto loaded = device_.Load({{}, "", "m"});
    auto model = std::make_shared<LoadedModel>();
    model->model = *std::move(loaded);
    for (uint32_t i = 0; i < contexts; ++i) {
      ContextTraits traits;
      traits.number = i;
      programs_.push_back(std::make_unique<Program>());
      programs_.back()->context =
          std::make_shared<RunContext>(traits, model, nullptr);
    }
  }

  // `destroying`: now and then all that a context has queued is cancelled.
  void Run(int steps, bool destroying) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      const uint32_t choice = Below(16);
      Program& program = *programs_[Below(programs_.size())];
      if (choice < 9) {
        Submit(program);
      } else if (choice == 9 && destroying) {
        Destroy(program);
      } else if (!running_.empty()) {
        EndOne();
      }
    }
    // Nobody submits any more.
    while (!running_.empty() && !::testing::Test::HasFailure()) EndOne();
    for (const auto& program : programs_) {
      EXPECT_TRUE(program->queued.empty()) << "a job never had its turn";
    }
    EXPECT_EQ(scheduler_.counts().queued, 0U);
    EXPECT_EQ(scheduler_.counts().running, 0U);
  }

  // Program 0 wants all of the memory, the others a half of it each, and all of
  // them any core.
  void DivideMemory() { divided_ = true; }

  // The most jobs younger than one that started before it.
  [[nodiscard]] uint64_t most_overtaken() const { return most_overtaken_; }
  [[nodiscard]] uint64_t started() const { return started_; }

 private:
  struct Program {
    std::shared_ptr<RunContext> context;
    std::deque<Job*> queued;
  };

  uint32_t Below(size_t limit) {
    return static_cast<uint32_t>(random_() % limit);
  }

  CoreChoice AnyCores() {
    switch (Below(6)) {
      case 0:
        return {0b11, true};
      case 1:
        return {0b111, true};
      case 2:
      case 3:
        return {0b111, false};
      default:
        return {uint32_t{1} << Below(kCores), false};
    }
  }

  const MemoryRange* AnyMemory(const Program& program) {
    const uint32_t number = program.context->traits().number;
    if (divided_) return &kRanges[number == 0 ? 0 : 1 + number % 2];
    const uint32_t range = Below(std::size(kRanges) + 1);
    return range == std::size(kRanges) ? nullptr : &kRanges[range];
  }

  void Submit(Program& program) {
    auto job = std::make_unique<Job>();
    job->hold.context = program.context;
    // A program may bind other memory and choose other cores for each run.
    job->cores = divided_ ? CoreChoice{0b111, false} : AnyCores();
    job->alone = AnyMemory(program);
    if (!scheduler_.Enqueue(job.get())) return;
    program.queued.push_back(job.get());
    jobs_.push_back(std::move(job));
    Wake();
  }

  void Destroy(Program& program) {
    Job* job = scheduler_.Cancel(*program.context);
    for (; job != nullptr; job = job->next) {
      ASSERT_FALSE(program.queued.empty());
      EXPECT_EQ(job, program.queued.front());
      program.queued.pop_front();
    }
    EXPECT_TRUE(program.queued.empty()) << "a job survived its context";
    Wake();
  }

  void EndOne() {
    const size_t at = Below(running_.size());
    Job* job = running_[at];
    running_.erase(running_.begin() + static_cast<ptrdiff_t>(at));
    if (scheduler_.Release(*job->hold.context, job->granted)) Wake();
    // Otherwise there is nothing to take.
    ExpectNothingIsLeft();
  }

  // One worker wakes, and those that it wakes.
  void Wake() {
    for (int woken = 1; woken > 0; --woken) {
      // It has one job to do; the rest is for those it wakes.
      const Scheduler::Turn turn = scheduler_.TakeNext();
      if (turn.job == nullptr) continue;
      Start(turn.job);
      if (turn.more) ++woken;
    }
    ExpectNothingIsLeft();
  }

  void ExpectNothingIsLeft() {
    EXPECT_EQ(scheduler_.TakeNext().job, nullptr)
        << "a job could run and nobody was told";
    // Where no gang keeps cores, nothing is in the way of a job whose memory
    // nobody else wants or has.
    uint32_t busy = 0;
    std::vector<const Job*> others(running_.begin(), running_.end());
    for (const Job* job : running_) busy |= job->granted;
    for (const auto& program : programs_) {
      if (program->queued.empty()) continue;
      if (program->queued.front()->cores.gang) return;
      others.push_back(program->queued.front());
    }
    for (const auto& program : programs_) {
      if (program->queued.empty() || program->context->queue.running) continue;
      const Job* job = program->queued.front();
      if ((job->cores.cores & ~busy & 0b111) == 0) continue;
      const bool wanted =
          job->alone != nullptr &&
          std::any_of(others.begin(), others.end(), [job](const Job* other) {
            return other != job && other->alone != nullptr &&
                   other->alone->Overlaps(*job->alone);
          });
      EXPECT_TRUE(wanted) << "a job waits for nothing";
    }
  }

  void Start(Job* job) {
    Program& program = *programs_[job->hold.context->traits().number];
    ASSERT_FALSE(program.queued.empty());
    EXPECT_EQ(job, program.queued.front()) << "out of its context's order";
    program.queued.pop_front();
    for (const Job* other : running_) {
      EXPECT_NE(other->hold.context, job->hold.context);
      EXPECT_EQ(other->granted & job->granted, 0U) << "two jobs on one core";
      if (other->alone == nullptr || job->alone == nullptr) continue;
      EXPECT_FALSE(other->alone->Overlaps(*job->alone))
          << "two jobs in one memory";
    }
    EXPECT_EQ(job->granted & ~job->cores.cores, 0U);
    if (job->cores.gang) {
      EXPECT_EQ(job->granted, job->cores.cores);
    }
    running_.push_back(job);
    ++started_;
    NoteOvertaken(*job);
  }

  // Counts for each older one that is the next of its context.
  void NoteOvertaken(const Job& job) {
    for (const auto& program : programs_) {
      if (program->queued.empty()) continue;
      const Job& waits = *program->queued.front();
      if (waits.ticket > job.ticket) continue;
      const uint64_t overtaken = ++overtaken_[waits.ticket % kTickets];
      most_overtaken_ = std::max(most_overtaken_, overtaken);
    }
    overtaken_[job.ticket % kTickets] = 0;
  }

  // Far more than may be queued.
  static constexpr size_t kTickets = 1 << 16;

  std::mt19937 random_;
  base::FakeClock clock_;
  testing::FakeDevice device_{kCores, &clock_};
  FifoScheduler scheduler_{kCores, kJobsPerContext};
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job*> running_;
  std::vector<uint64_t> overtaken_ = std::vector<uint64_t>(kTickets);
  uint64_t started_ = 0, most_overtaken_ = 0;
  bool divided_ = false;
};

TEST(TurnsSimulationTest, EverybodyRunsInOrderAndNeverInOneMemory) {
  for (uint32_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Board board(seed, 8);
    board.Run(3000, /*destroying=*/false);
    EXPECT_GT(board.started(), 500U);
  }
}

TEST(TurnsSimulationTest, DestroyedContextsHoldUpNobody) {
  for (uint32_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Board board(seed, 8);
    board.Run(3000, /*destroying=*/true);
  }
}

TEST(TurnsSimulationTest, MoreContextsThanAreLookedAtLoseNobody) {
  for (uint32_t seed = 1; seed <= 5 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Board board(seed, 200);
    board.Run(10000, /*destroying=*/seed % 2 == 0);
  }
}

// Those that wait for memory or for a gang's cores let others pass, but no more
// than there can be between two turns of everybody.
TEST(TurnsSimulationTest, NobodyIsPassedWithoutEnd) {
  for (uint32_t seed = 1; seed <= 5 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Board board(seed, 8);
    board.Run(20000, /*destroying=*/false);
    EXPECT_LT(board.most_overtaken(), 8 * kJobsPerContext);
  }
}

TEST(TurnsSimulationTest, HalvesDoNotKeepTheWholeFromItsTurn) {
  Board board(1, 8);
  board.DivideMemory();
  board.Run(20000, /*destroying=*/false);
  EXPECT_LT(board.most_overtaken(), 8 * kJobsPerContext);
}

}  // namespace
}  // namespace rknnd::core
