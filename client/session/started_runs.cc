// Runs that are started and not waited for: into the ring, out of it, and into
// the ring of the next daemon when the one that had them died or goes. Called
// on the program's threads, many at once; whoever looks at a run first finds
// out its end for all.

#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>

#include "client/session/requests.h"

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

wire::Submission SessionTarget::JobOf(const RunRequest& request) {
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

SessionTarget::Flight& SessionTarget::NewFlight() {
  for (size_t tried = 0; tried < made_.size(); ++tried) {
    last_made_ = last_made_ + 1 < made_.size() ? last_made_ + 1 : 0;
    Flight& flight = *made_[last_made_];
    if (flight.state == Flight::State::kEnded &&
        flight.users.load(std::memory_order_acquire) == 0) {
      flight.refused_since = 0;
      flight.losses = {};
      flight.text.clear();
      flight.report = {};
      flight.done.store(false, std::memory_order_relaxed);
      return flight;
    }
  }
  // Ending one then never allocates.
  flights_.reserve(made_.size() + 1);
  made_.push_back(std::make_unique<Flight>());
  return *made_.back();
}

bool SessionTarget::Launch(Flight& flight) {
  wire::Submission job = flight.job;
  const bool again = flight.refused_since != 0 || flight.losses.any();
  flight.launched = again ? clock_.Now() : flight.started;
  if (again && !TakeOff(flight.launched - flight.started, &job)) {
    EndHere(flight, Code::kDeadlineExceeded,
            "its time was up before rknnd was back");
    return true;
  }
  if (flying_on_ == nullptr || flying_on_->broken()) {
    MakeWait(flight);
    return true;
  }
  if (!fences_out_.contains(job.fence_out)) {
    flight.job.fence_out = job.fence_out = 0;
  }
  const std::optional<Ticket> ticket = flying_on_->ring().TrySubmit(job);
  if (!ticket) return false;
  flight.ticket = *ticket;
  flight.connection = flying_on_;
  flight.state = Flight::State::kFlying;
  return true;
}

bool SessionTarget::Follow(Flight& flight) {
  const auto ahead =
      std::find_if(flights_.begin(), flights_.end(), [&](const Flight* other) {
        return other->state == Flight::State::kWaiting &&
               other->job.context == flight.job.context;
      });
  if (ahead == flights_.end()) {
    if (held_ == 0 || held_ != flight.job.context) return false;
    MakeWait(flight);
    return true;
  }
  MakeWait(flight);
  flight.retry_at = (*ahead)->retry_at;
  return true;
}

void SessionTarget::MakeWait(Flight& flight) {
  const Nanoseconds now = clock_.Now();
  if (flight.refused_since == 0) flight.refused_since = now;
  flight.state = Flight::State::kWaiting;
  flight.retry_at = now + kRetryDelay;
  flight.connection.reset();
  // Whoever sleeps for it comes back to it.
  const auto notice = notices_.find(flight.job.notify);
  if (notice != notices_.end()) notice->second->RemindIn(kRetryDelay);
}

void SessionTarget::DropFences(const wire::Submission& job, Code code) {
  for (const uint32_t fence : {job.fence_in, job.fence_out}) {
    if (fence != 0) stale_fences_.push_back(fence);
  }
  if (job.fence_out != 0 && code != Code::kOk) {
    failed_fences_.insert(job.fence_out);
  }
}

void SessionTarget::End(Flight& flight, Code code, std::string text) {
  flight.code = code;
  flight.text = std::move(text);
  flight.state = Flight::State::kEnded;
  flight.connection.reset();
  DropFences(flight.job, code);
  std::erase(flights_, &flight);
  flight.done.store(true, std::memory_order_release);
}

void SessionTarget::EndHere(Flight& flight, Code code, std::string text) {
  const auto notice = notices_.find(flight.job.notify);
  End(flight, code, std::move(text));
  if (notice != notices_.end()) notice->second->Remind();
}

void SessionTarget::Land(Flight& flight) {
  Answer answer = flight.connection->ring().Take(flight.ticket);
  // A daemon that is being ended takes no new work, and the one that follows it
  // will.
  if (answer.code == Code::kUnavailable && options_.rebuild &&
      (flight.refused_since == 0 ||
       clock_.Now() < flight.refused_since + options_.rebuild_bound)) {
    MakeWait(flight);
    return;
  }
  flight.report = {answer.queue_ns, answer.run_ns, answer.total_ns, answer.core,
                   answer.drops};
  const auto lost = answer.code == Code::kNotFound
                        ? lost_.find(flight.job.context)
                        : lost_.end();
  if (lost != lost_.end()) {
    End(flight, lost->second.code, lost->second.message);
  } else {
    End(flight, answer.code, std::move(answer.text));
  }
}

void SessionTarget::LandAll() {
  for (size_t i = 0; i < flights_.size();) {
    Flight& flight = *flights_[i];
    if (flight.state == Flight::State::kFlying &&
        flight.connection->ring().IsDone(flight.ticket)) {
      Land(flight);
    }
    // It is not there any more when it has ended.
    if (i < flights_.size() && flights_[i] == &flight) ++i;
  }
}

void SessionTarget::LandStarted() {
  const base::MutexLock lock(flights_mutex_);
  LandAll();
}

void SessionTarget::RetryWaiting() {
  const Nanoseconds now = clock_.Now();
  for (size_t i = 0; i < flights_.size();) {
    Flight& flight = *flights_[i];
    // In order: none before one that is not due, or that has no slot.
    if (flight.state == Flight::State::kWaiting &&
        (flight.retry_at > now || IsOutdated(flight) || !Launch(flight))) {
      break;
    }
    // It is not there any more when its time was up.
    if (i < flights_.size() && flights_[i] == &flight) ++i;
  }
}

void SessionTarget::TendFlights() {
  {
    const base::MutexLock lock(flights_mutex_);
    RetryWaiting();
    RemindWaiting();
  }
  TryRetryOutdated();
  TryReleaseStaleFences();
}

void SessionTarget::RemindWaiting() {
  for (const Flight* flight : flights_) {
    if (flight->state != Flight::State::kWaiting) continue;
    const auto notice = notices_.find(flight->job.notify);
    if (notice != notices_.end()) notice->second->RemindIn(kRetryDelay);
  }
}

void SessionTarget::RemindAll() {
  for (const auto& [number, notice] : notices_) notice->Remind();
}

Expected<RunRef> SessionTarget::Start(const RunRequest& request) {
  bool connected = true;
  for (;;) {
    if (!connected) {
      // One look: the run waits for the daemon, and its caller does not.
      Expected<std::shared_ptr<Connection>> recovered = Recover(clock_.Now());
      if (!recovered.ok() &&
          recovered.error().code != Code::kDeadlineExceeded) {
        ReleaseFence(request.fence_in);
        ReleaseFence(request.fence_out);
        return std::move(recovered).error();
      }
    }
    const base::MutexLock lock(flights_mutex_);
    if (connected && (flying_on_ == nullptr || flying_on_->broken())) {
      connected = false;
      continue;
    }
    Flight& flight = NewFlight();
    flight.job = JobOf(request);
    flight.started = flight.launched = clock_.Now();
    flight.bound_at = last_rebinding_;
    RunRef run(&flight);
    const auto launch = [&]() RKNND_REQUIRES(flights_mutex_) {
      return flights_.size() < RingClient::kMostRuns &&
             (Follow(flight) || Launch(flight));
    };
    bool launched = launch();
    if (!launched) {
      LandAll();
      launched = launch();
    }
    if (!launched) {
      flight.state = Flight::State::kEnded;
      DropFences(flight.job, Code::kResourceExhausted);
      return Error{Code::kResourceExhausted,
                   std::to_string(RingClient::kMostRuns) +
                       " runs of this process are on their way, which is as "
                       "many as can be: wait for some of them"};
    }
    flights_.push_back(&flight);
    return run;
  }
}

bool SessionTarget::Look(StartedRun& run) {
  if (run.done.load(std::memory_order_acquire)) return true;
  {
    const base::MutexLock lock(flights_mutex_);
    auto& flight = static_cast<Flight&>(run);
    if (flight.state == Flight::State::kFlying &&
        flight.connection->ring().IsDone(flight.ticket)) {
      Land(flight);
    }
    if (stale_fences_.empty()) {
      return run.done.load(std::memory_order_acquire);
    }
  }
  TryReleaseStaleFences();
  return run.done.load(std::memory_order_acquire);
}

SessionTarget::Leg SessionTarget::NextLeg(Flight& flight,
                                          const std::string* why) {
  const base::MutexLock lock(flights_mutex_);
  if (flight.state == Flight::State::kEnded) return {};
  // The daemon's answer that the time is up may be late a little. Without a
  // limit it is the daemon's time alone that counts.
  Nanoseconds limit =
      flight.job.timeout_ms * base::kMillisecond + options_.run_grace;
  if (flight.job.timeout_ms == 0) {
    const bool has_daemon =
        flight.state == Flight::State::kFlying && !flight.connection->broken();
    limit = flight.launched - flight.started + options_.longest_run +
            (has_daemon ? 0 : LongestRebuild());
  }
  if (clock_.Now() >= flight.started + limit) {
    // Its own limit the daemon knows, and would have answered.
    if (why == nullptr && flight.job.timeout_ms == 0) {
      Leg late;
      late.late = true;
      return late;
    }
    if (flight.state == Flight::State::kFlying) {
      flight.connection->ring().Abandon(flight.ticket);
    }
    EndHere(flight, Code::kDeadlineExceeded,
            LateText(limit) + ": " +
                (why != nullptr
                     ? *why
                     : "rknnd hangs, is stopped or away (rknnctl status)"));
    return {};
  }
  RetryWaiting();
  if (flight.state == Flight::State::kEnded) return {};
  Leg leg;
  leg.end = flight.started + limit;
  if (flight.state == Flight::State::kFlying) {
    leg.connection = flight.connection;
    leg.ticket = flight.ticket;
  }
  return leg;
}

bool SessionTarget::Await(StartedRun& run, Nanoseconds deadline) {
  for (;;) {
    if (Look(run)) return true;
    auto& flight = static_cast<Flight&>(run);
    Leg leg = NextLeg(flight, nullptr);
    if (leg.late) {
      const std::string why = WhyUnanswered();
      leg = NextLeg(flight, &why);
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
        leg.connection != nullptr ? leg.connection : Current();
    const Connection::Health health =
        connection != nullptr ? connection->Look() : Connection::Health{false};
    if (!health.alive) {
      if (!Recover(end).ok()) Pause(slice());
    } else {
      if (health.readable) TryReadEvents(*connection);
      if (leg.connection == nullptr) {
        TryRetryOutdated();
        connection->AwaitEnd(slice());
      }
    }
    if (clock_.Now() >= deadline) return Look(run);
  }
}

bool SessionTarget::IsWornOut(Flight& flight) {
  const Nanoseconds now = clock_.Now();
  flight.losses.Add(flight.connection->MayBeOf(flight.ticket), now);
  return flight.losses.TooMany(now, options_.rebuild_bound);
}

void SessionTarget::MoveFlights(const std::shared_ptr<Connection>& connection) {
  {
    const base::MutexLock lock(flights_mutex_);
    lost_.clear();
    for (const auto& [number, record] : contexts_) {
      if (record.lost) lost_.emplace(number, *record.lost);
    }
    // Answers that came with the last daemon's last breath.
    LandAll();
    flying_on_ = connection;
    for (size_t i = 0; i < flights_.size();) {
      Flight& flight = *flights_[i];
      const auto lost = lost_.find(flight.job.context);
      if (!contexts_.contains(flight.job.context)) {
        End(flight, Code::kCancelled, "the context was destroyed");
      } else if (lost != lost_.end()) {
        End(flight, lost->second.code, lost->second.message);
      } else if (flight.state == Flight::State::kFlying && IsWornOut(flight)) {
        const Error error = flight.losses.ToError();
        End(flight, error.code, error.message);
      } else {
        // New ones of its context come after it.
        flight.state = Flight::State::kWaiting;
        flight.connection.reset();
        flight.retry_at = 0;
        ++i;
      }
    }
  }
  LaunchWaiting(*connection);
  const base::MutexLock lock(flights_mutex_);
  RemindWaiting();
  RemindAll();
}

void SessionTarget::FailFlights(const Error& error) {
  const base::MutexLock lock(flights_mutex_);
  LandAll();
  while (!flights_.empty()) End(*flights_.back(), error.code, error.message);
  RemindAll();
}

uint32_t SessionTarget::CancelFlights(uint32_t context, bool all,
                                      uint64_t frame) {
  uint32_t cancelled = 0;
  const base::MutexLock lock(flights_mutex_);
  for (size_t i = 0; i < flights_.size();) {
    Flight& flight = *flights_[i];
    if (flight.job.context != context ||
        (frame != 0 && flight.job.frame != frame) ||
        (!all && flight.state != Flight::State::kWaiting)) {
      ++i;
      continue;
    }
    EndHere(flight, Code::kCancelled, "the run was taken back");
    ++cancelled;
  }
  return cancelled;
}

Expected<uint32_t> SessionTarget::Cancel(uint32_t context, uint64_t frame) {
  const uint32_t waiting = CancelFlights(context, false, frame);
  wire::Submission job{};
  job.operation = static_cast<uint32_t>(wire::RingOperation::kCancel);
  job.context = context;
  job.frame = frame;
  Expected<Answer> answer = Put(job);
  if (!answer.ok()) return std::move(answer).error();
  return waiting + answer->count;
}

}  // namespace rknnd::client
