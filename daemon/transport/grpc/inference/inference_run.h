// One inference on its way through the engine: what it needs of a model's
// contexts, how its inputs get into their memory, and who hears of its outputs.
//
//             Submit           a lane is free          the job ends
//   (caller) ------> waiting ----------------> filled ------------> finished
//                       |                        |                     ^
//                       +--deadline, cancelled,--+---------------------+
//                          full, draining, stop
//
// Finish is called once, whatever becomes of it.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_INFERENCE_RUN_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_INFERENCE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "daemon/core/memory/buffer_key.h"
#include "driver/tensor.h"

namespace rknnd::transport {

// What one input or output of a context is bound to: memory of the lane, or,
// where `region` is not 0, a part of a client's.
struct PortBinding {
  driver::TensorFormat format;
  uint64_t bytes = 0;
  uint64_t region = 0;  // Region::id
  uint64_t offset = 0;  // in the client's buffer
  friend bool operator==(const PortBinding&, const PortBinding&) = default;
};

struct LaneBindings {
  std::vector<PortBinding> inputs, outputs;
  friend bool operator==(const LaneBindings&, const LaneBindings&) = default;
};

struct NamedRegion {
  uint64_t id = 0;
  core::BufferKey key{};
};

// Where the time of a run went; the parts follow each other.
struct RunParts {
  base::Nanoseconds queue = 0, input = 0, run = 0, output = 0;
  uint32_t core = 0;
};

class InferenceRun {
 public:
  static constexpr base::Nanoseconds kNoDeadline =
      std::numeric_limits<base::Nanoseconds>::max();

  virtual ~InferenceRun() = default;

  // Written before Submit.
  uint32_t row = 0;
  LaneBindings bindings;
  std::vector<NamedRegion> regions;  // that the bindings name
  uint64_t priority = 0;             // the protocol's: 1 is first, 0 last
  std::string account;               // whose it is: accounts come in turn
  base::Nanoseconds deadline = kNoDeadline;  // of its begin, on the clock

  // Copies the inputs that are not in clients' memory; a span for each input,
  // empty where it is. Thread: the one that submits, or the engine's.
  virtual absl::Status Fill(std::span<const std::span<std::byte>> inputs) = 0;
  // A span for each output, likewise, for the call. Must not block. Thread:
  // any.
  virtual void Finish(const absl::Status& status, const RunParts& parts,
                      std::span<const std::span<const std::byte>> outputs) = 0;

  // Of its arrival, from 1 on; the engine's to say.
  void set_number(uint64_t number) { number_ = number; }

 private:
  friend class Engine;
  friend class RunQueue;
  base::Nanoseconds arrived_ = 0;
  uint64_t number_ = 0;  // also the job's frame number
  uint64_t round_ = 0;   // of turns, of the queue it waits in
  uint32_t attempts_ = 0;
  bool cancelled_ = false;
};

using InferenceRunPtr = std::shared_ptr<InferenceRun>;

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_INFERENCE_RUN_H_
