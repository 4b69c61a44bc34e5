// Called on the threads of the programs that use it. What the daemon sends is
// decoded with care; after bytes that are no frame the connection is of no
// further use, and the caller closes it.

#include "proto/wire/session_client.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rknnd::wire {
namespace {

using base::Code;
using base::Expected;
using base::Nanoseconds;

// Milliseconds of one poll(), whose argument is an int.
constexpr Nanoseconds kLongestPoll = 60'000;

// Rounded up, so that the last millisecond is not spent spinning.
int MillisecondsUntil(Nanoseconds deadline) {
  const Nanoseconds left = deadline - base::MonotonicClock().Now();
  if (left <= 0) return 0;
  return static_cast<int>(
      std::min(left / base::kMillisecond + 1, kLongestPoll));
}

base::Error NotAnswered() {
  return {Code::kDeadlineExceeded,
          "rknnd did not answer in time: it hangs, or is overloaded"};
}

}  // namespace

SessionClient::Waited SessionClient::Poll(int fd, int milliseconds) {
  pollfd wait{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready > 0 ? Waited::kReadable : Waited::kTimedOut;
}

// ---- hello ------------------------------------------------------------------

Expected<Frame> SessionClient::NewHello(const Introduction& introduction) {
  Hello hello{};
  hello.protocol_min = kProtocolMinimum;
  hello.protocol_max = kProtocolCurrent;
  hello.features = introduction.features;
  hello.log_level = introduction.log_level;
  SetText(hello.client_version, introduction.version);
  SetText(hello.comm, introduction.program);
  Expected<std::vector<std::byte>> body = Encode(hello);
  if (!body.ok()) return std::move(body).error();
  Frame frame = NewRequest(Verb::kHello, *std::move(body));
  hello_ = frame.request;
  return frame;
}

Expected<Welcome> SessionClient::ReadWelcome(const Frame& reply) {
  if (reply.code != Code::kOk) return DecodeFailure(reply);
  Expected<Welcome> welcome = Decode<Welcome>(reply.body);
  if (!welcome.ok()) return welcome;
  if (welcome->protocol < kProtocolMinimum ||
      welcome->protocol > kProtocolCurrent) {
    return base::Error{
        Code::kFailedPrecondition,
        "protocol: this client speaks " + std::to_string(kProtocolMinimum) +
            ".." + std::to_string(kProtocolCurrent) + ", rknnd " +
            welcome->daemon_version + " chose " +
            std::to_string(welcome->protocol) + "; update the older side"};
  }
  return welcome;
}

Expected<void> SessionClient::SayHello(const Introduction& introduction,
                                       Nanoseconds deadline) {
  const Expected<Frame> hello = NewHello(introduction);
  if (!hello.ok()) return hello.error();
  return Send(*hello, deadline);
}

Expected<SessionClient::Greeting> SessionClient::AwaitWelcome(
    Nanoseconds deadline) {
  Expected<Frame> reply = AwaitReply(hello_, deadline);
  if (!reply.ok()) return std::move(reply).error();
  Expected<Welcome> welcome = ReadWelcome(*reply);
  if (!welcome.ok()) return std::move(welcome).error();
  return Greeting{*welcome, std::move(reply->fds)};
}

// ---- requests ---------------------------------------------------------------

Frame SessionClient::NewRequest(Verb verb, std::vector<std::byte> body,
                                std::vector<base::UniqueFd> fds) {
  Frame frame;
  frame.verb = verb;
  frame.request = ++last_request_;
  frame.body = std::move(body);
  frame.fds = std::move(fds);
  return frame;
}

Expected<void> SessionClient::TrySend(const Frame& request) {
  Expected<void> sent = SendFrame(socket_.get(), request, base::Block::kNo);
  lost_ |= !sent.ok() && sent.error().code == Code::kUnavailable;
  return sent;
}

Expected<void> SessionClient::Send(const Frame& request, Nanoseconds deadline) {
  for (;;) {
    Expected<void> sent = TrySend(request);
    if (sent.ok() || sent.error().code != Code::kResourceExhausted) return sent;
    const int left = MillisecondsUntil(deadline);
    if (left == 0) {
      return base::Error{
          Code::kDeadlineExceeded,
          "rknnd does not read its socket: it hangs, or is stopped"};
    }
    pollfd entry = {socket_.get(), POLLOUT, 0};
    // Writable and yet no room: too many fds are under way in the system.
    if (poll(&entry, 1, left) > 0) poll(nullptr, 0, 1);
  }
}

Expected<Frame> SessionClient::Request(Verb verb, std::vector<std::byte> body,
                                       Nanoseconds timeout,
                                       std::vector<base::UniqueFd> fds) {
  const Nanoseconds deadline = base::MonotonicClock().Now() + timeout;
  const Frame request = NewRequest(verb, std::move(body), std::move(fds));
  if (Expected<void> sent = Send(request, deadline); !sent.ok()) {
    return std::move(sent).error();
  }
  Expected<Frame> reply = AwaitReply(request.request, deadline);
  if (reply.ok() && reply->code != Code::kOk) return DecodeFailure(*reply);
  return reply;
}

SessionClient::Waited SessionClient::AwaitReadable(Nanoseconds deadline) {
  for (;;) {
    const int left = MillisecondsUntil(deadline);
    const Waited waited = wait_(socket_.get(), left);
    // One poll() may be shorter than the time that is left.
    if (waited != Waited::kTimedOut || MillisecondsUntil(deadline) == 0) {
      return waited;
    }
  }
}

Expected<Frame> SessionClient::AwaitReply(uint32_t request,
                                          Nanoseconds deadline) {
  last_words_.clear();
  said_why_ = false;
  for (;;) {
    switch (AwaitReadable(deadline)) {
      case Waited::kReadable:
        break;
      case Waited::kTimedOut:
        return NotAnswered();
      case Waited::kCancelled:
        return base::Error{Code::kCancelled,
                           "given up before the daemon answered"};
    }
    Expected<std::optional<Frame>> reply = Receive();
    if (!reply.ok()) {
      said_why_ =
          !last_words_.empty() && reply.error().code == Code::kUnavailable;
      return std::move(reply).error();
    }
    // Late answers are to what nobody waits for any more.
    if (reply->has_value() && (*reply)->request == request) {
      return **std::move(reply);
    }
    if (MillisecondsUntil(deadline) == 0) return NotAnswered();
  }
}

Expected<std::optional<Frame>> SessionClient::Receive() {
  for (;;) {
    Expected<FrameResult> received =
        ReceiveFrame(socket_.get(), base::Block::kNo);
    if (!received.ok()) {
      lost_ = true;
      return std::move(received).error();
    }
    switch (received->kind) {
      case FrameResult::Kind::kWouldBlock:
        return std::optional<Frame>();
      case FrameResult::Kind::kEndOfFile:
        lost_ = true;
        return base::Error{
            Code::kUnavailable,
            last_words_.empty()
                ? "rknnd closed the connection: it is stopping, or refuses "
                  "this user (see its log)"
                : "rknnd closed the connection and said: " + last_words_};
      case FrameResult::Kind::kFrame:
        break;
    }
    if (received->frame.kind == FrameKind::kReply) {
      return std::optional<Frame>(std::move(received->frame));
    }
    if (received->frame.verb == Verb::kLogEvent) {
      const Expected<LogEvent> event = Decode<LogEvent>(received->frame.body);
      if (event.ok()) last_words_ = event->text;
    }
    if (on_event_) on_event_(received->frame);
  }
}

}  // namespace rknnd::wire
