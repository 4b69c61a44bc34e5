// What a peer must have sent before gRPC hears of it. The loop makes single
// turns, in which it sees all that is there.

#include "daemon/transport/grpc/relay/relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"
#include "daemon/transport/grpc/peer_table.h"
#include "daemon/transport/session/testing/recorded_lines.h"

namespace rknnd::transport {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kOpening = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Of twelve bytes: two of them.
const std::string kSettingsFrame("\0\0\x0c\4\0\0\0\0\0\0\1\0\0\0\0\0\2\0\0\0\0",
                                 21);
const std::string kAcknowledgement("\0\0\0\4\1\0\0\0\0", 9);
const std::string kPingFrame("\0\0\x08\6\0\0\0\0\0--------", 17);

class RelayTest : public ::testing::Test {
 protected:
  // The peer's end of a connection that the relay has taken.
  base::UniqueFd Dial(const std::string& host = "") {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                         ends.data()),
              0);
    AcceptedConnection connection;
    connection.fd.reset(ends[1]);
    connection.address = "a peer";
    connection.host = host;
    relay_.Take(std::move(connection));
    return base::UniqueFd(ends[0]);
  }
  void Send(const base::UniqueFd& peer, const std::string& text) {
    ASSERT_EQ(write(peer.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
    Turn();
  }
  void Turn() {
    loop_->Quit();
    loop_->Run();
  }
  static std::string Read(const base::UniqueFd& fd) {
    std::string text(4096, 0);
    const ssize_t got = read(fd.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }
  static std::string CallsTakenBack(uint32_t count) {
    std::string calls;
    for (uint32_t i = 0; i < count; ++i) {
      const auto stream = static_cast<char>(i % 100 * 2 + 1);
      std::string high(1, static_cast<char>(i / 100));
      calls += std::string("\0\0\1\1\4\0\0", 7) + high + stream + "h";
      calls += std::string("\0\0\4\3\0\0\0", 7) + high + stream + "code";
    }
    return calls;
  }
  // How many calls gRPC is given meanwhile on its so-manieth connection. It
  // acknowledges all settings.
  int OpenedAt(size_t index) {
    constexpr size_t kHeader = 9;
    const base::UniqueFd& grpc = given_.at(index);
    std::string& text = begun_[index];
    int opened = 0;
    for (std::string more; !(more = Read(grpc)).empty(); Turn()) {
      text += more;
      for (; text.size() >= kHeader; text.erase(0, kHeader + text[2])) {
        if (text[3] == 1) ++opened;
        if (text[3] == 4) Send(grpc, kAcknowledgement);
      }
    }
    return opened;
  }
  static bool IsClosed(const base::UniqueFd& peer) {
    // Reset, where it had sent more than was read.
    char byte = 0;
    return recv(peer.get(), &byte, 1, MSG_PEEK) == 0 || errno != EAGAIN;
  }

  base::FakeClock clock_;
  testing::RecordedLines lines_;
  FailureLog failures_{&lines_, &clock_};
  std::unique_ptr<base::EventLoop> loop_ = *base::EventLoop::Create(&clock_);
  PeerTable peers_;
  const std::atomic<int64_t> calls_{0};
  std::vector<base::UniqueFd> given_;    // to gRPC
  std::map<size_t, std::string> begun_;  // of it: a frame that is not whole
  Relay relay_{
      {},      loop_.get(),
      &clock_, &failures_,
      &peers_, nullptr,
      &calls_, [this](base::UniqueFd fd) { given_.push_back(std::move(fd)); },
      [] {}};
};

TEST_F(RelayTest, GrpcIsGivenAPeerThatHasGreeted) {
  const base::UniqueFd peer = Dial();
  const std::string greeting = kOpening + kSettingsFrame;
  for (const char byte : greeting) {
    EXPECT_THAT(given_, IsEmpty());
    Send(peer, std::string(1, byte));
  }
  ASSERT_THAT(given_, SizeIs(1));
  EXPECT_EQ(Read(given_[0]), greeting);
  Send(peer, kPingFrame);
  EXPECT_EQ(Read(given_[0]), kPingFrame);
}

TEST_F(RelayTest, WhatFollowsTheGreetingAtOnceIsPassedOn) {
  const base::UniqueFd peer = Dial();
  Send(peer, kOpening + kSettingsFrame + kPingFrame);
  ASSERT_THAT(given_, SizeIs(1));
  EXPECT_EQ(Read(given_[0]), kOpening + kSettingsFrame + kPingFrame);
}

TEST_F(RelayTest, GrpcNeverHearsOfAPeerThatEndsBefore) {
  for (const size_t size : {size_t{0}, size_t{16}, kOpening.size() + 12}) {
    base::UniqueFd peer = Dial();
    Send(peer, (kOpening + kSettingsFrame).substr(0, size));
    peer.reset();
    Turn();
  }
  EXPECT_THAT(given_, IsEmpty());
  bool finished = false;
  relay_.Finish(3600 * base::kSecond, [&] { finished = true; });
  Turn();
  EXPECT_TRUE(finished);
}

TEST_F(RelayTest, WhoDoesNotGreetInTimeIsCutOff) {
  const base::UniqueFd peer = Dial();
  Send(peer, kOpening);
  clock_.Advance(RelayOptions().handshake - 1);
  Turn();
  EXPECT_FALSE(IsClosed(peer));
  clock_.Advance(1);
  Turn();
  EXPECT_TRUE(IsClosed(peer));
}

TEST_F(RelayTest, AConnectionThatHasGreetedMayBeSilent) {
  const base::UniqueFd peer = Dial();
  Send(peer, kOpening + kSettingsFrame);
  clock_.Advance(3600 * base::kSecond);
  Turn();
  EXPECT_FALSE(IsClosed(peer));
}

TEST_F(RelayTest, WhatAPeerAskedThatHasGoneIsNotWorkedOn) {
  base::UniqueFd peer = Dial();
  Send(peer, kOpening + kSettingsFrame);
  ASSERT_THAT(given_, SizeIs(1));
  Read(given_[0]);
  ASSERT_GT(write(peer.get(), kPingFrame.data(), kPingFrame.size()), 0);
  peer.reset();
  Turn();
  EXPECT_TRUE(IsClosed(given_[0]));
  EXPECT_THAT(Read(given_[0]), IsEmpty());
}

TEST_F(RelayTest, CallsThatAreTakenBackHaveARate) {
  constexpr int kRounds = 5, kOfARound = Http2Room::kUnseenResets;
  const int at_once = static_cast<int>(RelayOptions().resets_at_once);
  std::vector<base::UniqueFd> peers;
  for (const char* host : {"one", "one", "another"}) {
    peers.push_back(Dial(host));
    Send(peers.back(), kOpening + kSettingsFrame);
    Read(given_.back());
    Send(given_.back(), kAcknowledgement);
    Send(peers.back(), CallsTakenBack(/*count=*/1000));
  }
  // The first round is counted when the second is to begin.
  EXPECT_EQ(OpenedAt(0), at_once + kOfARound);
  EXPECT_EQ(OpenedAt(1), kOfARound);
  EXPECT_EQ(OpenedAt(2), at_once + kOfARound);
  clock_.Advance(RelayOptions().reset_interval * kRounds * kOfARound);
  Turn();
  EXPECT_EQ(OpenedAt(0) + OpenedAt(1), kRounds * kOfARound);
  EXPECT_EQ(OpenedAt(2), kRounds * kOfARound);
}

TEST_F(RelayTest, WhatIsNoGreetingEndsTheConnection) {
  const base::UniqueFd web = Dial();
  Send(web, "GET / HTTP/1.1\r\n");
  const base::UniqueFd other = Dial();
  Send(other, kOpening + kPingFrame);
  // Not at once, as it may be back as soon as it hears of it.
  EXPECT_FALSE(IsClosed(web));
  clock_.Advance(TurnedAway::kHeld);
  Turn();
  EXPECT_TRUE(IsClosed(web));
  EXPECT_TRUE(IsClosed(other));
  EXPECT_THAT(given_, IsEmpty());
  ASSERT_THAT(lines_.lines, SizeIs(2));
  EXPECT_THAT(lines_.lines[0], HasSubstr("it speaks no HTTP/2"));
  EXPECT_THAT(lines_.lines[1], HasSubstr("it begins without settings"));
}

}  // namespace
}  // namespace rknnd::transport
