// A client that means no good: speaks to the session socket without our
// library, in all the ways that its dice say, until its time is over. It never
// expects anything, so it succeeds whatever the daemon does to it; that the
// daemon lives and serves others is the campaign's to see.
//
//   rknnd-torture-hostile --socket PATH --ms N --seed N

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"
#include "proto/wire/ring.h"

namespace rknnd::torture {
namespace {

constexpr int kAnswerMs = 200;

class Enemy {
 public:
  Enemy(std::string socket, base::Nanoseconds end, uint64_t seed)
      : path_(std::move(socket)), end_(end), random_(seed) {}

  void Work() {
    using Deed = void (Enemy::*)();
    constexpr std::array<Deed, 7> kDeeds = {
        &Enemy::SayNoise,      &Enemy::SayFramesOfNoise, &Enemy::SendOddFds,
        &Enemy::NeverRead,     &Enemy::SpoilRing,        &Enemy::StandInTheDoor,
        &Enemy::LeaveInTheAct,
    };
    while (!Over()) (this->*kDeeds.at(Throw(kDeeds.size())))();
  }

 private:
  [[nodiscard]] bool Over() const { return clock_.Now() >= end_; }
  size_t Throw(size_t below) { return random_() % below; }

  base::UniqueFd Connect() {
    auto socket = base::ConnectUnix(path_);
    // The daemon may be dead just now.
    if (!socket) poll(nullptr, 0, 5);
    return socket ? *std::move(socket) : base::UniqueFd();
  }

  std::vector<std::byte> Noise(size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

  // Never waits. Not by base::SendMessage, which refuses what good peers do not
  // send.
  static bool Send(int socket, std::span<const std::byte> bytes,
                   std::span<const int> fds = {}) {
    iovec part = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    std::vector<std::byte> control(CMSG_SPACE(fds.size_bytes()));
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
  }

  // A header that is right, of a verb that there may be, and this body.
  static std::vector<std::byte> Framed(uint16_t verb,
                                       std::span<const std::byte> body) {
    wire::FrameHeader header{};
    header.size = static_cast<uint32_t>(body.size());
    header.verb = verb;
    header.request = 1;
    std::vector<std::byte> bytes(sizeof header + body.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    std::copy(body.begin(), body.end(), bytes.begin() + sizeof header);
    return bytes;
  }

  // A connection that has said hello, with what the daemon gave for that.
  std::vector<base::UniqueFd> Greet(int socket) {
    wire::Hello hello{};
    hello.protocol_min = wire::kProtocolMinimum;
    hello.protocol_max = wire::kProtocolCurrent;
    wire::SetText(hello.comm, "hostile");
    const auto body = wire::Encode(hello);
    if (!body || !Send(socket, Framed(static_cast<uint16_t>(wire::Verb::kHello),
                                      *body))) {
      return {};
    }
    pollfd entry = {socket, POLLIN, 0};
    if (poll(&entry, 1, kAnswerMs) <= 0) return {};
    auto answer = wire::ReceiveFrame(socket, base::Block::kNo);
    if (!answer || answer->kind != wire::FrameResult::Kind::kFrame) return {};
    return std::move(answer->frame.fds);
  }

  void SayNoise() {
    const base::UniqueFd socket = Connect();
    if (Throw(2) == 0) Greet(socket.get());
    for (size_t i = Throw(20); i > 0; --i) {
      if (!Send(socket.get(), Noise(Throw(2000)))) return;
    }
  }

  void SayFramesOfNoise() {
    const base::UniqueFd socket = Connect();
    Greet(socket.get());
    for (size_t i = Throw(50); i > 0; --i) {
      const auto verb =
          static_cast<uint16_t>(Throw(2) == 0 ? Throw(30) : 100 + Throw(110));
      if (!Send(socket.get(), Framed(verb, Noise(Throw(200))))) return;
    }
    // Some answers, or none at all.
    pollfd entry = {socket.get(), POLLIN, 0};
    poll(&entry, 1, static_cast<int>(Throw(20)));
  }

  // Descriptors of the wrong kinds, too many of them, and where none belong.
  void SendOddFds() {
    const base::UniqueFd socket = Connect();
    Greet(socket.get());
    const base::UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    const base::UniqueFd folder(open("/proc/self", O_RDONLY | O_CLOEXEC));
    const base::UniqueFd memory(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    auto memfd = base::MakeMemfd("torture-hostile", 4096);
    auto growing = base::MakeGrowingMemfd("torture-hostile");
    auto event = base::MakeEventFd();
    auto pair = base::BytePair();
    if (!memfd || !growing || !event || !pair) return;
    const std::array<int, 8> all = {
        null.get(),     folder.get(), memory.get(),      memfd->get(),
        growing->get(), event->get(), pair->first.get(), socket.get()};
    for (int i = 0; i < 20; ++i) {
      std::vector<int> fds(1 + Throw(12));
      for (int& fd : fds) fd = all.at(Throw(all.size()));
      const auto verb = static_cast<uint16_t>(1 + Throw(28));
      if (!Send(socket.get(), Framed(verb, Noise(Throw(64))), fds)) return;
    }
  }

  // Asks for reports as long as the daemon takes questions, and reads no
  // answer.
  void NeverRead() {
    const base::UniqueFd socket = Connect();
    Greet(socket.get());
    wire::ReportRequest request{};
    const auto body = wire::Encode(request);
    if (!body) return;
    const auto frame =
        Framed(static_cast<uint16_t>(wire::Verb::kReport), *body);
    for (int i = 0; i < 5000 && !Over(); ++i) {
      if (!Send(socket.get(), frame)) break;
    }
    poll(nullptr, 0, static_cast<int>(Throw(100)));
  }

  void SpoilRing() {
    const base::UniqueFd socket = Connect();
    const std::vector<base::UniqueFd> fds = Greet(socket.get());
    if (fds.size() < 2) return;
    auto ring = base::Mapping::OfFd(fds[0].get(), 0, wire::kRingBytes,
                                    base::Mapping::Access::kReadWrite);
    if (!ring) return;
    for (int i = 0; i < 50 && !Over(); ++i) {
      const std::vector<std::byte> noise = Noise(64);
      const size_t at = Throw(ring->size() - noise.size());
      std::memcpy(ring->data() + (Throw(4) == 0 ? 0 : at), noise.data(),
                  noise.size());
      base::SignalEventFd(fds[1].get());
      if (Throw(8) == 0) poll(nullptr, 0, 1);
    }
  }

  void StandInTheDoor() {
    std::vector<base::UniqueFd> sockets;
    for (size_t i = 1 + Throw(40); i > 0 && !Over(); --i) {
      sockets.push_back(Connect());
      if (Throw(3) == 0) Greet(sockets.back().get());
    }
    poll(nullptr, 0, static_cast<int>(Throw(50)));
  }

  // Asks for something dear and is gone before it is there.
  void LeaveInTheAct() {
    const base::UniqueFd socket = Connect();
    Greet(socket.get());
    // No more than a user's share: the others are of the same user.
    for (size_t i = 1 + Throw(8); i > 0; --i) {
      wire::AllocateBuffer buffer{};
      buffer.buffer = static_cast<uint32_t>(i);
      buffer.size = uint64_t{1} << (12 + Throw(9));
      const auto body = wire::Encode(buffer);
      if (!body) return;
      Send(socket.get(),
           Framed(static_cast<uint16_t>(wire::Verb::kAllocateBuffer), *body));
    }
  }

  const std::string path_;
  const base::Nanoseconds end_;
  const base::MonotonicClock clock_;
  std::mt19937_64 random_;
};

int Main(int argc, char** argv) {
  CLI::App app("A client that means no good");
  std::string socket;
  int64_t ms = 0;
  uint64_t seed = 1;
  app.add_option("--socket", socket, "the session socket")->required();
  app.add_option("--ms", ms, "how long")
      ->required()
      ->check(CLI::Range(0, 3'600'000));
  app.add_option("--seed", seed, "of its dice");
  CLI11_PARSE(app, argc, argv);
  const base::MonotonicClock clock;
  Enemy(socket, clock.Now() + ms * base::kMillisecond, seed).Work();
  return 0;
}

}  // namespace
}  // namespace rknnd::torture

int main(int argc, char** argv) { return rknnd::torture::Main(argc, argv); }
