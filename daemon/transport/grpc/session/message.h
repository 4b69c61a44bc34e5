// Messages of remote.proto, from and to bytes. What comes in was written by a
// peer on some network: it is bounded and taken apart here, and believed by
// nobody. Large data is not copied on its way in (it stays in gRPC's slices)
// and once on its way out (from the memory it is in, to where it is sent from).
// Used by tunnel.h, stream.h and outbox.h. Thread: any.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_MESSAGE_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/wire/frame.h"
#include "proto/wire/ring.h"

namespace rknnd::transport {

// Data of one message, and what may be around it.
inline constexpr size_t kMaxRemoteData = size_t{1} << 20;
inline constexpr size_t kMaxRemoteMessage = kMaxRemoteData + (size_t{64} << 10);
// Bodies above it are attached.
inline constexpr size_t kMaxRemoteBody = size_t{256} << 10;
// A model, the one whose weights it shares, and the body.
inline constexpr size_t kMaxAttachments = 3;

// Bytes that lie in several places.
using Pieces = std::vector<std::span<const std::byte>>;

struct RemoteFrame {
  wire::Frame frame;  // without fds
  std::vector<uint64_t> attachments;
  bool body_attached = false;
};

struct RemoteChunk {
  uint32_t request = 0;
  uint64_t size = 0;
  Pieces data;  // into the message, or into `copy`
  std::unique_ptr<std::string> copy;
};

struct RemoteData {
  uint32_t buffer = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  Pieces data;  // into the message, or into `copy`
  std::unique_ptr<std::string> copy;
};

struct RemoteRange {
  uint32_t buffer = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct RemoteRun {
  wire::Submission submission{};
  std::vector<RemoteData> inputs;
  std::vector<RemoteRange> outputs;
};

struct RemotePing {
  uint64_t token = 0;
};

using FromClient =
    std::variant<RemoteFrame, RemoteChunk, RemoteData, RemoteRun, RemotePing>;

// A ToDaemon that lies in `message`, which the result points into.
// INVALID_ARGUMENT for what is none, or has more in it than it may.
absl::StatusOr<FromClient> ParseToDaemon(const Pieces& message);

// A ToClient as it is sent.
struct OutgoingBytes {
  std::unique_ptr<std::byte[]> bytes;
  size_t size = 0;
};

struct RemoteRunEnd {
  uint32_t slot = 0;
  uint32_t sequence = 0;
  int32_t code = 0;
  std::string_view text;
  uint64_t frame = 0;
  uint64_t queue_ns = 0;
  uint64_t run_ns = 0;
  uint64_t total_ns = 0;
  uint32_t core = 0;
  uint32_t drops = 0;
  uint32_t count = 0;
};

// Where data is to be put into a message before it is sent: one for each range,
// or the one, of the size that was asked for.
using Places = std::vector<std::span<std::byte>>;

OutgoingBytes MakeFrame(const RemoteFrame& frame);
OutgoingBytes MakeChunk(uint32_t request, size_t size, Places* places);
OutgoingBytes MakeRead(const RemoteRange& range, Places* places);
OutgoingBytes MakeRunEnd(const RemoteRunEnd& end,
                         std::span<const RemoteRange> outputs, Places* places);
OutgoingBytes MakePong(uint64_t token);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_MESSAGE_H_
