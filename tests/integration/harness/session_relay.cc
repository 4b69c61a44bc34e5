// See the header; one thread, which takes one message at a time.

#include "tests/integration/harness/session_relay.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <span>
#include <utility>

#include "base/posix/socket.h"
#include "proto/wire/frame.h"

namespace rknnd::integration {

SessionRelay::SessionRelay(const std::string& path, std::string daemon)
    : daemon_(std::move(daemon)), buffer_(wire::kMaxDatagram) {
  auto listener = base::ListenUnix(path, 0600);
  auto wakeup = base::MakeEventFd();
  EXPECT_TRUE(listener.ok() && wakeup.ok());
  if (!listener.ok() || !wakeup.ok()) return;
  listener_ = *std::move(listener);
  wakeup_ = *std::move(wakeup);
  thread_ = std::thread([this] { Run(); });
}

SessionRelay::~SessionRelay() {
  stop_ = true;
  if (!thread_.joinable()) return;
  base::SignalEventFd(wakeup_.get());
  thread_.join();
}

void SessionRelay::LoseAt(From from, int64_t count, bool handed_on) {
  const base::MutexLock lock(mutex_);
  plan_ = {from, count, handed_on};
}

void SessionRelay::SetAccepting(bool accepting) {
  accepting_ = accepting;
  base::SignalEventFd(wakeup_.get());
}

bool SessionRelay::HasWaiting(int timeout_ms) const {
  pollfd wait = {listener_.get(), POLLIN, 0};
  return poll(&wait, 1, timeout_ms) == 1;
}

void SessionRelay::Accept() {
  auto client = base::Accept(listener_.get());
  if (!client.ok() || !client->valid()) return;
  // A daemon that is not there: the client sees its connection end.
  auto daemon = base::ConnectUnix(daemon_);
  if (!daemon.ok()) return;
  pairs_.push_back({*std::move(client), *std::move(daemon)});
}

bool SessionRelay::IsFatal(From from, bool* handed_on) {
  const base::MutexLock lock(mutex_);
  if (plan_.left == 0 || plan_.from != from || --plan_.left != 0) return false;
  *handed_on = plan_.handed_on;
  return true;
}

bool SessionRelay::Carry(const Pair& pair, From from) {
  const int source =
      from == From::kClient ? pair.client.get() : pair.daemon.get();
  const int sink =
      from == From::kClient ? pair.daemon.get() : pair.client.get();
  auto message = base::ReceiveMessage(source, buffer_, base::Block::kNo);
  if (!message.ok() || message->eof) return false;
  if (message->would_block) return true;
  bool handed_on = true;
  const bool fatal = IsFatal(from, &handed_on);
  std::vector<int> fds;
  for (const base::UniqueFd& fd : message->fds) fds.push_back(fd.get());
  const bool sent =
      handed_on &&
      base::SendMessage(sink, std::span(buffer_).first(message->size), fds,
                        base::Block::kYes)
          .ok();
  if (fatal) ++lost_;
  return sent && !fatal;
}

void SessionRelay::Run() {
  while (!stop_) {
    const bool accepting = accepting_;
    std::vector<pollfd> waits = {{wakeup_.get(), POLLIN, 0},
                                 {accepting ? listener_.get() : -1, POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      waits.push_back({pair.client.get(), POLLIN, 0});
      waits.push_back({pair.daemon.get(), POLLIN, 0});
    }
    poll(waits.data(), waits.size(), -1);
    if (waits[0].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got =
          read(wakeup_.get(), &count, sizeof count);
    }
    size_t next = 2;
    for (Pair& pair : pairs_) {
      if (waits[next++].revents != 0) pair.over |= !Carry(pair, From::kClient);
      if (waits[next++].revents != 0 && !pair.over) {
        pair.over |= !Carry(pair, From::kDaemon);
      }
    }
    pairs_.remove_if([](const Pair& pair) { return pair.over; });
    if (waits[1].revents != 0) Accept();
  }
}

}  // namespace rknnd::integration
