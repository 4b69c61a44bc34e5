// What started runs keep: a run has the bindings of its start, also when it is
// put to another daemon, or to the same one once more, after its context was
// bound anew. Called on the program's threads.

#include <algorithm>
#include <iterator>
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

Expected<void> SessionTarget::BindFor(Connection& connection,
                                      const Flight& flight, bool now) {
  const uint32_t context = flight.job.context;
  const auto record = contexts_.find(context);
  if (record == contexts_.end()) return {};
  std::vector<Port> ports;
  for (const Rebinding& kept : rebindings_) {
    if (kept.context != context || kept.serial <= flight.bound_at) continue;
    if (kept.port.set != 0 && kept.port.set != flight.job.set) continue;
    if (std::find(ports.begin(), ports.end(), kept.port) != ports.end()) {
      continue;
    }
    ports.push_back(kept.port);
  }
  for (const Port& port : ports) {
    Bound bound = now ? BoundNow(record->second, port)
                      : BoundThen(flight, record->second, port);
    // What a set did not bind was as in set 0.
    if (bound.index() == 0 && !now && port.set != 0) {
      bound =
          BoundThen(flight, record->second, {0, port.direction, port.index});
    }
    Expected<void> done;
    if (auto* frame = std::get_if<FrameBinding>(&bound)) {
      frame->set = port.set;
      done = BindFrameOn(connection, context, port.index, *frame);
    } else if (const auto* binding = std::get_if<Binding>(&bound)) {
      done = BindOn(connection, context, port, *binding);
    }
    if (!done.ok()) return done;
  }
  return {};
}

bool SessionTarget::LaunchAsBound(Connection& connection, Flight& flight) {
  if (!IsOutdated(flight)) return Launch(flight);
  const Expected<void> bound = BindFor(connection, flight, false);
  bool launched = false;
  if (bound.ok()) {
    launched = Launch(flight);
  } else if (!connection.broken()) {
    const auto notice = notices_.find(flight.job.notify);
    End(flight, bound.error().code,
        "rknnd went away, and what the run was bound to cannot be bound "
        "again: " +
            bound.error().message);
    if (notice != notices_.end()) notice->second->Remind();
    launched = true;
  }
  // The daemon reads the ring before it hears this.
  const Expected<void> back = BindFor(connection, flight, true);
  if (!back.ok() && !connection.broken()) {
    Log(LogLevel::kError, "a context could not be bound again as it was: " +
                              back.error().message);
  }
  return launched;
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
  if (const auto connection = Current()) {
    const base::MutexLock lock(flights_mutex_);
    const base::Nanoseconds now = clock_.Now();
    for (size_t i = 0; i < flights_.size() && flying_on_ == connection;) {
      Flight& flight = *flights_[i];
      if (flight.state == Flight::State::kWaiting &&
          (flight.retry_at > now || !LaunchAsBound(*connection, flight))) {
        break;
      }
      if (i < flights_.size() && flights_[i] == &flight) ++i;
    }
  }
  GiveTurn();
}

}  // namespace rknnd::client
