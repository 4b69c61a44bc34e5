// Called on the program's threads, many at once; whoever looks at a run first
// finds out its end for all.

#include "client/session/pending_runs.h"

#include <algorithm>
#include <utility>

#include "client/session/unanswered.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;

// Between two tries with a daemon that takes no new work.
constexpr Nanoseconds kRetryDelay = RingClient::kSlice;

// What is left of a job's time; false when nothing is.
bool TakeOff(Nanoseconds elapsed, wire::Submission* job) {
  const auto ns = static_cast<uint64_t>(elapsed);
  const uint64_t ms = ns / base::kMillisecond;
  if ((job->timeout_ms != 0 && ms >= job->timeout_ms) ||
      (job->deadline_ns != 0 && ns >= job->deadline_ns)) {
    return false;
  }
  if (job->timeout_ms != 0) job->timeout_ms -= static_cast<uint32_t>(ms);
  if (job->deadline_ns != 0) job->deadline_ns -= ns;
  return true;
}

std::string LateText(Nanoseconds limit) {
  return "the run did not end within " +
         std::to_string(limit / base::kMillisecond) + " ms";
}

}  // namespace

wire::Submission JobOf(const RunRequest& request) {
  wire::Submission job{};
  job.context = request.context;
  job.frame = request.frame;
  job.flags = request.shared ? wire::kSubmitShared : 0;
  job.timeout_ms = request.timeout_ms;
  job.fence_in = request.fence_in;
  job.fence_out = request.fence_out;
  job.deadline_ns = request.deadline_ns;
  job.set = request.set;
  job.notify = request.notice;
  return job;
}

PendingRuns::PendingRuns(const SessionOptions& options, SessionLink& link,
                         SessionRecord& record, const Grace& grace,
                         FenceTable& fences, NoticeTable& notices)
    : options_(options),
      link_(link),
      record_(record),
      grace_(grace),
      fences_(fences),
      notices_(notices) {}

void PendingRuns::SubmitTo(std::shared_ptr<Connection> connection) {
  const base::MutexLock lock(mutex_);
  submits_to_ = std::move(connection);
}

PendingRuns::PendingRun& PendingRuns::NewRun() {
  for (size_t tried = 0; tried < made_.size(); ++tried) {
    last_made_ = last_made_ + 1 < made_.size() ? last_made_ + 1 : 0;
    PendingRun& run = *made_[last_made_];
    if (run.state == PendingRun::State::kEnded &&
        run.users.load(std::memory_order_acquire) == 0) {
      run.refused_since = 0;
      run.losses = {};
      run.text.clear();
      run.report = {};
      run.done.store(false, std::memory_order_relaxed);
      return run;
    }
  }
  // Ending one then never allocates.
  runs_.reserve(made_.size() + 1);
  made_.push_back(std::make_unique<PendingRun>());
  return *made_.back();
}

bool PendingRuns::Submit(PendingRun& run) {
  // Asked before the connection is: it is gone when its fences are.
  const bool tells =
      run.job.fence_out == 0 || fences_.CanBeTold(run.job.fence_out);
  wire::Submission job = run.job;
  const bool again = run.refused_since != 0 || run.losses.any();
  run.submitted = again ? clock_.Now() : run.started;
  if (again && !TakeOff(run.submitted - run.started, &job)) {
    EndHere(run, Code::kDeadlineExceeded,
            "its time was up before rknnd was back");
    return true;
  }
  if (submits_to_ == nullptr || submits_to_->broken()) {
    MakeWait(run);
    return true;
  }
  if (!tells) run.job.fence_out = job.fence_out = 0;
  const std::optional<Ticket> ticket = submits_to_->ring().TrySubmit(job);
  if (!ticket) return false;
  run.ticket = *ticket;
  run.connection = submits_to_;
  run.state = PendingRun::State::kSubmitted;
  return true;
}

bool PendingRuns::Follow(PendingRun& run) {
  const auto ahead =
      std::find_if(runs_.begin(), runs_.end(), [&](const PendingRun* other) {
        return other->state == PendingRun::State::kWaiting &&
               other->job.context == run.job.context;
      });
  if (ahead == runs_.end()) {
    if (held_ == 0 || held_ != run.job.context) return false;
    MakeWait(run);
    return true;
  }
  MakeWait(run);
  run.retry_at = (*ahead)->retry_at;
  return true;
}

void PendingRuns::MakeWait(PendingRun& run) {
  const Nanoseconds now = clock_.Now();
  if (run.refused_since == 0) run.refused_since = now;
  run.state = PendingRun::State::kWaiting;
  run.retry_at = now + kRetryDelay;
  run.connection.reset();
  // Whoever sleeps for it comes back to it.
  notices_.RemindIn(run.job.notify, kRetryDelay);
}

void PendingRuns::End(PendingRun& run, Code code, std::string text) {
  run.code = code;
  run.text = std::move(text);
  run.state = PendingRun::State::kEnded;
  run.connection.reset();
  fences_.GiveBackOf(run.job, code);
  std::erase(runs_, &run);
  run.done.store(true, std::memory_order_release);
}

void PendingRuns::EndHere(PendingRun& run, Code code, std::string text) {
  End(run, code, std::move(text));
  notices_.Remind(run.job.notify);
}

void PendingRuns::Complete(PendingRun& run) {
  Answer answer = run.connection->ring().Take(run.ticket);
  // A daemon that is being ended takes no new work, and the one that follows it
  // will.
  if (answer.code == Code::kUnavailable && options_.rebuild &&
      (run.refused_since == 0 ||
       clock_.Now() < run.refused_since + options_.rebuild_bound)) {
    MakeWait(run);
    return;
  }
  run.report = {answer.queue_ns, answer.run_ns, answer.total_ns, answer.core,
                answer.drops};
  const auto lost = answer.code == Code::kNotFound ? lost_.find(run.job.context)
                                                   : lost_.end();
  if (lost != lost_.end()) {
    End(run, lost->second.code, lost->second.message);
  } else {
    End(run, answer.code, std::move(answer.text));
  }
}

void PendingRuns::CompleteAll() {
  for (size_t i = 0; i < runs_.size();) {
    PendingRun& run = *runs_[i];
    if (run.IsAnswered()) Complete(run);
    // It is not there any more when it has ended.
    if (i < runs_.size() && runs_[i] == &run) ++i;
  }
}

void PendingRuns::CompleteEnded() {
  const base::MutexLock lock(mutex_);
  CompleteAll();
}

bool PendingRuns::AnyNames(uint32_t notice) {
  const base::MutexLock lock(mutex_);
  return std::any_of(
      runs_.begin(), runs_.end(),
      [notice](const PendingRun* run) { return run->job.notify == notice; });
}

void PendingRuns::RetryWaiting() {
  const Nanoseconds now = clock_.Now();
  for (size_t i = 0; i < runs_.size();) {
    PendingRun& run = *runs_[i];
    // In order: none before one that is not due, or that has no slot.
    if (run.state == PendingRun::State::kWaiting &&
        (run.retry_at > now || history_.IsOutdated(run.start()) ||
         !Submit(run))) {
      break;
    }
    // It is not there any more when its time was up.
    if (i < runs_.size() && runs_[i] == &run) ++i;
  }
}

void PendingRuns::Advance() {
  {
    const base::MutexLock lock(mutex_);
    RetryWaiting();
    RemindWaiting();
  }
  TryRetryOutdated();
  fences_.TryReleaseStale();
}

void PendingRuns::RemindWaiting() {
  for (const PendingRun* run : runs_) {
    if (run->state == PendingRun::State::kWaiting) {
      notices_.RemindIn(run->job.notify, kRetryDelay);
    }
  }
}

Expected<RunRef> PendingRuns::Start(const RunRequest& request) {
  bool connected = true;
  for (;;) {
    if (!connected) {
      // One look: the run waits for the daemon, and its caller does not.
      Expected<std::shared_ptr<Connection>> recovered =
          link_.Recover(clock_.Now());
      if (!recovered.ok() &&
          recovered.error().code != Code::kDeadlineExceeded) {
        fences_.Release(request.fence_in);
        fences_.Release(request.fence_out);
        return std::move(recovered).error();
      }
    }
    const base::MutexLock lock(mutex_);
    if (connected && (submits_to_ == nullptr || submits_to_->broken())) {
      connected = false;
      continue;
    }
    PendingRun& run = NewRun();
    run.job = JobOf(request);
    run.started = run.submitted = clock_.Now();
    run.history = history_.last();
    RunRef started(&run);
    const auto launch = [&]() RKNND_REQUIRES(mutex_) {
      return runs_.size() < RingClient::kMostRuns &&
             (Follow(run) || Submit(run));
    };
    bool submitted = launch();
    if (!submitted) {
      CompleteAll();
      submitted = launch();
    }
    if (!submitted) {
      run.state = PendingRun::State::kEnded;
      fences_.GiveBackOf(run.job, Code::kResourceExhausted);
      return Error{Code::kResourceExhausted,
                   std::to_string(RingClient::kMostRuns) +
                       " runs of this process are on their way, which is as "
                       "many as can be: wait for some of them"};
    }
    runs_.push_back(&run);
    if (request.notice != 0) notices_.Expect(request.notice);
    return started;
  }
}

bool PendingRuns::Look(StartedRun& started) {
  if (started.done.load(std::memory_order_acquire)) return true;
  {
    const base::MutexLock lock(mutex_);
    auto& run = static_cast<PendingRun&>(started);
    if (run.IsAnswered()) Complete(run);
  }
  fences_.TryReleaseStale();
  return started.done.load(std::memory_order_acquire);
}

PendingRuns::Leg PendingRuns::NextLeg(PendingRun& run, const std::string* why) {
  const base::MutexLock lock(mutex_);
  if (run.state == PendingRun::State::kEnded) return {};
  // The daemon's answer that the time is up may be late a little. Without a
  // limit it is the daemon's time alone that counts.
  Nanoseconds limit =
      run.job.timeout_ms * base::kMillisecond + options_.run_grace;
  if (run.job.timeout_ms == 0) {
    const bool has_daemon =
        run.state == PendingRun::State::kSubmitted && !run.connection->broken();
    limit = run.submitted - run.started + options_.longest_run +
            (has_daemon ? 0 : link_.LongestRebuild());
  }
  if (clock_.Now() >= run.started + limit) {
    // Its own limit the daemon knows, and would have answered.
    if (why == nullptr && run.job.timeout_ms == 0) {
      Leg late;
      late.late = true;
      return late;
    }
    if (run.state == PendingRun::State::kSubmitted) {
      run.connection->ring().Abandon(run.ticket);
    }
    EndHere(run, Code::kDeadlineExceeded,
            LateText(limit) + ": " +
                (why != nullptr
                     ? *why
                     : "rknnd hangs, is stopped or away (rknnctl status)"));
    return {};
  }
  RetryWaiting();
  if (run.state == PendingRun::State::kEnded) return {};
  Leg leg;
  leg.end = run.started + limit;
  if (run.state == PendingRun::State::kSubmitted) {
    leg.connection = run.connection;
    leg.ticket = run.ticket;
  }
  return leg;
}

bool PendingRuns::Await(StartedRun& started, Nanoseconds deadline) {
  auto& run = static_cast<PendingRun&>(started);
  for (;;) {
    if (Look(run)) return true;
    Leg leg = NextLeg(run, nullptr);
    if (leg.late) {
      const std::string why = WhyUnanswered(link_);
      leg = NextLeg(run, &why);
    }
    if (leg.end == 0) continue;  // it has ended
    const Nanoseconds end = std::min(deadline, leg.end);
    const auto slice = [&] {
      return std::clamp<Nanoseconds>(end - clock_.Now(), 0, RingClient::kSlice);
    };
    if (leg.connection != nullptr &&
        leg.connection->ring().Wait(leg.ticket, slice())) {
      continue;
    }
    // A run that waits for a daemon has no connection of its own.
    const std::shared_ptr<Connection> connection =
        leg.connection != nullptr ? leg.connection : link_.Current();
    const Connection::Health health =
        connection != nullptr ? connection->Look() : Connection::Health{false};
    if (!health.alive) {
      if (!link_.Recover(end).ok()) Pause(slice());
    } else {
      if (health.readable) link_.TryReadEvents(*connection);
      if (leg.connection == nullptr) {
        TryRetryOutdated();
        connection->AwaitEnd(slice());
      }
    }
    if (clock_.Now() >= deadline) return Look(run);
  }
}

bool PendingRuns::IsWornOut(PendingRun& run) {
  const Nanoseconds now = clock_.Now();
  run.losses.Add(run.connection->MayBeOf(run.ticket), now);
  return run.losses.TooMany(now, options_.rebuild_bound);
}

void PendingRuns::MoveTo(const std::shared_ptr<Connection>& connection) {
  {
    const base::MutexLock lock(mutex_);
    lost_.clear();
    for (const auto& [number, record] : record_.contexts) {
      if (record.lost) lost_.emplace(number, *record.lost);
    }
    // Answers that came with the last daemon's last breath.
    CompleteAll();
    submits_to_ = connection;
    for (size_t i = 0; i < runs_.size();) {
      PendingRun& run = *runs_[i];
      const auto lost = lost_.find(run.job.context);
      if (!record_.contexts.contains(run.job.context)) {
        End(run, Code::kCancelled, "the context was destroyed");
      } else if (lost != lost_.end()) {
        End(run, lost->second.code, lost->second.message);
      } else if (run.state == PendingRun::State::kSubmitted && IsWornOut(run)) {
        const Error error = run.losses.ToError();
        End(run, error.code, error.message);
      } else {
        // New ones of its context come after it.
        run.state = PendingRun::State::kWaiting;
        run.connection.reset();
        run.retry_at = 0;
        ++i;
      }
    }
  }
  SubmitWaiting(*connection);
  const base::MutexLock lock(mutex_);
  RemindWaiting();
  notices_.RemindAll();
}

void PendingRuns::FailAll(const Error& error) {
  const base::MutexLock lock(mutex_);
  CompleteAll();
  while (!runs_.empty()) End(*runs_.back(), error.code, error.message);
  notices_.RemindAll();
}

uint32_t PendingRuns::Cancel(uint32_t context, bool all, uint64_t frame) {
  uint32_t cancelled = 0;
  const base::MutexLock lock(mutex_);
  for (size_t i = 0; i < runs_.size();) {
    PendingRun& run = *runs_[i];
    if (run.job.context != context || (frame != 0 && run.job.frame != frame) ||
        (!all && run.state != PendingRun::State::kWaiting)) {
      ++i;
      continue;
    }
    EndHere(run, Code::kCancelled, "the run was taken back");
    ++cancelled;
  }
  return cancelled;
}

void PendingRuns::Forget(uint32_t context, bool all) {
  Cancel(context, all);
  const base::MutexLock lock(mutex_);
  lost_.erase(context);
}

std::optional<Error> PendingRuns::WhyLost(uint32_t context) {
  const base::MutexLock lock(mutex_);
  const auto lost = lost_.find(context);
  if (lost == lost_.end()) return std::nullopt;
  return lost->second;
}

}  // namespace rknnd::client
