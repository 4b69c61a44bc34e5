// What started runs keep: a run has the bindings of its start, also when it is
// put to another daemon, or to the same one once more, after its context was
// bound anew. Called on the program's threads.

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/rknnrt/log.h"
#include "client/session/requests.h"

namespace rknnd::client {

using base::Code;
using base::Expected;

void SessionTarget::KeepBinding(uint32_t context, const Port& port,
                                const ContextRecord& record) {
  const base::MutexLock lock(flights_mutex_);
  LandAll();
  for (auto kept = rebindings_.begin(); kept != rebindings_.end();) {
    const bool wanted = std::any_of(
        flights_.begin(), flights_.end(), [&](const Flight* flight) {
          return flight->job.context == kept->context &&
                 flight->bound_at < kept->serial;
        });
    kept = wanted ? std::next(kept) : rebindings_.erase(kept);
  }
  // Nobody saw what was bound since the last change and is no more.
  uint64_t last = 0;
  for (const Rebinding& kept : rebindings_) {
    if (kept.context == context && kept.port == port) last = kept.serial;
  }
  const bool seen =
      std::any_of(flights_.begin(), flights_.end(), [&](const Flight* flight) {
        return flight->job.context == context && flight->bound_at >= last;
      });
  if (!seen) return;
  rebindings_.push_back(
      {context, port, BoundNow(record, port), ++last_rebinding_});
  rebinds_.store(true, std::memory_order_release);
}

SessionTarget::Bound SessionTarget::BoundNow(const ContextRecord& record,
                                             const Port& port) {
  const auto frame = record.frames.find(port);
  if (frame != record.frames.end()) return frame->second;
  const auto binding = record.bindings.find(port);
  if (binding != record.bindings.end()) return binding->second;
  return {};
}

SessionTarget::Bound SessionTarget::BoundThen(const Flight& flight,
                                              const ContextRecord& record,
                                              const Port& port) const {
  for (const Rebinding& kept : rebindings_) {
    if (kept.context == flight.job.context && kept.port == port &&
        kept.serial > flight.bound_at) {
      return kept.before;
    }
  }
  return BoundNow(record, port);
}

bool SessionTarget::IsOutdated(const Flight& flight) const {
  return std::any_of(
      rebindings_.begin(), rebindings_.end(), [&](const Rebinding& kept) {
        return kept.context == flight.job.context &&
               kept.serial > flight.bound_at &&
               (kept.port.set == 0 || kept.port.set == flight.job.set);
      });
}

SessionTarget::PortsThen SessionTarget::BindingsOf(const Flight& flight) const {
  const uint32_t context = flight.job.context;
  const auto record = contexts_.find(context);
  PortsThen ports;
  if (record == contexts_.end()) return ports;
  for (const Rebinding& kept : rebindings_) {
    if (kept.context != context || kept.serial <= flight.bound_at) continue;
    if (kept.port.set != 0 && kept.port.set != flight.job.set) continue;
    const Port& port = kept.port;
    if (std::any_of(ports.begin(), ports.end(),
                    [&](const auto& other) { return other.first == port; })) {
      continue;
    }
    Bound bound = BoundThen(flight, record->second, port);
    // What a set did not bind was as in set 0.
    if (bound.index() == 0 && port.set != 0) {
      bound =
          BoundThen(flight, record->second, {0, port.direction, port.index});
    }
    ports.emplace_back(port, std::move(bound));
  }
  return ports;
}

Expected<void> SessionTarget::BindPorts(Connection& connection,
                                        uint32_t context,
                                        const PortsThen& ports) {
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

void SessionTarget::BindBack(Connection& connection, uint32_t context,
                             const PortsThen& ports) {
  const auto record = contexts_.find(context);
  if (record == contexts_.end()) return;
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

SessionTarget::Flight* SessionTarget::LaunchDue(Connection& connection) {
  const base::Nanoseconds now = clock_.Now();
  for (size_t i = 0; i < flights_.size() && flying_on_.get() == &connection;) {
    Flight& flight = *flights_[i];
    if (flight.state == Flight::State::kWaiting) {
      if (flight.retry_at > now) return nullptr;
      if (IsOutdated(flight)) return &flight;
      if (!Launch(flight)) return nullptr;
    }
    // It is not there any more when its time was up.
    if (i < flights_.size() && flights_[i] == &flight) ++i;
  }
  return nullptr;
}

bool SessionTarget::LaunchAsBound(Connection& connection, Flight& flight,
                                  const Expected<void>& bound) {
  // Taken back meanwhile, or its time was up.
  if (flight.state != Flight::State::kWaiting) return true;
  if (bound.ok()) {
    if (Launch(flight)) return true;
    MakeWait(flight);
    return false;
  }
  if (IsPassing(connection, bound.error())) {
    MakeWait(flight);
    return false;
  }
  EndHere(flight, bound.error().code,
          "rknnd went away, and what the run was bound to cannot be bound "
          "again: " +
              bound.error().message);
  return true;
}

void SessionTarget::LaunchWaiting(Connection& connection) {
  for (;;) {
    RunRef kept;
    Flight* flight = nullptr;
    uint32_t context = 0;
    PortsThen then;
    {
      const base::MutexLock lock(flights_mutex_);
      flight = LaunchDue(connection);
      if (flight == nullptr) return;
      kept = RunRef(flight);
      context = flight->job.context;
      then = BindingsOf(*flight);
      held_ = context;
    }
    // Nobody else's runs of the context are begun until it is as it was.
    const Expected<void> bound = BindPorts(connection, context, then);
    bool launched = false;
    {
      const base::MutexLock lock(flights_mutex_);
      launched = LaunchAsBound(connection, *flight, bound);
    }
    // The daemon reads the ring before it hears this.
    BindBack(connection, context, then);
    {
      const base::MutexLock lock(flights_mutex_);
      held_ = 0;
    }
    hold_over_.notify_all();
    if (!launched) return;
  }
}

void SessionTarget::TryRetryOutdated() {
  {
    const base::MutexLock lock(flights_mutex_);
    bool wanted = false;
    for (const Flight* flight : flights_) {
      wanted |= flight->state == Flight::State::kWaiting && IsOutdated(*flight);
    }
    if (!wanted) return;
  }
  if (!TakeTurn(0)) return;
  if (const auto connection = Current()) LaunchWaiting(*connection);
  GiveTurn();
}

std::optional<Ticket> SessionTarget::SubmitRun(RingClient& ring,
                                               const wire::Submission& job) {
  if (!rebinds_.load(std::memory_order_acquire)) return ring.Submit(job);
  {
    const base::MutexLock lock(flights_mutex_);
    if (held_ != 0 && held_ == job.context) {
      hold_over_.wait_for(flights_mutex_,
                          std::chrono::nanoseconds(RingClient::kSlice));
    }
    if (held_ != 0 && held_ == job.context) return std::nullopt;
    std::optional<Ticket> ticket = ring.TrySubmit(job);
    if (ticket) return ticket;
  }
  ring.AwaitSlot();
  return std::nullopt;
}

}  // namespace rknnd::client
