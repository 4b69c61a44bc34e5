#include "client/ctl/control_connection.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/posix/socket.h"
#include "proto/wire/features.h"
#include "rknnd.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr const char* kDefaultTarget = "unix:/run/rknnd/session.sock";

// The longest job ends long before; one that hangs, some day. Who does not want
// to wait so long ends rknnctl.
constexpr int64_t kLeaseTimeoutMs = 24 * 3'600'000LL;

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Expected<std::string> SocketPath(const std::string& target) {
  if (target.starts_with("unix:") && target.size() > 5) return target.substr(5);
  if (target.starts_with("local:")) {
    return Error{Code::kInvalidArgument,
                 "target 'local:' has no daemon to ask: each process that uses "
                 "it has a stack of its own; name a daemon with --target "
                 "unix:PATH"};
  }
  if (target.starts_with("tcp:")) {
    return Error{Code::kUnimplemented, "target '" + target +
                                           "': tcp is not supported in this "
                                           "version"};
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
                                                    Wait wait) {
  const Expected<std::string> path =
      SocketPath(target.empty() ? kDefaultTarget : target);
  if (!path) return path.error();
  return OpenAt(*path, std::move(wait));
}

Expected<ControlConnection> ControlConnection::OpenAdmin(
    const std::string& target) {
  const Expected<std::string> path =
      SocketPath(target.empty() ? kDefaultTarget : target);
  if (!path) return path.error();
  const size_t slash = path->rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : path->substr(0, slash + 1);
  return OpenAt(folder + "admin.sock", Poll);
}

Expected<ControlConnection> ControlConnection::OpenAt(const std::string& path,
                                                      Wait wait) {
  Expected<base::UniqueFd> socket = base::ConnectUnix(path);
  if (!socket) {
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
  session_ = welcome->session;
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

template <class Answer, class Message>
Expected<Answer> ControlConnection::CallWith(wire::Verb verb,
                                             const Message& message) {
  Expected<std::vector<std::byte>> body = wire::Encode(message);
  if (!body) return std::move(body).error();
  Expected<std::vector<std::byte>> reply = Call(verb, *std::move(body));
  if (!reply) return std::move(reply).error();
  return wire::Decode<Answer>(*reply);
}

Expected<wire::FaultReport> ControlConnection::SetFault(
    const wire::Fault& fault) {
  return CallWith<wire::FaultReport>(wire::Verb::kSetFault, fault);
}

Expected<wire::FaultList> ControlConnection::ListFaults() {
  return CallWith<wire::FaultList>(wire::Verb::kListFaults, wire::Empty{});
}

Expected<void> ControlConnection::ClearFault(uint64_t id) {
  Expected<wire::Empty> done = CallWith<wire::Empty>(
      wire::Verb::kClearFault, wire::ClearFault{.id = id});
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
    wire::Verb verb, std::vector<std::byte> body, int64_t timeout_ms) {
  wire::Frame request;
  request.verb = verb;
  request.request = ++last_request_;
  request.body = std::move(body);
  if (Expected<void> sent =
          wire::SendFrame(socket_.get(), request, base::Block::kYes);
      !sent) {
    return std::move(sent).error();
  }
  const int64_t deadline = NowMs() + timeout_ms;
  for (;;) {
    Expected<wire::Frame> reply = NextFrame(deadline);
    if (!reply) return std::move(reply).error();
    // Events come unasked; what is not the answer is of no interest here.
    if (reply->kind != wire::FrameKind::kReply ||
        reply->request != request.request) {
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
        return Error{Code::kDeadlineExceeded,
                     "the daemon has not answered for 10 s"};
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
