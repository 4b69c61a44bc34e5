// What started runs keep: a run has the bindings of its start, also when it is
// put to another daemon, or to the same one once more, after its context was
// bound anew. This remembers what was bound before each such change, for as
// long as a run on its way was started before it.

#ifndef CLIENT_SESSION_BINDING_HISTORY_H_
#define CLIENT_SESSION_BINDING_HISTORY_H_

#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "client/session/record.h"
#include "client/target/types.h"

namespace rknnd::client {

// What a port is bound to, or nothing.
using BoundMemory = std::variant<std::monostate, Binding, FrameBinding>;
BoundMemory BoundNow(const ContextRecord& record, const PortKey& port);

// Thread: its owner's, which locks.
class BindingHistory {
 public:
  // A run, as far as its bindings are concerned.
  struct Start {
    uint32_t context = 0;
    uint32_t set = 0;
    uint64_t serial = 0;  // last() of when it was started
  };

  // The number of the last change; 0: none was kept yet.
  [[nodiscard]] uint64_t last() const { return last_; }

  // A port of the context in `record` is about to be bound anew. `runs` are on
  // their way, of all contexts; what none of them needs is forgotten. Whether
  // the change was kept: nobody saw what was bound since the last one, else.
  bool Keep(uint32_t context, const PortKey& port, const ContextRecord& record,
            std::span<const Start> runs);

  // Whether something else is bound now than when the run was started.
  [[nodiscard]] bool IsOutdated(const Start& run) const;

  // What was bound when the run was started, where that is not bound now.
  using PortsThen = std::vector<std::pair<PortKey, BoundMemory>>;
  [[nodiscard]] PortsThen BindingsOf(const Start& run,
                                     const ContextRecord& record) const;

 private:
  struct Change {
    uint32_t context = 0;
    PortKey port;
    BoundMemory before;
    uint64_t serial = 0;  // for runs with a smaller one
  };

  [[nodiscard]] BoundMemory BoundThen(const Start& run,
                                      const ContextRecord& record,
                                      const PortKey& port) const;

  std::vector<Change> changes_;  // in the order of their serials
  uint64_t last_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_BINDING_HISTORY_H_
