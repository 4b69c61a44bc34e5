// What a context's inputs and outputs are bound to, in each of its sets of
// bindings. What a set leaves unbound is set 0's.

#ifndef CLIENT_RKNNRT_CONTEXT_PORT_TABLE_H_
#define CLIENT_RKNNRT_CONTEXT_PORT_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client/include/rknnd.h"
#include "client/rknnrt/buffer.h"
#include "client/rknnrt/context/run_record.h"
#include "client/rknnrt/outcome.h"
#include "client/session/target.h"

namespace rknnd::client {

// Whose memory an input or output has: the library's own (rknn_inputs_set made
// it, or a run for an output left unbound), or the program's (rknn_set_io_mem).
enum class PortSource : uint8_t { kNone, kOwn, kProgram };

struct Port {
  PortSource source = PortSource::kNone;
  Binding binding;
  std::optional<FrameBinding> frame;  // instead
  // The library's own memory, where `binding` lies in it.
  std::shared_ptr<Buffer> own;
  // Bytes that the device converts in each run.
  uint64_t converted = 0;
  // Bound before the shape changed: the target may have taken it away.
  bool stale = false;
};

// Thread: under its context's lock.
class PortTable {
 public:
  // The sets whose inputs are in the second bank (own_memory.h).
  static constexpr std::array<uint32_t, 2> kSecondBank = {1, 3};

  // Of the context `number` of `target`, which outlives it.
  PortTable(Target& target, uint32_t number,
            std::shared_ptr<const ModelDescription> shape);

  // What tensors are taken to be.
  [[nodiscard]] const ModelDescription& shape() const { return *shape_; }
  [[nodiscard]] const std::shared_ptr<const ModelDescription>& shared_shape()
      const {
    return shape_;
  }
  // Data of another shape is no data; memory of the program's own stays bound
  // where it is large enough, and where it is not the next run says so.
  void SetShape(std::shared_ptr<const ModelDescription> shape);

  [[nodiscard]] uint32_t inputs() const {
    return static_cast<uint32_t>(sets_[0].inputs.size());
  }
  [[nodiscard]] uint32_t outputs() const {
    return static_cast<uint32_t>(sets_[0].outputs.size());
  }
  // That of the set alone.
  Port& At(uint32_t set, Direction direction, uint32_t index);
  // The one that a run on `set` has.
  [[nodiscard]] const Port& Of(uint32_t set, Direction direction,
                               uint32_t index) const;
  // The first that a run on `set` would find without memory.
  [[nodiscard]] std::optional<uint32_t> FirstUnbound(uint32_t set,
                                                     Direction direction) const;
  // No memory of the program's is in set 0.
  [[nodiscard]] bool IsAllOwn() const;
  [[nodiscard]] Conversions ConversionsOf(uint32_t set) const;

  // Nothing where it is bound so already. Its `own` is the caller's to set.
  Outcome Bind(Direction direction, uint32_t index, PortSource source,
               const Binding& binding);
  // The program's, in place of memory of our own in the second bank, too.
  Outcome BindOfProgram(Direction direction, uint32_t index, Binding binding);
  Outcome BindFrame(uint32_t index, FrameBinding binding);

  void Clear();

 private:
  struct PortSet {
    std::vector<Port> inputs, outputs;
    std::vector<Port>& of(Direction direction) {
      return direction == Direction::kInput ? inputs : outputs;
    }
    [[nodiscard]] const std::vector<Port>& of(Direction direction) const {
      return direction == Direction::kInput ? inputs : outputs;
    }
  };

  [[nodiscard]] bool HasOwnInput(uint32_t set, uint32_t index) const;
  [[nodiscard]] uint64_t ConvertedBytes(Direction direction, uint32_t index,
                                        const Binding& binding) const;

  Target& target_;
  const uint32_t number_;
  std::shared_ptr<const ModelDescription> shape_;
  // Set 0 is whole; the others are empty, or have what differs from it.
  std::array<PortSet, RKNND_SETS> sets_;
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CONTEXT_PORT_TABLE_H_
