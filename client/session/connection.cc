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
#include <utility>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/posix/spinning.h"
#include "client/session/fork_cleanup.h"
#include "client/target/log.h"
#include "proto/wire/features.h"
#include "proto/wire/ring.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;
using base::UniqueFd;

// Looks at the ring before a thread sleeps between two.
constexpr int kYields = 100;

constexpr char kClientVersion[] = "librknnrt 0.1.0";

Error Gone() {
  return {Code::kUnavailable, "the connection to rknnd is closed"};
}

void LogEvent(const wire::Frame& frame) {
  if (frame.verb != wire::Verb::kLogEvent) return;  // of a newer daemon
  const Expected<wire::LogEvent> event =
      wire::Decode<wire::LogEvent>(frame.body);
  if (event.ok()) Log(static_cast<LogLevel>(event->level), event->text);
}

RingPolicy PolicyOf(const wire::Welcome& welcome) {
  RingPolicy policy;
  policy.marks_waits = (welcome.features & wire::kFeatureSpin) != 0;
  // With one CPU the daemon cannot go on while this thread is awake. More than
  // a millisecond is no daemon's setting.
  policy.one_cpu = base::UsableCpus() == 1;
  if (policy.marks_waits && !policy.one_cpu) {
    policy.spin = std::min<Nanoseconds>(welcome.spin_us * base::kMicrosecond,
                                        base::kMillisecond);
  }
  return policy;
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

wire::Introduction Connection::Introduction() {
  return {.version = kClientVersion,
          .program = program_invocation_short_name,
          .features = wire::kKnownFeatures,
          .log_level = static_cast<uint32_t>(EnabledLogLevel())};
}

Connection::Connection(wire::SessionClient client, UniqueFd doorbell,
                       base::Mapping mapping, const wire::Welcome& welcome)
    : client_(std::move(client)),
      doorbell_(std::move(doorbell)),
      mapping_(std::move(mapping)),
      welcome_(welcome),
      ring_(reinterpret_cast<wire::Ring*>(mapping_.data()), doorbell_.get(),
            PolicyOf(welcome)) {
  ForkCleanup& cleanup = ForkCleanup::Get();
  cleanup.AddFd(client_.socket());
  cleanup.AddFd(doorbell_.get());
  cleanup.AddMapping(mapping_.data(), mapping_.size());
}

Connection::~Connection() {
  ForkCleanup& cleanup = ForkCleanup::Get();
  cleanup.RemoveFd(client_.socket());
  cleanup.RemoveFd(doorbell_.get());
  cleanup.RemoveMapping(mapping_.data());
}

Expected<std::shared_ptr<Connection>> Connection::AwaitWelcome(
    std::optional<wire::SessionClient>& client, Nanoseconds deadline) {
  client->set_on_event(LogEvent);
  Expected<wire::SessionClient::Greeting> greeting =
      client->AwaitWelcome(deadline);
  if (!greeting.ok()) return std::move(greeting).error();
  if (greeting->fds.size() < 2) {
    return Error{Code::kDataLoss, "protocol: rknnd sent no ring and doorbell"};
  }
  Expected<base::Mapping> mapping =
      MapRing(greeting->fds[0].get(), greeting->welcome);
  if (!mapping.ok()) return std::move(mapping).error();
  std::shared_ptr<Connection> connection(
      new Connection(*std::move(client), std::move(greeting->fds[1]),
                     *std::move(mapping), greeting->welcome));
  client.reset();
  return connection;
}

Expected<wire::Frame> Connection::Request(wire::Verb verb,
                                          std::vector<std::byte> body,
                                          std::span<const int> fds,
                                          Nanoseconds timeout) {
  if (broken()) return Gone();
  const base::MonotonicClock clock;
  const Nanoseconds deadline = clock.Now() + timeout;
  if (Expected<void> settled = Settle(deadline); !settled.ok()) {
    return std::move(settled).error();
  }
  std::vector<UniqueFd> copies;
  for (const int fd : fds) {
    Expected<UniqueFd> copy = base::Duplicate(fd);
    if (!copy.ok()) return std::move(copy).error();
    copies.push_back(*std::move(copy));
  }
  Expected<wire::Frame> reply = client_.Request(
      verb, std::move(body), deadline - clock.Now(), std::move(copies));
  if (client_.lost()) broken_ = true;
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
  return client_.TrySend(client_.NewRequest(verb, std::move(body))).ok();
}

void Connection::ReadEvents() {
  while (!broken()) {
    const Expected<std::optional<wire::Frame>> reply = client_.Receive();
    if (!reply.ok()) {
      broken_ = true;
    } else if (!reply->has_value()) {
      return;
    }
  }
}

void Connection::Break() {
  broken_.store(true, std::memory_order_release);
  shutdown(client_.socket(), SHUT_RDWR);
}

bool Connection::MayBeOf(const Ticket& job) const {
  return (welcome_.features & wire::kFeatureBegun) == 0 || ring_.HadBegun(job);
}

void Connection::AwaitEnd(Nanoseconds timeout) {
  if (broken()) return;
  pollfd entry = {client_.socket(), POLLRDHUP, 0};
  poll(&entry, 1, static_cast<int>(timeout / base::kMillisecond));
}

Connection::Health Connection::Look() {
  Health health;
  if (broken()) return {false, false};
  pollfd entry = {client_.socket(), POLLIN | POLLRDHUP, 0};
  if (poll(&entry, 1, 0) > 0) {
    health.readable = (entry.revents & POLLIN) != 0;
    health.alive =
        (entry.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) == 0;
  }
  if (!health.alive) broken_.store(true, std::memory_order_release);
  return health;
}

}  // namespace rknnd::client
