#include "tests/integration/harness/http2_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace rknnd::integration {

std::string EncodeHttp2(Http2Frame type, uint8_t flags, uint32_t stream,
                        const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) {
    frame.push_back(static_cast<char>(payload.size() >> shift & 0xff));
  }
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) {
    frame.push_back(static_cast<char>(stream >> shift & 0xff));
  }
  return frame + payload;
}

std::string EncodeHeader(const std::string& name, const std::string& value) {
  std::string header(1, '\0');
  for (const std::string* text : {&name, &value}) {
    size_t size = text->size();
    if (size < 127) {
      header.push_back(static_cast<char>(size));
    } else {
      header.push_back(127);
      for (size -= 127; size >= 128; size /= 128) {
        header.push_back(static_cast<char>(size % 128 + 128));
      }
      header.push_back(static_cast<char>(size));
    }
    header += *text;
  }
  return header;
}

std::string EncodeCall(const std::string& path) {
  // POST, http
  return "\x83\x86" + EncodeHeader(":path", path) +
         EncodeHeader(":authority", "test") +
         EncodeHeader("content-type", "application/grpc") +
         EncodeHeader("te", "trailers");
}

Http2Client::Http2Client(uint16_t port)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address),
                    sizeof address),
            0);
  const std::string begin = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
                            EncodeHttp2(Http2Frame::kSettings, 0, 0);
  EXPECT_EQ(send(fd_.get(), begin.data(), begin.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(begin.size()));
}

bool Http2Client::Read() {
  std::array<char, 65536> bytes;
  const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got <= 0) return got < 0 && errno == EAGAIN;
  constexpr size_t kLast = 64;
  if (heard_.size() > kLast) heard_.erase(0, heard_.size() - kLast);
  heard_.append(bytes.data(), static_cast<size_t>(got));
  return true;
}

void Http2Client::Flood(const std::function<std::string()>& next, bool listens,
                        int patience) {
  const std::string last = "the last";
  const std::string seen = EncodeHttp2(Http2Frame::kPing, kHttp2Ack, 0, last);
  bool all = false;
  std::string kept;
  for (;;) {
    if (kept.empty() && !all) {
      kept = next();
      all = kept.empty();
      if (all) kept = EncodeHttp2(Http2Frame::kPing, 0, 0, last);
    }
    if (kept.empty() && !listens) return;
    const int events = (kept.empty() ? 0 : POLLOUT) | (listens ? POLLIN : 0);
    pollfd ready{fd_.get(), static_cast<short>(events), 0};
    if (poll(&ready, 1, patience) <= 0) return;
    if ((ready.revents & POLLIN) != 0) {
      if (!Read() || heard_.find(seen) != std::string::npos) return;
    }
    if ((ready.revents & (POLLERR | POLLHUP)) != 0) return;
    if ((ready.revents & POLLOUT) == 0) continue;
    const ssize_t sent =
        send(fd_.get(), kept.data(), kept.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN) continue;
      return;
    }
    kept.erase(0, static_cast<size_t>(sent));
  }
}

}  // namespace rknnd::integration
