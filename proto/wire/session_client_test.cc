// The client's end of the session socket, against a daemon whose frames the
// test writes.

#include "proto/wire/session_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/socket.h"

namespace rknnd::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

// The daemon's frames are sent before the client waits: SOCK_SEQPACKET keeps
// them, and the client numbers its requests from 1.
class SessionClientTest : public ::testing::Test {
 protected:
  SessionClientTest() {
    auto pair = base::SeqpacketPair();
    EXPECT_TRUE(pair.ok()) << pair.error().message;
    daemon_ = std::move(pair->first);
    client_.emplace(std::move(pair->second));
  }

  void Reply(uint32_t request, std::vector<std::byte> body,
             base::Code code = base::Code::kOk,
             std::vector<base::UniqueFd> fds = {}) {
    Frame frame;
    frame.kind = FrameKind::kReply;
    frame.request = request;
    frame.code = code;
    frame.body = std::move(body);
    frame.fds = std::move(fds);
    ASSERT_TRUE(SendFrame(daemon_.get(), frame, base::Block::kNo).ok());
  }

  void Say(const std::string& text) {
    LogEvent event{};
    SetText(event.text, text);
    Frame frame;
    frame.verb = Verb::kLogEvent;
    frame.kind = FrameKind::kEvent;
    frame.body = *Encode(event);
    ASSERT_TRUE(SendFrame(daemon_.get(), frame, base::Block::kNo).ok());
  }

  static std::vector<std::byte> WelcomeOf(uint32_t protocol) {
    Welcome welcome{};
    welcome.protocol = protocol;
    SetText(welcome.daemon_version, "9.9");
    return *Encode(welcome);
  }

  base::Expected<Frame> Request() {
    return client_->Request(Verb::kReport, {}, kPatience);
  }

  static base::Nanoseconds Deadline() {
    return base::MonotonicClock().Now() + kPatience;
  }

  base::UniqueFd daemon_;
  std::optional<SessionClient> client_;
};

TEST_F(SessionClientTest, HelloIsAnsweredWithDescriptors) {
  auto ends = base::SeqpacketPair();
  ASSERT_TRUE(ends.ok());
  std::vector<base::UniqueFd> fds;
  fds.push_back(std::move(ends->first));
  fds.push_back(std::move(ends->second));
  Reply(1, WelcomeOf(kProtocolCurrent), base::Code::kOk, std::move(fds));

  ASSERT_TRUE(
      client_->SayHello({.version = "1", .program = "test"}, Deadline()).ok());
  const auto greeting = client_->AwaitWelcome(Deadline());

  ASSERT_TRUE(greeting.ok()) << greeting.error().message;
  EXPECT_STREQ(greeting->welcome.daemon_version, "9.9");
  EXPECT_EQ(greeting->fds.size(), 2U);
  const auto hello = ReceiveFrame(daemon_.get(), base::Block::kNo);
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->frame.verb, Verb::kHello);
  EXPECT_STREQ(Decode<Hello>(hello->frame.body)->comm, "test");
}

TEST_F(SessionClientTest, DaemonOfAnotherProtocolIsRefused) {
  Reply(1, WelcomeOf(kProtocolCurrent + 1));

  ASSERT_TRUE(client_->SayHello({}, Deadline()).ok());
  const auto greeting = client_->AwaitWelcome(Deadline());

  ASSERT_FALSE(greeting.ok());
  EXPECT_EQ(greeting.error().code, base::Code::kFailedPrecondition);
  EXPECT_THAT(greeting.error().message, HasSubstr("update the older side"));
}

TEST_F(SessionClientTest, ReplyThatSaysNoIsItsErrorAndTheConnectionIsWhole) {
  Reply(1, EncodeFailure("no such context"), base::Code::kNotFound);
  Reply(2, {});

  const auto refused = Request();

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::Code::kNotFound);
  EXPECT_EQ(refused.error().message, "no such context");
  EXPECT_FALSE(client_->lost());
  EXPECT_TRUE(Request().ok());
}

TEST_F(SessionClientTest, EventsAndLateRepliesAreNotTheReply) {
  std::vector<Verb> events;
  client_->set_on_event(
      [&](const Frame& event) { events.push_back(event.verb); });
  Reply(7, {});
  Say("hot");
  Reply(1, std::vector<std::byte>(3));

  const auto reply = Request();

  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->body.size(), 3U);
  EXPECT_THAT(events, ElementsAre(Verb::kLogEvent));
}

TEST_F(SessionClientTest, LastWordsOfADaemonThatGoesAreTheReason) {
  Say("too many sessions");
  // What the client sends is read, so that closing is no reset.
  const Frame request = client_->NewRequest(Verb::kReport, {});
  ASSERT_TRUE(client_->TrySend(request).ok());
  ASSERT_TRUE(ReceiveFrame(daemon_.get(), base::Block::kNo).ok());
  daemon_.reset();

  const auto gone = client_->Receive();

  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, base::Code::kUnavailable);
  EXPECT_THAT(gone.error().message, HasSubstr("said: too many sessions"));
  EXPECT_TRUE(client_->lost());
}

TEST_F(SessionClientTest, RequestIsGivenUpWhenTheWaitIs) {
  client_->set_wait([](int /*fd*/, int /*milliseconds*/) {
    return SessionClient::Waited::kCancelled;
  });

  const auto reply = Request();

  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, base::Code::kCancelled);
}

TEST_F(SessionClientTest, ReplyThatComesTooLateIsDroppedByTheNextRequest) {
  const auto late = client_->Request(Verb::kReport, {}, 0);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, base::Code::kDeadlineExceeded);
  EXPECT_FALSE(client_->lost());
  Reply(1, {});
  Reply(2, std::vector<std::byte>(5));

  const auto reply = Request();

  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->body.size(), 5U);
}

TEST_F(SessionClientTest, NothingToReceiveSaysSo) {
  const auto reply = client_->Receive();

  ASSERT_TRUE(reply.ok());
  EXPECT_FALSE(reply->has_value());
}

}  // namespace
}  // namespace rknnd::wire
