// See the header. A request comes from admin.sock, whose peers may do worse
// than open a wrong share socket; it is checked so that their mistakes have a
// name.

#include "daemon/transport/session/share_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/transport/session/event_log.h"
#include "proto/wire/codec.h"

namespace rknnd::transport {
namespace {

constexpr size_t kLongestName = 64;

absl::Status CheckName(std::string_view name) {
  const bool good =
      !name.empty() && name.size() <= kLongestName &&
      std::all_of(name.begin(), name.end(), [](unsigned char letter) {
        return std::isalnum(letter) != 0 || letter == '.' || letter == '_' ||
               letter == '-';
      });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a share socket's name is '", Printable(name), "', must be 1 to ",
      kLongestName, " letters, digits, '.', '_' or '-'"));
}

absl::StatusOr<int> Option(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  if (getsockopt(fd, SOL_SOCKET, option, &value, &size) != 0) {
    return base::ToStatus(
        base::ErrnoError(errno, "look at a share socket's socket"));
  }
  return value;
}

// A listening socket of our kind, which does not block: an accept() that waits
// would hold up everybody.
absl::Status PrepareListener(int fd) {
  constexpr char kWanted[] =
      ": it must be a listening Unix socket of kind SEQPACKET";
  const auto domain = Option(fd, SO_DOMAIN);
  if (!domain.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(domain.status().message()), kWanted));
  }
  RKNND_ASSIGN_OR_RETURN(const int type, Option(fd, SO_TYPE));
  RKNND_ASSIGN_OR_RETURN(const int listening, Option(fd, SO_ACCEPTCONN));
  if (*domain != AF_UNIX || type != SOCK_SEQPACKET || listening == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a share socket's socket is of another kind", kWanted));
  }
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return base::ToStatus(
        base::ErrnoError(errno, "prepare a share socket's socket"));
  }
  return absl::OkStatus();
}

absl::Status NoShareSockets() {
  return absl::UnimplementedError(
      "share sockets are opened on admin.sock of rknnd: their sockets cannot "
      "come over a network, nor into a program");
}

}  // namespace

ShareSocketRequests::~ShareSocketRequests() {
  for (const Opened& share_socket : opened_)
    owner_->StopShareSocket(share_socket.number);
}

Reply ShareSocketRequests::Open(wire::Frame request) {
  if (owner_ == nullptr) return Failure(NoShareSockets());
  const auto message = Decoded<wire::ShareSocket>(request);
  if (!message.ok()) return Failure(message.status());
  const std::string name = message->name;
  if (auto named = CheckName(name); !named.ok()) return Failure(named);
  if (request.fds.empty()) {
    return Failure(absl::InvalidArgumentError(absl::StrCat(
        "share socket '", name, "' came without its listening socket")));
  }
  if (message->weight > core::SharePolicy::kMostWeight) {
    return Failure(absl::InvalidArgumentError(absl::StrCat(
        "share socket '", name, "' has a weight of ", message->weight,
        ", the most is ", core::SharePolicy::kMostWeight)));
  }
  base::UniqueFd listener = std::move(request.fds[0]);
  if (auto good = PrepareListener(listener.get()); !good.ok()) {
    return Failure(absl::Status(
        good.code(), absl::StrCat("share socket '", name,
                                  "': ", std::string(good.message()))));
  }
  const auto known = std::find_if(
      opened_.begin(), opened_.end(),
      [&](const Opened& share_socket) { return share_socket.name == name; });
  if (known == opened_.end() && opened_.size() >= kMost) {
    return Failure(absl::ResourceExhaustedError(
        absl::StrCat("this connection has opened ", kMost,
                     " share sockets, and no connection may have more")));
  }
  auto allocation = std::make_shared<core::Allocation>();
  allocation->name = name;
  if (message->weight != 0) allocation->share.weight = message->weight;
  allocation->limits.memory = message->memory;
  allocation->limits.contexts = message->contexts;
  allocation->limits.buffers = message->buffers;
  allocation->limits.sessions = message->sessions;
  allocation->limits.queue = message->queue;
  auto opened =
      owner_->OpenShareSocket(std::move(listener), std::move(allocation));
  if (!opened.ok()) return Failure(opened.status());
  if (known == opened_.end()) {
    opened_.push_back({name, *opened});
  } else {
    known->number = *opened;
  }
  return Answer(wire::Empty{});
}

Reply ShareSocketRequests::Close(const wire::Frame& request) {
  if (owner_ == nullptr) return Failure(NoShareSockets());
  const auto message = Decoded<wire::CloseShareSocket>(request);
  if (!message.ok()) return Failure(message.status());
  const std::string name = message->name;
  if (auto named = CheckName(name); !named.ok()) return Failure(named);
  std::erase_if(opened_, [&](const Opened& share_socket) {
    return share_socket.name == name;
  });
  owner_->CloseShareSocket(name);
  return Answer(wire::Empty{});
}

}  // namespace rknnd::transport
