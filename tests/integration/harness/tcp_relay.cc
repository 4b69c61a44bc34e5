// See the header; one thread, which reads and writes as it can.

#include "tests/integration/harness/tcp_relay.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/posix/socket.h"

namespace rknnd::integration {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

base::UniqueFd Socket() {
  return base::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

}  // namespace

TcpRelay::TcpRelay(int port) : target_(port), listener_(Socket()) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listener_.get(), generic, size), 0);
  EXPECT_EQ(listen(listener_.get(), SOMAXCONN), 0);
  EXPECT_EQ(getsockname(listener_.get(), generic, &size), 0);
  port_ = ntohs(address.sin_port);
  auto stop = base::MakeEventFd();
  EXPECT_TRUE(stop.ok());
  stop_ = *std::move(stop);
  thread_ = std::thread([this] { Run(); });
}

TcpRelay::~TcpRelay() {
  base::SignalEventFd(stop_.get());
  thread_.join();
}

std::string TcpRelay::address() const {
  return "127.0.0.1:" + std::to_string(port_);
}

void TcpRelay::Accept() {
  Pair pair;
  pair.near =
      base::UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  pair.far = Socket();
  const sockaddr_in address = Loopback(target_);
  // A daemon that is not there: the client sees its connection end.
  if (connect(pair.far.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof address) == 0) {
    const int at_once = 1;
    setsockopt(pair.far.get(), IPPROTO_TCP, TCP_NODELAY, &at_once,
               sizeof at_once);
    pairs_.push_back(std::move(pair));
  }
}

bool TcpRelay::Carry(int from, int to, bool from_client) {
  std::array<char, 16384> bytes{};
  const ssize_t got = read(from, bytes.data(), bytes.size());
  if (got <= 0) return false;
  if (from_client && left_.fetch_sub(got) <= got) {
    left_ = INT64_MAX;
    ++lost_;
    return false;
  }
  const size_t most = from_client ? piece_.load() : bytes.size();
  for (ssize_t sent = 0; sent < got;) {
    const size_t size = std::min(static_cast<size_t>(got - sent), most);
    const ssize_t more = send(to, bytes.data() + sent, size, MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return true;
}

void TcpRelay::Run() {
  for (;;) {
    std::vector<pollfd> waits = {{stop_.get(), POLLIN, 0},
                                 {listener_.get(), POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      waits.push_back({pair.near.get(), POLLIN, 0});
      waits.push_back({pair.far.get(), POLLIN, 0});
    }
    poll(waits.data(), waits.size(), -1);
    if (waits[0].revents != 0) return;
    size_t next = 2;
    for (Pair& pair : pairs_) {
      if (waits[next++].revents != 0) {
        pair.over |= !Carry(pair.near.get(), pair.far.get(), true);
      }
      if (waits[next++].revents != 0 && !pair.over) {
        pair.over |= !Carry(pair.far.get(), pair.near.get(), false);
      }
    }
    pairs_.remove_if([](const Pair& pair) { return pair.over; });
    if (waits[1].revents != 0) Accept();
  }
}

}  // namespace rknnd::integration
