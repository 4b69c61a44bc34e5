// What the contexts of a remote session are bound to, learnt from the frames
// that the daemon accepted: a run sends the bytes of its inputs and asks for
// those of its outputs, and no byte beside them, which may be another tensor's.
// Used by a bridge on its thread.

#ifndef CLIENT_REMOTE_BINDINGS_H_
#define CLIENT_REMOTE_BINDINGS_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "client/remote/local_buffer.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

// The session's buffers, by number.
using LocalBuffers = std::map<uint32_t, std::shared_ptr<LocalBuffer>>;

// Bytes that travel.
struct BoundRange {
  uint32_t buffer = 0;
  std::shared_ptr<LocalBuffer> memory;
  uint64_t offset = 0;
  uint64_t size = 0;
};

// One input or output that has memory.
struct BoundPort {
  std::variant<wire::Bind, wire::BindFrame> request;   // as it was bound
  std::array<std::shared_ptr<LocalBuffer>, 2> memory;  // of its planes
};
using BoundPortRef = std::shared_ptr<const BoundPort>;

// Thread: bridge.
class Bindings {
 public:
  // After the daemon's yes.
  void Created(uint32_t context, wire::ContextInfo info);
  void ChoseShapes(uint32_t context, wire::ContextInfo info);
  void Destroyed(uint32_t context) { contexts_.erase(context); }
  void Bound(const wire::Bind& request, const LocalBuffers& buffers);
  void BoundFrame(const wire::BindFrame& request, const LocalBuffers& buffers);

  // What a run on that set works on from now on.
  [[nodiscard]] std::vector<BoundPortRef> Of(uint32_t context,
                                             uint32_t set) const;
  // How often the context's shapes were chosen.
  [[nodiscard]] uint32_t shapes(uint32_t context) const;

  struct Ranges {
    std::vector<BoundRange> inputs, outputs;
  };
  [[nodiscard]] Ranges RangesOf(uint32_t context,
                                const std::vector<BoundPortRef>& ports) const;

 private:
  // Outputs behind inputs.
  using Port = std::pair<bool, uint32_t>;
  struct Context {
    wire::ContextInfo info;
    uint32_t shapes = 0;
    // By set. What a set does not bind itself is as in set 0.
    std::map<uint32_t, std::map<Port, BoundPortRef>> sets;
  };

  std::map<uint32_t, Context> contexts_;
};

// Bytes from a tensor's first to its last in memory that was bound like this.
// `native`: its attributes as the NPU has it.
uint64_t TensorExtent(const wire::TensorAttr& tensor,
                      const wire::TensorAttr& native,
                      const wire::Bind& binding);

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_BINDINGS_H_
