// A client that speaks HTTP/2 frame by frame, for tests of peers that no
// library of HTTP/2 would be: it sends what it is told, whatever comes back.

#ifndef TESTS_INTEGRATION_HARNESS_HTTP2_CLIENT_H_
#define TESTS_INTEGRATION_HARNESS_HTTP2_CLIENT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/posix/unique_fd.h"

namespace rknnd::integration {

enum class Http2Frame : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kContinuation = 9,
};

inline constexpr uint8_t kHttp2Ack = 1;
inline constexpr uint8_t kHttp2EndStream = 1;
inline constexpr uint8_t kHttp2EndHeaders = 4;

std::string EncodeHttp2(Http2Frame type, uint8_t flags, uint32_t stream,
                        const std::string& payload = "");
// A header as HPACK has it, without tables.
std::string EncodeHeader(const std::string& name, const std::string& value);
// The headers of a call of gRPC; `path`: "/grpc.health.v1.Health/Check".
std::string EncodeCall(const std::string& path);

// Thread: any, one at a time.
class Http2Client {
 public:
  // Over TCP on this machine; the preface and settings have been sent.
  explicit Http2Client(uint16_t port);

  // Sends what `next` makes, until that is nothing, the peer ends the
  // connection, or it has taken no byte for `patience` milliseconds.
  // `listens`: what comes back is read, until the last
  // that was sent has been seen to, which the answer to a PING tells.
  void Flood(const std::function<std::string()>& next, bool listens,
             int patience);

 private:
  // False: the connection has ended.
  bool Read();

  base::UniqueFd fd_;
  std::string heard_;  // the last of it
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_HTTP2_CLIENT_H_
