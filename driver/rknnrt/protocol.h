// What the daemon and a worker process that hosts the vendor's library say to
// each other: orders over a SOCK_SEQPACKET pair, jobs over shared memory.
//
//   daemon                                    worker
//   OrderMessage (and fds)  -- socket -->     one after the other, main thread
//                           <-- socket --     AnswerMessage; what is long
//                                             lies in SharedArea::mailbox
//   RunRecord, Submission   -- lane    -->    one thread for each lane
//                           <-- lane   --     Completion
//
// A lane is a submission ring (proto/wire/ring.h) for the jobs whose lowest
// core has its number: at most one at a time. Both ends are the same program,
// so that structures need no encoding. The daemon takes all that a worker
// writes for hostile: it copies before it looks, and checks the copy. A worker
// is given no descriptor but those that it needs, and gives none.

#ifndef DRIVER_RKNNRT_PROTOCOL_H_
#define DRIVER_RKNNRT_PROTOCOL_H_

#include <cstddef>
#include <cstdint>

#include "proto/wire/ring.h"
#include "rknn_api.h"

namespace rknnd::rknnrt {

// A worker finds its end of the socket here.
inline constexpr int kWorkerSocket = 3;
inline constexpr char kWorkerArgument[] = "--device-worker";

// Inputs and outputs of a model together. Models of published zoos have 13.
inline constexpr uint32_t kMostTensors = 64;
inline constexpr uint32_t kMostLanes = 8;
// Contexts that a lane has of a model: so many sets of memory are bound at
// once.
inline constexpr uint32_t kSets = 4;
// Shapes of a model with several, as in the vendor's header.
inline constexpr uint32_t kMostRows = RKNN_MAX_DYNAMIC_SHAPE_NUM;
inline constexpr size_t kMailboxBytes = size_t{16} << 20;
inline constexpr size_t kMostText = 512;

enum class Order : uint32_t {
  kOpen = 1,      // fd: the area
  kLoadModel,     // fd: the file. Answer: LoadedModel, and attributes
  kUnloadModel,   // has no answer
  kAddMemory,     // fd: of it, which begins at `offset` and has `size` bytes
  kForgetMemory,  // has no answer
  kCopyWeights,   // fd: of memory for them, `offset` and `size` likewise
};

struct OrderMessage {
  Order order = Order::kOpen;
  uint32_t serial = 0;
  uint32_t model = 0, memory = 0;
  uint32_t cores = 0;
  uint32_t reserved = 0;
  uint64_t offset = 0, size = 0;
  char name[256] = {};  // the model's, or the library's path
};

struct AnswerMessage {
  uint32_t serial = 0;
  int32_t code = 0;      // base::Code
  uint32_t payload = 0;  // bytes of the mailbox
  char text[kMostText] = {};
};

// The answer to kLoadModel; behind it attributes, for each shape: inputs,
// outputs, native inputs, native outputs.
struct LoadedModel {
  char api_version[RKNN_MAX_NAME_LEN];
  char driver_version[RKNN_MAX_NAME_LEN];
  char custom_string[1024];
  uint32_t inputs, outputs, rows;
  uint32_t weight_bytes, internal_bytes;
  uint32_t internal_outside;  // jobs bring it; else the library has its own
};

// One tensor that is bound, in memory that the worker was given before.
struct BoundTensor {
  uint32_t memory, bytes;
  uint64_t offset;  // in that memory
  uint32_t type, layout, w_stride, h_stride;
  uint32_t pass_through, native;  // native: by the native attribute

  friend bool operator==(const BoundTensor&, const BoundTensor&) = default;
};

// What the next run of a lane is bound to; read only if the entry says so.
struct RunRecord {
  uint32_t program, core_mask;
  uint32_t inputs, outputs;
  uint32_t internal, reserved;
  uint64_t internal_offset;
  BoundTensor tensors[kMostTensors];
};

// In a lane's ring, Submission::context is the model, `set` its context, and
// these are `flags`.
inline constexpr uint32_t kRunRebinds = 1;  // to what the record says

struct alignas(64) Lane {
  wire::Ring ring;
  RunRecord record;
};

struct SharedArea {
  Lane lanes[kMostLanes];
  alignas(64) std::byte mailbox[kMailboxBytes];
};
inline constexpr size_t kAreaBytes = (sizeof(SharedArea) + 4095) / 4096 * 4096;

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_PROTOCOL_H_
