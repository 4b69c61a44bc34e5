// The addresses are an administrator's: wrong, perhaps, but not hostile.

#include "daemon/transport/grpc/relay/addresses.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/posix/socket.h"
#include "base/status/status.h"

namespace rknnd::transport {
namespace {

constexpr char kUnix[] = "unix:";
// Its peers are operators.
constexpr mode_t kUnixMode = 0600;

const sockaddr_in& V4(const sockaddr_storage& socket) {
  return reinterpret_cast<const sockaddr_in&>(socket);
}
const sockaddr_in6& V6(const sockaddr_storage& socket) {
  return reinterpret_cast<const sockaddr_in6&>(socket);
}

uint16_t PortOf(const sockaddr_storage& socket) {
  return ntohs(socket.ss_family == AF_INET6 ? V6(socket).sin6_port
                                            : V4(socket).sin_port);
}

void SetPort(sockaddr_storage& socket, uint16_t port) {
  if (socket.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(socket).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(socket).sin_port = htons(port);
  }
}

struct HostAndPort {
  std::string host, port;
};

absl::StatusOr<HostAndPort> Split(const std::string& address) {
  const absl::Status wrong = absl::InvalidArgumentError(absl::StrCat(
      "gRPC address '", address,
      "' must be HOST:PORT, [V6]:PORT or unix:PATH; port 0 lets the kernel "
      "choose"));
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return wrong;
  HostAndPort parts{address.substr(0, colon), address.substr(colon + 1)};
  uint32_t port = 0;
  if (!absl::SimpleAtoi(parts.port, &port) || port > 65535) return wrong;
  if (absl::StartsWith(parts.host, "[") && absl::EndsWith(parts.host, "]")) {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  } else if (absl::StrContains(parts.host, ":")) {
    // An IPv6 address without brackets: where its port begins is a guess.
    return wrong;
  }
  if (parts.host.empty()) return wrong;
  return parts;
}

absl::StatusOr<std::vector<GrpcAddress>> ResolveTcp(
    const std::string& address) {
  RKNND_ASSIGN_OR_RETURN(const HostAndPort parts, Split(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 &freeaddrinfo);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("host '", parts.host, "' of the gRPC address '", address,
                     "' is unknown: ", gai_strerror(error)));
  }
  std::vector<GrpcAddress> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    GrpcAddress& one = addresses.emplace_back();
    one.configured = address;
    one.size = at->ai_addrlen;
    std::memcpy(&one.socket, at->ai_addr, at->ai_addrlen);
  }
  if (addresses.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "host '", parts.host, "' has neither an IPv4 nor an IPv6 address"));
  }
  return addresses;
}

// "unix:/run/x" and, as gRPC's own names have it, "unix:///run/x".
absl::StatusOr<GrpcAddress> ParseUnix(const std::string& address) {
  GrpcAddress one;
  one.configured = address;
  one.path = address.substr(sizeof kUnix - 1);
  if (absl::StartsWith(one.path, "///")) one.path.erase(0, 2);
  if (one.path.size() < 2 || one.path.front() != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("gRPC address '", address,
                     "' must be 'unix:' and a path from the root"));
  }
  return one;
}

absl::StatusOr<GrpcListener> ListenOn(const GrpcAddress& address,
                                      base::Nanoseconds dead_after) {
  GrpcListener listener;
  if (address.local()) {
    RKNND_ASSIGN_OR_RETURN(
        listener.fd, base::ToStatusOr(base::ListenUnix(
                         address.path, kUnixMode, base::UnixKind::kStream)));
    listener.path = address.path;
    listener.name = absl::StrCat(kUnix, address.path);
    return listener;
  }
  RKNND_ASSIGN_OR_RETURN(
      listener.fd,
      base::ToStatusOr(base::ListenTcp(
          reinterpret_cast<const sockaddr*>(&address.socket), address.size,
          static_cast<unsigned>(dead_after / base::kMillisecond),
          NameOf(address.socket))));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&bound),
                  &size) != 0) {
    return base::ToStatus(base::ErrnoError(errno, "ask for a socket's name"));
  }
  listener.name = NameOf(bound);
  return listener;
}

}  // namespace

bool GrpcAddress::loopback() const {
  if (local()) return true;
  if (socket.ss_family == AF_INET) {
    return ntohl(V4(socket).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  const in6_addr& v6 = V6(socket).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
}

std::string NameOf(const sockaddr_storage& socket) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (socket.ss_family == AF_INET) {
    inet_ntop(AF_INET, &V4(socket).sin_addr, text.data(), text.size());
    return absl::StrCat("ipv4:", text.data(), ":", PortOf(socket));
  }
  if (socket.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &V6(socket).sin6_addr, text.data(), text.size());
    return absl::StrCat("ipv6:[", text.data(), "]:", PortOf(socket));
  }
  return kUnix;
}

absl::StatusOr<std::vector<GrpcAddress>> ResolveGrpcAddresses(
    const GrpcOptions& options) {
  std::vector<GrpcAddress> all;
  for (const std::string& address : options.addresses) {
    if (absl::StartsWith(address, kUnix)) {
      RKNND_ASSIGN_OR_RETURN(GrpcAddress one, ParseUnix(address));
      all.push_back(std::move(one));
      continue;
    }
    RKNND_ASSIGN_OR_RETURN(std::vector<GrpcAddress> some, ResolveTcp(address));
    for (GrpcAddress& one : some) {
      if (!one.loopback() && options.certificate.empty() && !options.insecure) {
        return absl::FailedPreconditionError(absl::StrCat(
            "gRPC address '", address,
            "' can be reached from other machines, and there is no encryption: "
            "set 'certificate' and 'key' under [grpc], listen on a loopback "
            "address, or, where everybody on the network may use and stop this "
            "NPU, start with --grpc-insecure"));
      }
      all.push_back(std::move(one));
    }
  }
  return all;
}

absl::StatusOr<std::vector<GrpcListener>> ListenOnAll(
    std::vector<GrpcAddress> addresses, base::Nanoseconds dead_after) {
  std::vector<GrpcListener> listeners;
  for (size_t i = 0; i < addresses.size(); ++i) {
    GrpcAddress& address = addresses[i];
    const bool same_host =
        i > 0 && addresses[i - 1].configured == address.configured;
    if (same_host && PortOf(address.socket) == 0) {
      SetPort(address.socket, PortOf(addresses[i - 1].socket));
    }
    auto listener = ListenOn(address, dead_after);
    if (!listener.ok()) {
      for (const GrpcListener& earlier : listeners) {
        if (!earlier.path.empty()) unlink(earlier.path.c_str());
      }
      return base::Annotate(
          listener.status(),
          absl::StrCat("gRPC address '", address.configured, "'"));
    }
    if (!address.local() && PortOf(address.socket) == 0) {
      const size_t colon = listener->name.rfind(':');
      uint32_t port = 0;
      if (absl::SimpleAtoi(listener->name.substr(colon + 1), &port)) {
        SetPort(address.socket, static_cast<uint16_t>(port));
      }
    }
    listeners.push_back(*std::move(listener));
  }
  return listeners;
}

}  // namespace rknnd::transport
