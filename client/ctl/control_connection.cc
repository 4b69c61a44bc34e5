#include "client/ctl/control_connection.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string_view>

#include "base/posix/mutex.h"
#include "base/posix/socket.h"
#include "client/session/remote_library.h"
#include "proto/wire/features.h"
#include "rknnd.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr const char* kDefaultTarget = "unix:/run/rknnd/session.sock";
// In the folder of the session socket.
constexpr const char* kAdminSocket = "admin.sock";

// The longest job ends long before; one that hangs, some day. Who does not want
// to wait so long ends rknnctl.
constexpr int64_t kLeaseTimeoutMs = 24 * 3'600'000LL;

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr std::string_view kTcp = "tcp://";

// Whom a connection's transfers are told to; nobody once that has gone.
struct Listener {
  base::Mutex mutex;
  ControlConnection::OnProgress tell RKNND_GUARDED_BY(mutex);

  static void Tell(void* user, const char* what, uint64_t done,
                   uint64_t total) {
    auto& self = *static_cast<Listener*>(user);
    const base::MutexLock lock(self.mutex);
    if (self.tell) self.tell(what, done, total);
  }
};

// Listeners stay until the process ends: rknnctl makes a few connections, and
// a thread that it does not see the end of may have one still.
Listener& NewListener(ControlConnection::OnProgress tell) {
  static auto* const kListeners = new std::vector<std::unique_ptr<Listener>>();
  kListeners->push_back(std::make_unique<Listener>());
  Listener& listener = *kListeners->back();
  const base::MutexLock lock(listener.mutex);
  listener.tell = std::move(tell);
  return listener;
}

Expected<std::string> SocketPath(const std::string& target) {
  if (target.starts_with("unix:") && target.size() > 5) return target.substr(5);
  if (target.starts_with("local:")) {
    return Error{Code::kInvalidArgument,
                 "target 'local:' has no daemon to ask: each process that uses "
                 "it has a stack of its own; name a daemon with --target "
                 "unix:PATH"};
  }
  return Error{Code::kInvalidArgument,
               "target '" + target +
                   "' is none: write unix:PATH, tcp://HOST:PORT or local:"};
}

}  // namespace

ControlConnection::Waited ControlConnection::Poll(int fd, int milliseconds) {
  pollfd wait{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready > 0 ? Waited::kReadable : Waited::kTimedOut;
}

Expected<ControlConnection> ControlConnection::Open(const std::string& target,
                                                    Wait wait,
                                                    OnProgress on_progress) {
  if (target.starts_with(kTcp)) {
    return OpenRemote(target.substr(kTcp.size()), std::move(wait),
                      std::move(on_progress));
  }
  const Expected<std::string> path =
      SocketPath(target.empty() ? kDefaultTarget : target);
  if (!path) return path.error();
  return OpenAt(*path, std::move(wait));
}

Expected<ControlConnection> ControlConnection::OpenAdmin(
    const std::string& target) {
  // The daemon knows what its peer may do.
  if (target.starts_with(kTcp)) {
    return OpenRemote(target.substr(kTcp.size()), Poll, {});
  }
  const Expected<std::string> path =
      SocketPath(target.empty() ? kDefaultTarget : target);
  if (!path) return path.error();
  const size_t slash = path->rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : path->substr(0, slash + 1);
  return OpenAt(folder + kAdminSocket, Poll);
}

Expected<ControlConnection> ControlConnection::OpenRemote(
    const std::string& address, Wait wait, OnProgress on_progress) {
  Listener* const listener =
      on_progress ? &NewListener(std::move(on_progress)) : nullptr;
  Expected<base::UniqueFd> socket = ConnectRemote(
      address, listener == nullptr ? nullptr : &Listener::Tell, listener);
  if (!socket) return std::move(socket).error();
  ControlConnection connection(*std::move(socket), std::move(wait));
  if (listener != nullptr) {
    connection.silencer_ = std::shared_ptr<void>(listener, [](void* silenced) {
      auto& told = *static_cast<Listener*>(silenced);
      const base::MutexLock lock(told.mutex);
      told.tell = nullptr;
    });
  }
  if (Expected<void> greeted = connection.Greet(); !greeted) {
    return std::move(greeted).error();
  }
  return connection;
}

Expected<ControlConnection> ControlConnection::OpenAt(const std::string& path,
                                                      Wait wait) {
  Expected<base::UniqueFd> socket = base::ConnectUnix(path);
  if (!socket) {
    // It may run: to start it would change nothing.
    if (socket.error().code == Code::kPermissionDenied) {
      return Error{socket.error().code,
                   "'" + path + "' is not for this user (" +
                       socket.error().message + ")" +
                       (path.ends_with(kAdminSocket)
                            ? ": what changes things for others is the "
                              "operators', as root by sudo rknnctl"
                            : "")};
    }
    return Error{socket.error().code,
                 "no rknnd daemon answers at '" + path + "' (" +
                     socket.error().message +
                     "): start rknnd, or name its socket with --target "
                     "unix:PATH"};
  }
  ControlConnection connection(*std::move(socket), std::move(wait));
  if (Expected<void> greeted = connection.Greet(); !greeted) {
    return std::move(greeted).error();
  }
  return connection;
}

Expected<void> ControlConnection::Greet() {
  wire::Hello hello{};
  hello.protocol_min = wire::kProtocolMinimum;
  hello.protocol_max = wire::kProtocolCurrent;
  wire::SetText(hello.client_version, rknnd_version_string());
  wire::SetText(hello.comm, "rknnctl");
  Expected<std::vector<std::byte>> body = wire::Encode(hello);
  if (!body) return std::move(body).error();
  Expected<std::vector<std::byte>> reply =
      Call(wire::Verb::kHello, *std::move(body));
  if (!reply) return std::move(reply).error();
  const Expected<wire::Welcome> welcome = wire::Decode<wire::Welcome>(*reply);
  if (!welcome) return welcome.error();
  welcome_ = *welcome;
  return {};
}

Expected<wire::Report> ControlConnection::Ask(rknnd_v1_ReportKind kind) {
  Expected<std::vector<std::byte>> body =
      wire::Encode(wire::ReportRequest{static_cast<uint32_t>(kind)});
  if (!body) return std::move(body).error();
  Expected<std::vector<std::byte>> reply =
      Call(wire::Verb::kReport, *std::move(body));
  if (!reply) return std::move(reply).error();
  return wire::Decode<wire::Report>(*reply);
}

Expected<wire::FaultReport> ControlConnection::SetFault(
    const wire::Fault& fault) {
  return Request<wire::FaultReport>(wire::Verb::kSetFault, fault);
}

Expected<wire::FaultList> ControlConnection::ListFaults() {
  return Request<wire::FaultList>(wire::Verb::kListFaults, wire::Empty{});
}

Expected<void> ControlConnection::ClearFault(uint64_t id) {
  Expected<wire::Empty> done =
      Request<wire::Empty>(wire::Verb::kClearFault, wire::ClearFault{.id = id});
  if (!done) return std::move(done).error();
  return {};
}

Expected<ControlConnection::TakenTrace> ControlConnection::TakeTrace(
    uint64_t since_ns) {
  Expected<std::vector<std::byte>> body =
      wire::Encode(wire::TraceRequest{.since_ns = since_ns});
  if (!body) return std::move(body).error();
  Expected<wire::Frame> reply =
      CallForFrame(wire::Verb::kTrace, *std::move(body));
  if (!reply) return std::move(reply).error();
  const Expected<wire::Trace> message = wire::Decode<wire::Trace>(reply->body);
  if (!message) return message.error();
  if (reply->fds.empty()) {
    return Error{Code::kInternal, "the daemon's trace came without its text"};
  }
  return TakenTrace{*message, std::move(reply->fds[0])};
}

Expected<void> ControlConnection::Lease(uint32_t cores,
                                        const std::string& command) {
  wire::LeaseRequest request{};
  request.cores = cores;
  wire::SetText(request.command, command);
  Expected<std::vector<std::byte>> body = wire::Encode(request);
  if (!body) return std::move(body).error();
  Expected<wire::Frame> reply =
      CallForFrame(wire::Verb::kLease, *std::move(body), kLeaseTimeoutMs);
  if (!reply) return std::move(reply).error();
  return {};
}

Expected<void> ControlConnection::FollowLogs(uint32_t level, uint32_t recent) {
  const Expected<wire::Empty> begun =
      Request<wire::Empty>(wire::Verb::kFollowLogs,
                           wire::FollowLogs{.level = level, .recent = recent});
  if (!begun) return begun.error();
  // What was sent before its answer is here, too.
  const Expected<wire::Report> flushed = Ask(rknnd_v1_ReportKind_REPORT_STATUS);
  if (!flushed) return flushed.error();
  return {};
}

Expected<std::optional<wire::LogLine>> ControlConnection::NextLogLine(
    int64_t timeout_ms) {
  const int64_t deadline = NowMs() + timeout_ms;
  while (lines_.empty()) {
    const Expected<wire::Frame> frame = NextFrame(deadline);
    if (!frame && frame.error().code == Code::kDeadlineExceeded) {
      return std::optional<wire::LogLine>();
    }
    if (!frame) return frame.error();
    TakeEvent(*frame);
  }
  const wire::LogLine line = lines_.front();
  lines_.pop_front();
  return std::optional(line);
}

void ControlConnection::TakeEvent(const wire::Frame& frame) {
  // Nobody asked for more than the daemon remembers; one that sends without
  // end is not to fill our memory.
  constexpr size_t kMostLines = size_t{1} << 14;
  if (frame.kind != wire::FrameKind::kEvent ||
      frame.verb != wire::Verb::kLogLine || lines_.size() == kMostLines) {
    return;
  }
  const Expected<wire::LogLine> line = wire::Decode<wire::LogLine>(frame.body);
  if (line) lines_.push_back(*line);
}

bool ControlConnection::DropEvents() {
  for (;;) {
    const Expected<wire::FrameResult> received =
        wire::ReceiveFrame(socket_.get(), base::Block::kNo);
    if (!received) return false;
    switch (received->kind) {
      case wire::FrameResult::Kind::kFrame:
        continue;
      case wire::FrameResult::Kind::kWouldBlock:
        return true;
      case wire::FrameResult::Kind::kEndOfFile:
        return false;
    }
  }
}

Expected<std::vector<std::byte>> ControlConnection::Call(
    wire::Verb verb, std::vector<std::byte> body) {
  Expected<wire::Frame> reply = CallForFrame(verb, std::move(body));
  if (!reply) return std::move(reply).error();
  return std::move(reply->body);
}

Expected<wire::Frame> ControlConnection::CallForFrame(
    wire::Verb verb, std::vector<std::byte> body, int64_t timeout_ms,
    std::vector<base::UniqueFd> fds) {
  wire::Frame request;
  request.verb = verb;
  request.request = ++last_request_;
  request.body = std::move(body);
  request.fds = std::move(fds);
  if (Expected<void> sent =
          wire::SendFrame(socket_.get(), request, base::Block::kYes);
      !sent) {
    return std::move(sent).error();
  }
  const int64_t deadline = NowMs() + timeout_ms;
  for (;;) {
    Expected<wire::Frame> reply = NextFrame(deadline);
    if (!reply) {
      if (reply.error().code != Code::kDeadlineExceeded) {
        return std::move(reply).error();
      }
      return Error{Code::kDeadlineExceeded,
                   "the daemon has not answered for " +
                       std::to_string(timeout_ms / 1000) + " s"};
    }
    // Events come unasked, and late answers to what nobody waits for.
    if (reply->kind != wire::FrameKind::kReply ||
        reply->request != request.request) {
      TakeEvent(*reply);
      continue;
    }
    if (reply->code != Code::kOk) return wire::DecodeFailure(*reply);
    return std::move(*reply);
  }
}

Expected<wire::Frame> ControlConnection::NextFrame(int64_t deadline_ms) {
  for (;;) {
    const int64_t left = std::max<int64_t>(deadline_ms - NowMs(), 0);
    switch (wait_(socket_.get(), static_cast<int>(left))) {
      case Waited::kReadable:
        break;
      case Waited::kTimedOut:
        return Error{Code::kDeadlineExceeded, "nothing has come"};
      case Waited::kCancelled:
        return Error{Code::kCancelled, "given up before the daemon answered"};
    }
    Expected<wire::FrameResult> received =
        wire::ReceiveFrame(socket_.get(), base::Block::kNo);
    if (!received) return std::move(received).error();
    switch (received->kind) {
      case wire::FrameResult::Kind::kFrame:
        return std::move(received->frame);
      case wire::FrameResult::Kind::kWouldBlock:
        continue;
      case wire::FrameResult::Kind::kEndOfFile:
        return Error{Code::kUnavailable,
                     "the daemon closed the connection: it is stopping, or "
                     "refuses this user (see its log)"};
    }
  }
}

}  // namespace rknnd::client
