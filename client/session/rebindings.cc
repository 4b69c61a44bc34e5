// Of PendingRuns, those whose context was bound anew: each is put into the ring
// with what was bound when it was started. Called on the program's threads.

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/session/pending_runs.h"
#include "client/session/requests.h"
#include "client/target/log.h"

namespace rknnd::client {

using base::Code;
using base::Expected;

namespace {

Expected<void> BindPorts(Connection& connection, uint32_t context,
                         const BindingHistory::PortsThen& ports) {
  for (const auto& [port, bound] : ports) {
    Expected<void> done;
    if (const auto* frame = std::get_if<FrameBinding>(&bound)) {
      FrameBinding of_set = *frame;
      of_set.set = port.set;
      done = BindFrameOn(connection, context, port.index, of_set);
    } else if (const auto* binding = std::get_if<Binding>(&bound)) {
      done = BindOn(connection, context, port, *binding);
    }
    if (!done.ok()) return done;
  }
  return {};
}

}  // namespace

void PendingRuns::KeepBinding(uint32_t context, const PortKey& port,
                              const ContextRecord& record) {
  const base::MutexLock lock(mutex_);
  CompleteAll();
  std::vector<BindingHistory::Start> runs;
  for (const PendingRun* run : runs_) {
    runs.push_back(run->start());
  }
  if (history_.Keep(context, port, record, runs)) {
    rebinds_.store(true, std::memory_order_release);
  }
}

void PendingRuns::BindBack(Connection& connection, uint32_t context,
                           const BindingHistory::PortsThen& ports) {
  const auto record = record_.contexts.find(context);
  if (record == record_.contexts.end()) return;
  // One that cannot be had again keeps no other from it: a later run would use
  // what this one did.
  for (const auto& [port, then] : ports) {
    const Expected<void> done = BindPorts(
        connection, context, {{port, BoundNow(record->second, port)}});
    if (done.ok()) continue;
    if (connection.broken()) return;
    switch (done.error().code) {
      case Code::kNotFound:         // the program has destroyed it meanwhile
      case Code::kInvalidArgument:  // too small for the shape that was chosen
      case Code::kUnavailable:      // it takes no runs either
        continue;
      default:
        // Later runs must not use what is bound there, if it is known at all.
        Log(LogLevel::kWarning,
            "a context could not be bound again as it was, and the session is "
            "made again: " +
                done.error().message);
        connection.Break();
        return;
    }
  }
}

PendingRuns::PendingRun* PendingRuns::SubmitDue(Connection& connection) {
  const base::Nanoseconds now = clock_.Now();
  for (size_t i = 0; i < runs_.size() && submits_to_.get() == &connection;) {
    PendingRun& run = *runs_[i];
    if (run.state == PendingRun::State::kWaiting) {
      if (run.retry_at > now) return nullptr;
      if (history_.IsOutdated(run.start())) return &run;
      if (!Submit(run)) return nullptr;
    }
    // It is not there any more when its time was up.
    if (i < runs_.size() && runs_[i] == &run) ++i;
  }
  return nullptr;
}

bool PendingRuns::SubmitAsBound(Connection& connection, PendingRun& run,
                                const Expected<void>& bound) {
  // Taken back meanwhile, or its time was up.
  if (run.state != PendingRun::State::kWaiting) return true;
  if (bound.ok()) {
    if (Submit(run)) return true;
    MakeWait(run);
    return false;
  }
  if (grace_.IsPassing(connection, bound.error())) {
    MakeWait(run);
    return false;
  }
  EndHere(run, bound.error().code,
          "rknnd went away, and what the run was bound to cannot be bound "
          "again: " +
              bound.error().message);
  return true;
}

void PendingRuns::SubmitWaiting(Connection& connection) {
  for (;;) {
    RunRef kept;
    PendingRun* run = nullptr;
    uint32_t context = 0;
    BindingHistory::PortsThen then;
    {
      const base::MutexLock lock(mutex_);
      run = SubmitDue(connection);
      if (run == nullptr) return;
      kept = RunRef(run);
      context = run->job.context;
      if (const ContextRecord* record = record_.FindContext(context)) {
        then = history_.BindingsOf(run->start(), *record);
      }
      held_ = context;
    }
    // Nobody else's runs of the context are begun until it is as it was.
    const Expected<void> bound = BindPorts(connection, context, then);
    bool submitted = false;
    {
      const base::MutexLock lock(mutex_);
      submitted = SubmitAsBound(connection, *run, bound);
    }
    // The daemon reads the ring before it hears this.
    BindBack(connection, context, then);
    {
      const base::MutexLock lock(mutex_);
      held_ = 0;
    }
    hold_over_.notify_all();
    if (!submitted) return;
  }
}

void PendingRuns::TryRetryOutdated() {
  {
    const base::MutexLock lock(mutex_);
    bool wanted = false;
    for (const PendingRun* run : runs_) {
      wanted |= run->state == PendingRun::State::kWaiting &&
                history_.IsOutdated(run->start());
    }
    if (!wanted) return;
  }
  const SocketAccess access(link_, 0);
  if (!access.granted()) return;
  if (const auto connection = link_.Current()) SubmitWaiting(*connection);
}

std::optional<Ticket> PendingRuns::Submit(RingClient& ring,
                                          const wire::Submission& job) {
  if (!rebinds_.load(std::memory_order_acquire)) return ring.Submit(job);
  {
    const base::MutexLock lock(mutex_);
    if (held_ != 0 && held_ == job.context) {
      hold_over_.wait_for(mutex_, std::chrono::nanoseconds(RingClient::kSlice));
    }
    if (held_ != 0 && held_ == job.context) return std::nullopt;
    std::optional<Ticket> ticket = ring.TrySubmit(job);
    if (ticket) return ticket;
  }
  ring.AwaitSlot();
  return std::nullopt;
}

}  // namespace rknnd::client
