#include "daemon/core/testing/scheduler_board.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace rknnd::core::testing {

std::vector<uint32_t> Seeds(uint32_t count) {
  if (const char* seed = std::getenv("RKNND_SEED"); seed != nullptr) {
    return {static_cast<uint32_t>(std::strtoul(seed, nullptr, 10))};
  }
  std::vector<uint32_t> seeds;
  for (uint32_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
  return seeds;
}

SchedulerBoard::SchedulerBoard(uint32_t seed, const Options& options)
    : options_(options),
      all_((uint32_t{1} << options.cores) - 1),
      random_(seed),
      made_(clock_.Now()),
      device_(options.cores, &clock_),
      scheduler_(options.cores, options.jobs_per_context, options.scheduling,
                 &clock_) {}

SchedulerBoard::~SchedulerBoard() {
  for (Program& program : programs_) scheduler_.Cancel(*program.context);
}

uint32_t SchedulerBoard::AddShare(const SharePolicy& policy,
                                  std::shared_ptr<ShareGroup> user) {
  Account& account = accounts_.emplace_back();
  account.policy = policy;
  account.share =
      std::make_shared<Share>(policy, options_.cores, std::move(user));
  return static_cast<uint32_t>(accounts_.size() - 1);
}

uint32_t SchedulerBoard::AddContext(uint32_t share, Priority priority,
                                    const CoreChoice& cores,
                                    base::Nanoseconds run, uint32_t batch) {
  auto model = std::make_shared<LoadedModel>();
  const std::string text = absl::StrCat("internal=4096 batch=", batch);
  auto loaded = device_.Load({std::as_bytes(std::span(text)), "", "m"});
  if (!loaded.ok()) {
    ADD_FAILURE() << loaded.status();
    return 0;
  }
  model->model = *std::move(loaded);
  model->run_times = std::vector<RunTimes>(1);
  for (uint32_t count = 1; count <= options_.cores; ++count) {
    model->run_times[0].Record((1U << count) - 1,
                               batch > 1 ? run / std::min(count, batch) : run);
  }
  Program& program = programs_.emplace_back();
  ContextTraits traits;
  traits.number = static_cast<uint32_t>(programs_.size() - 1);
  traits.priority = priority;
  traits.share = accounts_[share].share;
  program.context =
      std::make_shared<RunContext>(traits, std::move(model), nullptr);
  program.share = share;
  program.cores = cores;
  program.run = run;
  return traits.number;
}

SchedulerBoard::Program& SchedulerBoard::Of(const Job& job) {
  return programs_[job.hold.context->traits().number];
}

uint32_t SchedulerBoard::free() const {
  uint32_t free = all_ & ~lent_;
  for (const Run& run : running_) free &= ~run.job->granted;
  return free;
}

base::Nanoseconds SchedulerBoard::busy() const {
  base::Nanoseconds busy = ended_busy_;
  for (const Run& run : running_) {
    busy += (now() - run.begin) * std::popcount(run.job->granted);
  }
  return busy;
}

bool SchedulerBoard::Submit(uint32_t context, const MemoryRange* alone,
                            bool held) {
  Program& program = programs_[context];
  auto job = std::make_unique<Job>();
  job->hold.context = program.context;
  job->cores = program.cores;
  job->alone = alone;
  job->waits_for_fence = held;
  job->submitted = now();
  if (scheduler_.Enqueue(job.get()) != Scheduler::Entry::kQueued) return false;
  program.queued.push_back(job.get());
  jobs_.push_back(std::move(job));
  UpdateLines();
  Wake();
  return true;
}

void SchedulerBoard::Cancel(uint32_t context) {
  Program& program = programs_[context];
  Job* next = scheduler_.Cancel(*program.context);
  for (; next != nullptr; next = next->next) {
    ASSERT_FALSE(program.queued.empty());
    EXPECT_EQ(next, program.queued.front());
    program.queued.pop_front();
  }
  EXPECT_TRUE(program.queued.empty()) << "a job survived its context";
  UpdateLines();
  Wake();
}

void SchedulerBoard::CancelLent(uint32_t context) {
  Program& program = programs_[context];
  Job* next = scheduler_.CancelLent(*program.context);
  std::deque<Job*> left;
  for (Job* job : program.queued) {
    const bool lent = job->cores.gang ? (job->cores.cores & lent_) != 0
                                      : (job->cores.cores & ~lent_) == 0;
    if (!lent) {
      left.push_back(job);
      continue;
    }
    ASSERT_EQ(next, job);
    next = next->next;
  }
  EXPECT_EQ(next, nullptr);
  program.queued = left;
  UpdateLines();
  Wake();
}

void SchedulerBoard::Remove(uint32_t context, size_t place) {
  Program& program = programs_[context];
  Job* const job = program.queued[place];
  EXPECT_TRUE(scheduler_.Remove(job));
  EXPECT_FALSE(scheduler_.Remove(job)) << "it is not queued any more";
  program.queued.erase(program.queued.begin() + static_cast<ptrdiff_t>(place));
  UpdateLines();
  Wake();
}

void SchedulerBoard::Unhold(uint32_t context) {
  for (Job* job : programs_[context].queued) {
    if (!job->waits_for_fence) continue;
    const bool runnable = scheduler_.Unhold(job);
    UpdateLines();
    if (runnable) Wake();
    break;
  }
  ExpectNothingIsLeft();
}

void SchedulerBoard::Claim(uint32_t context) {
  Program& program = programs_[context];
  if (program.queued.empty()) return;
  const bool runs = program.context->queue.running;
  Job* const job = program.queued.front();
  EXPECT_EQ(scheduler_.Claim(job), !runs);
  if (runs) return;
  EXPECT_FALSE(scheduler_.Remove(job)) << "it counts as running";
  program.queued.pop_front();
  UpdateLines();
  Wake();
  scheduler_.Release(*program.context, 0, 0);
  UpdateLines();
  Wake();
}

void SchedulerBoard::SetLent(uint32_t cores) {
  lent_ = cores & all_;
  const bool runnable = scheduler_.SetLent(cores);
  for (uint32_t i = 0; i < programs_.size(); ++i) CancelLent(i);
  if (runnable) Wake();
  ExpectNothingIsLeft();
}

bool SchedulerBoard::EndNext() {
  if (running_.empty()) return false;
  const auto first = std::min_element(
      running_.begin(), running_.end(),
      [](const Run& a, const Run& b) { return a.end < b.end; });
  const Run run = *first;
  if (run.end > now()) clock_.Advance(run.end - now());
  Program& program = Of(*run.job);
  const base::Nanoseconds took = now() - run.begin;
  const base::Nanoseconds used = took * std::popcount(run.job->granted);
  ended_busy_ += used;
  Account& account = accounts_[program.share];
  account.had += used;
  ++program.ended;
  // The client is told before the core is free.
  if (on_end != nullptr) on_end(program.context->traits().number);
  std::erase_if(running_,
                [&run](const Run& other) { return other.job == run.job; });
  const bool runnable =
      scheduler_.Release(*program.context, run.job->granted, took);
  UpdateLines();
  if (runnable) Wake();
  // Otherwise there is nothing to take.
  ExpectNothingIsLeft();
  return true;
}

void SchedulerBoard::RunFor(base::Nanoseconds time) {
  const base::Nanoseconds end = now() + time;
  while (!::testing::Test::HasFailure()) {
    base::Nanoseconds next = end;
    for (const Run& run : running_) next = std::min(next, run.end);
    if (next >= end) break;
    EndNext();
  }
  if (end > now()) clock_.Advance(end - now());
}

void SchedulerBoard::Finish() {
  on_end = nullptr;
  SetLent(0);
  // What is put back is held again.
  for (int round = 0; round < (options_.put_back ? 100 : 1); ++round) {
    for (uint32_t i = 0; i < programs_.size(); ++i) {
      for (size_t held = programs_[i].queued.size(); held > 0; --held) {
        Unhold(i);
      }
    }
    while (!::testing::Test::HasFailure() && EndNext()) {
    }
  }
  if (::testing::Test::HasFailure()) return;
  for (const Program& program : programs_) {
    EXPECT_TRUE(program.queued.empty()) << "a job never had its turn";
  }
  EXPECT_EQ(scheduler_.counts().queued, 0U);
  EXPECT_EQ(scheduler_.counts().running, 0U);
}

void SchedulerBoard::Wake() {
  // One worker wakes, and those that it wakes.
  for (int woken = 1; woken > 0; --woken) {
    // It has one job to do; the rest is for those it wakes.
    const Scheduler::Turn turn = scheduler_.TakeNext();
    if (turn.job == nullptr) continue;
    if (Begin(turn.job) || turn.more) ++woken;
  }
  ExpectNothingIsLeft();
}

bool SchedulerBoard::Waits(const Program& program) {
  return !program.queued.empty() && !program.context->queue.running &&
         !program.queued.front()->waits_for_fence;
}

SchedulerBoard::LineKey SchedulerBoard::KeyOf(const Program& program) const {
  const CoreChoice& cores = program.queued.front()->cores;
  return {program.share,
          static_cast<uint32_t>(program.context->traits().priority),
          cores.cores, cores.gang};
}

void SchedulerBoard::UpdateLines() {
  std::map<LineKey, base::Nanoseconds> lines;
  for (const Program& program : programs_) {
    if (!Waits(program)) continue;
    const LineKey key = KeyOf(program);
    const auto known = passed_over_.find(key);
    lines[key] = known == passed_over_.end() ? now() : known->second;
  }
  passed_over_ = std::move(lines);
}

base::Nanoseconds SchedulerBoard::UntilFree(uint32_t mask) const {
  base::Nanoseconds last = 0;
  for (const Run& run : running_) {
    if ((run.job->granted & mask) == 0) continue;
    const base::Nanoseconds left = run.begin + run.job->expected - now();
    last = std::max(last, left >= 0 ? left : -left);
  }
  return last;
}

bool SchedulerBoard::WantsMemory(const Job& job) const {
  if (job.alone == nullptr) return false;
  // Of those many only the first are looked at when memory becomes free.
  if (programs_.size() > 64) return true;
  const auto overlaps = [&job](const Job& other) {
    return &other != &job && other.alone != nullptr &&
           other.alone->Overlaps(*job.alone);
  };
  for (const Run& run : running_) {
    if (overlaps(*run.job)) return true;
  }
  return std::any_of(
      programs_.begin(), programs_.end(), [&](const Program& program) {
        return !program.queued.empty() && overlaps(*program.queued.front());
      });
}

bool SchedulerBoard::Begin(Job* job) {
  Program& program = Of(*job);
  if (program.queued.empty() || job != program.queued.front()) {
    ADD_FAILURE() << "out of its context's order";
    return false;
  }
  EXPECT_FALSE(job->waits_for_fence) << "its fence is not signalled";
  EXPECT_EQ(job->granted & ~free(), 0U) << "a core that is busy, or lent";
  EXPECT_EQ(job->granted & ~job->cores.cores, 0U) << "not its core";
  EXPECT_EQ(job->core, static_cast<uint32_t>(std::countr_zero(job->granted)));
  EXPECT_TRUE(!job->cores.gang || job->granted == job->cores.cores);
  for (const Run& run : running_) {
    EXPECT_NE(run.job->hold.context, job->hold.context) << "two at a time";
    if (run.job->alone == nullptr || job->alone == nullptr) continue;
    EXPECT_FALSE(run.job->alone->Overlaps(*job->alone))
        << "two jobs in one memory";
  }
  CheckOrder(*job);
  if (options_.put_back && Below(16) == 0) {
    const bool runnable = scheduler_.PutBack(job);
    UpdateLines();
    return runnable;
  }
  const LineKey key = KeyOf(program);
  program.queued.pop_front();
  longest_passed_over_ =
      std::max(longest_passed_over_, now() - passed_over_[key]);
  passed_over_[key] = now();
  program.longest_wait =
      std::max(program.longest_wait,
               now() - std::max(job->submitted, program.last_begun));
  program.last_begun = now();
  ++program.begun;
  ++begun_;
  history_ =
      (history_ ^ (program.context->traits().number * 64 + job->granted)) *
      0x100000001b3;
  base::Nanoseconds run =
      program.context->model()->expected_run(0, job->granted);
  if (options_.jitter != 0) {
    run += run *
           (static_cast<int64_t>(Below(2 * options_.jitter + 1)) -
            options_.jitter) /
           100;
  }
  accounts_[program.share].has += run * std::popcount(job->granted);
  running_.push_back({job, now(), now() + run});
  UpdateLines();
  return false;
}

bool SchedulerBoard::IsTooLong(const Job& job) const {
  return std::any_of(programs_.begin(), programs_.end(),
                     [&](const Program& program) {
                       if (!Waits(program)) return false;
                       const CoreChoice& gang = program.queued.front()->cores;
                       return gang.gang && (gang.cores & lent_) == 0 &&
                              job.expected > UntilFree(gang.cores);
                     });
}

// Nobody of a higher class could have had this core instead, unless this one,
// or a gang, had been passed over for long.
void SchedulerBoard::CheckOrder(const Job& job) const {
  const base::Nanoseconds long_since =
      now() - options_.scheduling.starvation_bound / 2;
  for (const auto& [key, since] : passed_over_) {
    if (since > long_since) continue;
    if (std::get<3>(key) ||
        key == KeyOf(programs_[job.hold.context->traits().number])) {
      return;
    }
  }
  const auto priority = job.hold.context->traits().priority;
  for (const Program& other : programs_) {
    if (!Waits(other) || other.context->traits().priority >= priority) continue;
    const Job& waits = *other.queued.front();
    const bool could = waits.cores.gang
                           ? (waits.cores.cores & ~free()) == 0
                           : (waits.cores.cores & free() & job.granted) != 0;
    EXPECT_FALSE(could && !WantsMemory(waits) && !IsTooLong(waits))
        << "job of a lower class before context "
        << other.context->traits().number;
  }
}

void SchedulerBoard::ExpectNothingIsLeft() {
  EXPECT_EQ(scheduler_.TakeNext().job, nullptr)
      << "a job could run and nobody was told";
  const uint32_t idle = free();
  if (idle == 0) return;
  // By one of the gangs, whichever gathers: what fits in none is excused.
  uint32_t kept = 0;
  base::Nanoseconds room = INT64_MAX;
  Priority highest = Priority::kLow;
  for (const Program& program : programs_) {
    if (!Waits(program)) continue;
    const Job& job = *program.queued.front();
    if (!job.cores.gang || (job.cores.cores & lent_) != 0) continue;
    kept |= job.cores.cores;
    // One that was passed over for long comes before all.
    const bool due = now() - passed_over_[KeyOf(program)] >=
                     options_.scheduling.starvation_bound / 2;
    highest = due ? Priority::kHigh
                  : std::min(highest, program.context->traits().priority);
    if ((job.cores.cores & ~idle) == 0) continue;
    room = std::min(room, UntilFree(job.cores.cores));
  }
  for (const Program& program : programs_) {
    if (!Waits(program)) continue;
    const Job& job = *program.queued.front();
    const bool lent = (job.cores.cores & lent_) != 0;
    if (job.cores.gang ? lent || (job.cores.cores & ~idle) != 0
                       : (job.cores.cores & idle) == 0) {
      continue;
    }
    if (WantsMemory(job)) continue;
    EXPECT_TRUE(room != INT64_MAX && (job.cores.cores & idle & ~kept) == 0)
        << "context " << program.context->traits().number
        << " waits for nothing";
    EXPECT_GT(job.expected, room) << "it would end before the gang begins";
    EXPECT_LE(highest, program.context->traits().priority)
        << "a gang of a lower class keeps its core";
  }
}

}  // namespace rknnd::core::testing
