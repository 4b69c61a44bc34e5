#include "client/ctl/control_connection.h"

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

// In the folder of the session socket.
constexpr const char* kAdminSocket = "admin.sock";

// The longest job ends long before; one that hangs, some day. Who does not want
// to wait so long ends rknnctl.
constexpr int64_t kLeaseTimeoutMs = 24 * 3'600'000LL;

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

// Keeps a line of the daemon's log; other events are of no interest here.
void KeepLine(const wire::Frame& event, std::deque<wire::LogLine>* lines) {
  // Nobody asked for more than the daemon remembers; one that sends without
  // end is not to fill our memory.
  constexpr size_t kMostLines = size_t{1} << 14;
  if (event.verb != wire::Verb::kLogLine || lines->size() == kMostLines) return;
  const Expected<wire::LogLine> line = wire::Decode<wire::LogLine>(event.body);
  if (line) lines->push_back(*line);
}

}  // namespace

ControlConnection::ControlConnection(base::UniqueFd socket, Wait wait)
    : lines_(std::make_unique<Lines>()),
      client_(std::make_unique<wire::SessionClient>(std::move(socket),
                                                    std::move(wait))) {
  client_->set_on_event([lines = lines_.get()](const wire::Frame& event) {
    KeepLine(event, lines);
  });
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
    return OpenRemote(target.substr(kTcp.size()), wire::SessionClient::Poll,
                      {});
  }
  const Expected<std::string> path =
      SocketPath(target.empty() ? kDefaultTarget : target);
  if (!path) return path.error();
  const size_t slash = path->rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : path->substr(0, slash + 1);
  return OpenAt(folder + kAdminSocket, wire::SessionClient::Poll);
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
  const base::Nanoseconds deadline =
      base::MonotonicClock().Now() + kReplyTimeoutMs * base::kMillisecond;
  if (Expected<void> said = client_->SayHello(
          {.version = rknnd_version_string(), .program = "rknnctl"}, deadline);
      !said) {
    return said;
  }
  const Expected<wire::SessionClient::Greeting> greeting =
      client_->AwaitWelcome(deadline);
  if (!greeting) return greeting.error();
  welcome_ = greeting->welcome;
  return {};
}

std::string ControlConnection::AskNpu() {
  const Expected<wire::ClocksReply> reply =
      Request<wire::ClocksReply>(wire::Verb::kClocks, wire::Empty{});
  return reply ? reply->npu : std::string();
}

Expected<wire::Report> ControlConnection::Ask(rknnd_v1_ReportKind kind) {
  return Request<wire::Report>(
      wire::Verb::kReport, wire::ReportRequest{static_cast<uint32_t>(kind)});
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
  Expected<wire::Frame> reply = RequestFrame(
      wire::Verb::kTrace, wire::TraceRequest{.since_ns = since_ns});
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
  Expected<wire::Frame> reply =
      RequestFrame(wire::Verb::kLease, request, kLeaseTimeoutMs);
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
  const base::Nanoseconds deadline =
      base::MonotonicClock().Now() + timeout_ms * base::kMillisecond;
  while (lines_->empty()) {
    switch (client_->AwaitReadable(deadline)) {
      case Waited::kReadable:
        break;
      case Waited::kTimedOut:
        return std::optional<wire::LogLine>();
      case Waited::kCancelled:
        return Error{Code::kCancelled, "given up before the daemon said more"};
    }
    const Expected<std::optional<wire::Frame>> late = client_->Receive();
    if (!late) return late.error();
  }
  const wire::LogLine line = lines_->front();
  lines_->pop_front();
  return std::optional(line);
}

bool ControlConnection::DropEvents() {
  for (;;) {
    const Expected<std::optional<wire::Frame>> late = client_->Receive();
    if (!late) return false;
    if (!late->has_value()) return true;
  }
}

}  // namespace rknnd::client
