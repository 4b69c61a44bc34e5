// Called on the program's threads, one request at a time. What the daemon sends
// is decoded with care, but a daemon that lies about the ring's contents is not
// guarded against: the client trusts it with its tensors anyway.

#include "client/session/connection.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/posix/spinning.h"
#include "client/rknnrt/log.h"
#include "client/session/fork_shelf.h"
#include "proto/wire/features.h"
#include "proto/wire/ring.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;
using base::UniqueFd;

// Milliseconds of one poll(), whose argument is an int.
constexpr Nanoseconds kLongestPoll = 60000;

// Looks at the ring before a thread sleeps between two.
constexpr int kYields = 100;

constexpr uint32_t kHelloRequest = 1;

constexpr char kClientVersion[] = "librknnrt 0.1.0";

Error Gone() {
  return {Code::kUnavailable, "the connection to rknnd is closed"};
}

// Waits until the socket has one of `events`, or hung up; false when `deadline`
// has come first.
bool WaitFor(int socket, short events,  // NOLINT(google-runtime-int): poll's
             Nanoseconds deadline) {
  const base::MonotonicClock clock;
  for (;;) {
    const Nanoseconds left = deadline - clock.Now();
    if (left <= 0) return false;
    // Rounded up, so that the last millisecond is not spent spinning.
    const Nanoseconds ms =
        std::min<Nanoseconds>(left / base::kMillisecond + 1, kLongestPoll);
    pollfd entry = {socket, events, 0};
    if (poll(&entry, 1, static_cast<int>(ms)) > 0) return true;
  }
}

// What it says.
std::string PrintEvent(const wire::Frame& frame) {
  if (frame.verb != wire::Verb::kLogEvent) return "";  // of a newer daemon
  Expected<wire::LogEvent> event = wire::Decode<wire::LogEvent>(frame.body);
  if (!event.ok()) return "";
  Log(static_cast<LogLevel>(event->level), event->text);
  return event->text;
}

Expected<void> Send(int socket, const wire::Frame& frame,
                    Nanoseconds deadline) {
  for (;;) {
    Expected<void> sent = wire::SendFrame(socket, frame, base::Block::kNo);
    if (sent.ok() || sent.error().code != Code::kResourceExhausted) return sent;
    if (!WaitFor(socket, POLLOUT, deadline)) {
      return Error{Code::kDeadlineExceeded,
                   "rknnd does not read its socket: it hangs, or is stopped"};
    }
    // Writable and yet no room: too many fds are under way in the system.
    poll(nullptr, 0, 1);
  }
}

// The reply to `request`. Events are printed, replies that nobody waits for any
// more dropped. kUnavailable when the daemon is gone.
Expected<wire::Frame> ReceiveReply(int socket, uint32_t request,
                                   Nanoseconds deadline,
                                   bool* said_why = nullptr) {
  std::string last_words;
  for (;;) {
    if (!WaitFor(socket, POLLIN, deadline)) {
      return Error{Code::kDeadlineExceeded,
                   "rknnd did not answer in time: it hangs, or is overloaded"};
    }
    Expected<wire::FrameResult> result =
        wire::ReceiveFrame(socket, base::Block::kNo);
    if (!result.ok()) return std::move(result).error();
    switch (result->kind) {
      case wire::FrameResult::Kind::kWouldBlock:
        continue;
      case wire::FrameResult::Kind::kEndOfFile:
        if (last_words.empty()) return Gone();
        if (said_why != nullptr) *said_why = true;
        return Error{Code::kUnavailable,
                     "rknnd closed the connection and said: " + last_words};
      case wire::FrameResult::Kind::kFrame:
        break;
    }
    if (result->frame.kind == wire::FrameKind::kEvent) {
      last_words = PrintEvent(result->frame);
    } else if (result->frame.request == request) {
      return std::move(result->frame);
    }
  }
}

wire::Hello MakeHello() {
  wire::Hello hello{};
  hello.protocol_min = wire::kProtocolMinimum;
  hello.protocol_max = wire::kProtocolCurrent;
  hello.features = wire::kKnownFeatures;
  hello.log_level = EnabledLogLevel();
  wire::SetText(hello.client_version, kClientVersion);
  wire::SetText(hello.comm, program_invocation_short_name);
  return hello;
}

RingManners MannersOf(const wire::Welcome& welcome) {
  RingManners manners;
  manners.marks_waits = (welcome.features & wire::kFeatureSpin) != 0;
  // With one CPU the daemon cannot go on while this thread is awake. More than
  // a millisecond is no daemon's setting.
  manners.one_cpu = base::UsableCpus() == 1;
  if (manners.marks_waits && !manners.one_cpu) {
    manners.spin = std::min<Nanoseconds>(welcome.spin_us * base::kMicrosecond,
                                         base::kMillisecond);
  }
  return manners;
}

Expected<base::Mapping> MapRing(int fd, const wire::Welcome& welcome) {
  struct stat status {};
  if (fstat(fd, &status) != 0 ||
      static_cast<uint64_t>(status.st_size) < wire::kRingBytes ||
      !base::HasSeals(fd, base::Seals::kFixedSize)) {
    return Error{Code::kDataLoss, "protocol: rknnd sent no ring"};
  }
  Expected<base::Mapping> mapping = base::Mapping::OfFd(
      fd, 0, wire::kRingBytes, base::Mapping::Access::kReadWrite);
  if (!mapping.ok()) return mapping;
  const auto* ring = reinterpret_cast<const wire::Ring*>(mapping->data());
  if (ring->header.magic != wire::kRingMagic ||
      ring->header.entries != wire::kRingEntries ||
      welcome.ring_entries != wire::kRingEntries) {
    return Error{Code::kDataLoss,
                 "protocol: rknnd's ring has another layout than this "
                 "client's; update the older side"};
  }
  return mapping;
}

}  // namespace

Connection::Connection(UniqueFd socket, UniqueFd doorbell,
                       base::Mapping mapping, const wire::Welcome& welcome)
    : socket_(std::move(socket)),
      doorbell_(std::move(doorbell)),
      mapping_(std::move(mapping)),
      welcome_(welcome),
      ring_(reinterpret_cast<wire::Ring*>(mapping_.data()), doorbell_.get(),
            MannersOf(welcome)) {
  ForkShelf& shelf = ForkShelf::Get();
  shelf.AddFd(socket_.get());
  shelf.AddFd(doorbell_.get());
  shelf.AddMapping(mapping_.data(), mapping_.size());
}

Connection::~Connection() {
  ForkShelf& shelf = ForkShelf::Get();
  shelf.RemoveFd(socket_.get());
  shelf.RemoveFd(doorbell_.get());
  shelf.RemoveMapping(mapping_.data());
}

Expected<void> Connection::SayHello(int socket, Nanoseconds deadline) {
  wire::Frame hello;
  hello.verb = wire::Verb::kHello;
  hello.request = kHelloRequest;
  Expected<std::vector<std::byte>> body = wire::Encode(MakeHello());
  if (!body.ok()) return std::move(body).error();
  hello.body = *std::move(body);
  return Send(socket, hello, deadline);
}

Expected<std::shared_ptr<Connection>> Connection::AwaitWelcome(
    UniqueFd& socket, Nanoseconds deadline) {
  Expected<wire::Frame> reply =
      ReceiveReply(socket.get(), kHelloRequest, deadline);
  if (!reply.ok()) return std::move(reply).error();
  if (reply->code != Code::kOk) return wire::DecodeFailure(*reply);
  Expected<wire::Welcome> welcome = wire::Decode<wire::Welcome>(reply->body);
  if (!welcome.ok()) return std::move(welcome).error();
  if (welcome->protocol < wire::kProtocolMinimum ||
      welcome->protocol > wire::kProtocolCurrent) {
    return Error{Code::kFailedPrecondition,
                 "protocol: this client speaks " +
                     std::to_string(wire::kProtocolMinimum) + ".." +
                     std::to_string(wire::kProtocolCurrent) + ", rknnd " +
                     welcome->daemon_version + " chose " +
                     std::to_string(welcome->protocol) +
                     "; update the older side"};
  }
  if (reply->fds.size() < 2) {
    return Error{Code::kDataLoss, "protocol: rknnd sent no ring and doorbell"};
  }
  Expected<base::Mapping> mapping = MapRing(reply->fds[0].get(), *welcome);
  if (!mapping.ok()) return std::move(mapping).error();
  return std::shared_ptr<Connection>(
      new Connection(std::move(socket), std::move(reply->fds[1]),
                     *std::move(mapping), *welcome));
}

Expected<wire::Frame> Connection::Request(wire::Verb verb,
                                          std::vector<std::byte> body,
                                          std::span<const int> fds,
                                          Nanoseconds timeout) {
  if (broken()) return Gone();
  const Nanoseconds deadline = base::MonotonicClock().Now() + timeout;
  if (Expected<void> settled = Settle(deadline); !settled.ok()) {
    return std::move(settled).error();
  }
  wire::Frame frame;
  frame.verb = verb;
  frame.request = ++last_request_;
  frame.body = std::move(body);
  for (const int fd : fds) {
    Expected<UniqueFd> copy = base::Duplicate(fd);
    if (!copy.ok()) return std::move(copy).error();
    frame.fds.push_back(*std::move(copy));
  }
  Expected<void> sent = Send(socket_.get(), frame, deadline);
  if (!sent.ok()) {
    if (sent.error().code == Code::kUnavailable) broken_ = true;
    return std::move(sent).error();
  }
  Expected<wire::Frame> reply =
      ReceiveReply(socket_.get(), frame.request, deadline, &said_why_);
  if (!reply.ok()) {
    // After bytes that are no frame nothing more can be made of the stream.
    if (reply.error().code != Code::kDeadlineExceeded) broken_ = true;
    return reply;
  }
  if (reply->code != Code::kOk) return wire::DecodeFailure(*reply);
  return reply;
}

Expected<void> Connection::Settle(Nanoseconds deadline) {
  const uint32_t written = ring_.written();
  for (int looks = 0; !ring_.HasTaken(written); ++looks) {
    if (!Look().alive) return Gone();
    if (base::MonotonicClock().Now() >= deadline) {
      return Error{Code::kDeadlineExceeded,
                   "rknnd does not read its ring: it hangs, or is stopped"};
    }
    // It was woken for them and takes microseconds.
    if (looks < kYields) {
      sched_yield();
    } else {
      poll(nullptr, 0, 1);
    }
  }
  return {};
}

bool Connection::Notify(wire::Verb verb, std::vector<std::byte> body,
                        Nanoseconds patience) {
  if (!Settle(base::MonotonicClock().Now() + patience).ok()) return false;
  wire::Frame frame;
  frame.verb = verb;
  frame.request = ++last_request_;
  frame.body = std::move(body);
  return wire::SendFrame(socket_.get(), frame, base::Block::kNo).ok();
}

void Connection::ReadEvents() {
  while (!broken()) {
    Expected<wire::FrameResult> result =
        wire::ReceiveFrame(socket_.get(), base::Block::kNo);
    if (!result.ok() || result->kind == wire::FrameResult::Kind::kEndOfFile) {
      broken_ = true;
      return;
    }
    if (result->kind == wire::FrameResult::Kind::kWouldBlock) return;
    if (result->frame.kind == wire::FrameKind::kEvent) {
      PrintEvent(result->frame);
    }
  }
}

void Connection::Break() {
  broken_.store(true, std::memory_order_release);
  shutdown(socket_.get(), SHUT_RDWR);
}

bool Connection::MayBeOf(const Ticket& job) const {
  return (welcome_.features & wire::kFeatureBegun) == 0 || ring_.HadBegun(job);
}

void Connection::AwaitEnd(Nanoseconds timeout) {
  if (broken()) return;
  pollfd entry = {socket_.get(), POLLRDHUP, 0};
  poll(&entry, 1, static_cast<int>(timeout / base::kMillisecond));
}

Connection::Health Connection::Look() {
  Health health;
  if (broken()) return {false, false};
  pollfd entry = {socket_.get(), POLLIN | POLLRDHUP, 0};
  if (poll(&entry, 1, 0) > 0) {
    health.readable = (entry.revents & POLLIN) != 0;
    health.alive =
        (entry.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) == 0;
  }
  if (!health.alive) broken_.store(true, std::memory_order_release);
  return health;
}

}  // namespace rknnd::client
