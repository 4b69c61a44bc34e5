// The sets of bindings of one context, so that a frame can be filled while
// another one is computed. Changed by the session with numbers that a client
// chose; jobs see snapshots of it.

#ifndef DAEMON_CORE_CONTEXTS_BINDING_SETS_H_
#define DAEMON_CORE_CONTEXTS_BINDING_SETS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/contexts/binding_set.h"
#include "daemon/core/memory/buffer_table.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// All sets as a run sees them, by number. A set that has nothing of its own
// costs nothing here: it is set 0.
class BindingSnapshot {
 public:
  BindingSnapshot() = default;
  explicit BindingSnapshot(std::shared_ptr<const BindingSet> first)
      : first_(std::move(first)) {}

  // `set` is below kBindingSets.
  [[nodiscard]] const std::shared_ptr<const BindingSet>& Of(
      uint32_t set) const {
    return set == 0 || set > others_.size() || others_[set - 1] == nullptr
               ? first_
               : others_[set - 1];
  }

 private:
  friend class BindingSets;

  std::shared_ptr<const BindingSet> first_;
  std::vector<std::shared_ptr<const BindingSet>> others_;
};

// What a set does not bind itself is as in set 0, from which it follows every
// change. Shapes and internal memory are one for all sets. Memory of a set that
// a change of shape made too small is gone, and set 0's does not take its
// place: a program that thought to write there would meet another frame.
//
// Thread: loop.
class BindingSets {
 public:
  BindingSets() = default;
  explicit BindingSets(std::shared_ptr<const BindingSet> first)
      : now_(std::move(first)) {}

  // A change that is refused leaves all as it is. `buffer` null takes a
  // binding away: what set 0 has shows again.
  absl::Status Bind(const BindRequest& request, std::shared_ptr<Buffer> buffer);
  absl::Status BindFrame(const FrameRequest& request, PlaneBuffers buffers);
  absl::Status SetInternal(const MemoryRequest& request,
                           std::shared_ptr<Buffer> buffer);
  void ChooseRow(uint32_t row);
  // Takes away every binding of `buffer`, in all sets; `context` is for the
  // messages.
  void Unbind(uint32_t context, const Buffer* buffer);

  [[nodiscard]] const BindingSet& first() const { return *now_.first_; }
  [[nodiscard]] const BindingSnapshot& snapshot() const { return now_; }
  // How often `buffer` is bound, in all sets.
  [[nodiscard]] uint32_t Count(const Buffer* buffer) const;

 private:
  // OK when `set` is one.
  [[nodiscard]] static absl::Status CheckSet(uint32_t set, uint32_t context);
  // Set 0 is `first` from now on; the others follow.
  void ChangeFirst(std::shared_ptr<const BindingSet> first);
  // Set `set` is `changed` from now on, whose tensor is `own` or set 0's.
  void Change(uint32_t set, std::shared_ptr<const BindingSet> changed,
              driver::Direction direction, uint32_t index, bool own);

  BindingSnapshot now_;
  // What each set from 1 on binds itself; as long as now_.others_.
  std::vector<TensorChoice> own_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_CONTEXTS_BINDING_SETS_H_
