// Kinds and flags of HTTP/2's frames, as RFC 9113 numbers them.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_HTTP2_FRAMES_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_HTTP2_FRAMES_H_

#include <cstdint>

namespace rknnd::transport::http2 {

enum Http2Type : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPush = 5,
  kPing = 6,
  kGoaway = 7,
  kWindow = 8,
  kContinuation = 9,
};
inline constexpr uint8_t kAck = 1;
inline constexpr uint8_t kEndStream = 1;
inline constexpr uint8_t kEndHeaders = 4;
inline constexpr uint8_t kPadded = 8;

}  // namespace rknnd::transport::http2

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_HTTP2_FRAMES_H_
