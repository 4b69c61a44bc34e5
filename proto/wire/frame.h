// One message of the session socket: a fixed header and a nanopb body
// (rknnd/v1/session.proto) in one SOCK_SEQPACKET datagram of at most 64 KiB,
// with the fds that belong to it. A body above kMaxInlineBody travels as a
// sealed memfd beside its header. Used by both ends; each takes the other's
// bytes for hostile.

#ifndef PROTO_WIRE_FRAME_H_
#define PROTO_WIRE_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/posix/socket.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::wire {

inline constexpr size_t kMaxDatagram = 64 * 1024;
inline constexpr size_t kMaxInlineBody = 32 * 1024;
// A reply in a memfd: the report of a full board is far below that; a length
// above it is a broken peer.
inline constexpr size_t kMaxMemfdBody = 16 * 1024 * 1024;

inline constexpr uint32_t kProtocolMinimum = 1;
inline constexpr uint32_t kProtocolCurrent = 1;

enum class Verb : uint16_t {
  kHello = 1,
  kCreateContext = 2,
  kUploadModel = 3,
  kDestroyContext = 4,
  kSetCoreMask = 5,
  kBind = 6,
  kAllocateBuffer = 7,
  kImportBuffer = 8,
  kReleaseBuffer = 9,
  kMemorySize = 10,
  kPerfDetail = 11,
  kReport = 12,
  kSetShapes = 13,
  kSetInternalMemory = 14,
  kSetWeightMemory = 15,
  kImportPhysical = 16,
  kBindFrame = 17,
  kRegisterFence = 18,
  kReleaseFence = 19,
  kDump = 20,
  kSyncBuffer = 21,
  kSetQueue = 22,
  kAdmit = 23,
  kTrace = 24,
  kBufferKey = 25,
  kDoctor = 26,
  kClocks = 27,
  kFollowLogs = 28,
  // Verbs from 100 change things for others: admin.sock only.
  kDrain = 100,
  kSetFault = 101,
  kListFaults = 102,
  kClearFault = 103,
  kLease = 104,
  kReset = 105,
  kSetLogLevel = 106,
  kPinClocks = 107,
  kOpenShareSocket = 108,
  kCloseShareSocket = 109,
  kUndoDrain = 110,
  kQuarantine = 111,
  // Sent by the daemon unasked; request is 0.
  kLogEvent = 200,
  kLogLine = 201,
};

enum class FrameKind : uint16_t { kRequest = 0, kReply = 1, kEvent = 2 };

struct FrameHeader {
  uint32_t size;  // of the body, in the datagram or in the memfd
  uint16_t verb;
  uint16_t kind;
  uint32_t request;  // chosen by the client, repeated in the reply
  int32_t code;      // replies: base::Code; the body of a failure is an Error
  uint32_t flags;    // kBodyInMemfd
  uint32_t reserved;
};
static_assert(sizeof(FrameHeader) == 24);

inline constexpr uint32_t kBodyInMemfd = 1;  // the last fd is the body

struct Frame {
  Verb verb = Verb::kHello;
  FrameKind kind = FrameKind::kRequest;
  uint32_t request = 0;
  base::Code code = base::Code::kOk;
  std::vector<std::byte> body;
  std::vector<base::UniqueFd> fds;
};

// Sends one frame; a large body goes into a memfd of its own. The frame's fds
// stay the caller's. Errors as base::SendMessage.
base::Expected<void> SendFrame(int socket, const Frame& frame,
                               base::Block block);

struct FrameResult {
  enum class Kind { kFrame, kWouldBlock, kEndOfFile } kind;
  Frame frame;  // valid for kFrame
};

// Receives one frame. kDataLoss for anything that is no frame of this
// protocol: the connection is of no further use then.
base::Expected<FrameResult> ReceiveFrame(int socket, base::Block block);

}  // namespace rknnd::wire

#endif  // PROTO_WIRE_FRAME_H_
