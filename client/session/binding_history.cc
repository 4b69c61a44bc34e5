// See the header. Runs on the program's threads, with the lock of the started
// runs.

#include "client/session/binding_history.h"

#include <algorithm>

namespace rknnd::client {

BoundMemory BoundNow(const ContextRecord& record, const PortKey& port) {
  const auto frame = record.frames.find(port);
  if (frame != record.frames.end()) return frame->second;
  const auto binding = record.bindings.find(port);
  if (binding != record.bindings.end()) return binding->second;
  return {};
}

bool BindingHistory::Keep(uint32_t context, const PortKey& port,
                          const ContextRecord& record,
                          std::span<const Start> runs) {
  std::erase_if(changes_, [&](const Change& kept) {
    return std::none_of(runs.begin(), runs.end(), [&](const Start& run) {
      return run.context == kept.context && run.serial < kept.serial;
    });
  });
  uint64_t last = 0;
  for (const Change& kept : changes_) {
    if (kept.context == context && kept.port == port) last = kept.serial;
  }
  const bool seen =
      std::any_of(runs.begin(), runs.end(), [&](const Start& run) {
        return run.context == context && run.serial >= last;
      });
  if (!seen) return false;
  changes_.push_back({context, port, BoundNow(record, port), ++last_});
  return true;
}

BoundMemory BindingHistory::BoundThen(const Start& run,
                                      const ContextRecord& record,
                                      const PortKey& port) const {
  for (const Change& kept : changes_) {
    if (kept.context == run.context && kept.port == port &&
        kept.serial > run.serial) {
      return kept.before;
    }
  }
  return BoundNow(record, port);
}

bool BindingHistory::IsOutdated(const Start& run) const {
  return std::any_of(changes_.begin(), changes_.end(), [&](const Change& kept) {
    return kept.context == run.context && kept.serial > run.serial &&
           (kept.port.set == 0 || kept.port.set == run.set);
  });
}

BindingHistory::PortsThen BindingHistory::BindingsOf(
    const Start& run, const ContextRecord& record) const {
  PortsThen ports;
  for (const Change& kept : changes_) {
    if (kept.context != run.context || kept.serial <= run.serial) continue;
    if (kept.port.set != 0 && kept.port.set != run.set) continue;
    const PortKey& port = kept.port;
    if (std::any_of(ports.begin(), ports.end(),
                    [&](const auto& other) { return other.first == port; })) {
      continue;
    }
    BoundMemory bound = kept.before;
    // What a set did not bind was as in set 0.
    if (bound.index() == 0 && port.set != 0) {
      bound = BoundThen(run, record, {0, port.direction, port.index});
    }
    ports.emplace_back(port, std::move(bound));
  }
  return ports;
}

}  // namespace rknnd::client
