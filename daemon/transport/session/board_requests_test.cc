// The verbs about the board over a connection: what it holds goes with it, and
// a client that does not read loses lines of the log, nothing else.

#include "daemon/transport/session/board_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/transport/session/testing/test_daemon.h"

namespace rknnd::transport::testing {
namespace {

using ::testing::HasSubstr;

// Answers at once, on the loop; remembers who holds what.
class FakeBoard final : public Board {
 public:
  void Diagnose(FindingsCallback done) override {
    if (patient) {
      waiting = std::move(done);
      return;
    }
    done({{"driver", Finding::Level::kWarning, "old", "update it"}});
  }
  void ReadClocks(ClocksCallback done) override {
    done(BoardState{Clocks(), "load 7 %"});
  }
  void PinClocks(PinCallback done) override {
    if (!can_pin) {
      return done(absl::FailedPreconditionError("no clock in '/sys'"), {});
    }
    auto pin = std::make_shared<FakePin>();
    pins.push_back(pin);
    done(std::move(pin), Clocks());
  }
  std::unique_ptr<LogFollower> FollowLog(uint32_t level, uint32_t recent,
                                         LineCallback line) override {
    followed_level = level;
    followed_recent = recent;
    follower = std::move(line);
    return std::make_unique<FakeFollower>(this);
  }
  uint32_t SetLogLevel(uint32_t level) override {
    return std::exchange(log_level, level);
  }

  [[nodiscard]] size_t held_pins() const {
    size_t held = 0;
    for (const auto& pin : pins) held += pin.expired() ? 0 : 1;
    return held;
  }

  bool can_pin = true, patient = false;
  FindingsCallback waiting;
  LineCallback follower;
  uint32_t followed_level = 0, followed_recent = 0, log_level = 2;
  std::vector<std::weak_ptr<ClockPin>> pins;

 private:
  class FakePin final : public ClockPin {};
  class FakeFollower final : public LogFollower {
   public:
    explicit FakeFollower(FakeBoard* board) : board_(board) {}
    ~FakeFollower() override { board_->follower = nullptr; }

   private:
    FakeBoard* const board_;
  };
  [[nodiscard]] std::vector<BoardClock> Clocks() const {
    return {{"npu", 300, 100, 1000, "ondemand", held_pins() > 0}};
  }
};

class BoardRequestsTest : public ::testing::Test {
 protected:
  static TestDaemonOptions With(Board* board) {
    TestDaemonOptions options;
    options.board = board;
    return options;
  }
  TestClient Connect(bool admin = true) {
    TestClient client(daemon_.Connect(admin));
    EXPECT_EQ(client.SayHello().code, base::Code::kOk);
    return client;
  }
  size_t HeldPins() {
    size_t held = 0;
    daemon_.RunOnLoop([&] { held = board_.held_pins(); });
    return held;
  }
  static wire::LogLine NextLine(const TestClient& client) {
    auto received = wire::ReceiveFrame(client.socket(), base::Block::kYes);
    EXPECT_TRUE(received.ok());
    const auto line = wire::Decode<wire::LogLine>(received->frame.body);
    EXPECT_TRUE(line.ok());
    EXPECT_EQ(received->frame.verb, wire::Verb::kLogLine);
    return line.ok() ? *line : wire::LogLine{};
  }

  FakeBoard board_;
  TestDaemon daemon_{With(&board_)};
};

TEST_F(BoardRequestsTest, FindingsCarryTheirRemedy) {
  TestClient client = Connect(/*admin=*/false);
  const wire::Frame reply = client.Call(wire::Verb::kDoctor, wire::Empty{});
  const auto report = wire::Decode<wire::DoctorReply>(reply.body);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->findings.size(), 1U);
  EXPECT_STREQ(report->findings[0].check, "driver");
  EXPECT_EQ(report->findings[0].severity, 2U);
  EXPECT_STREQ(report->findings[0].remedy, "update it");
}

TEST_F(BoardRequestsTest, DoctorThatAnswersAfterItsClientIsGoneDoesNoHarm) {
  board_.patient = true;
  {
    TestClient client = Connect();
    wire::Frame request;
    request.verb = wire::Verb::kDoctor;
    request.request = 100;
    request.body = *wire::Encode(wire::Empty{});
    ASSERT_TRUE(
        wire::SendFrame(client.socket(), request, base::Block::kYes).ok());
    // A second one is refused while the first is waited for.
    const wire::Frame second = client.Call(wire::Verb::kDoctor, wire::Empty{});
    EXPECT_EQ(second.code, base::Code::kResourceExhausted);
  }
  daemon_.WaitUntil([](const auto& status) { return status.sessions == 0; });
  daemon_.RunOnLoop([&] { std::exchange(board_.waiting, nullptr)({}); });
}

TEST_F(BoardRequestsTest, PinLastsAsLongAsTheConnection) {
  TestClient first = Connect();
  TestClient second = Connect();
  const wire::Frame reply =
      first.Call(wire::Verb::kPinClocks, wire::PinClocks{true});
  const auto clocks = wire::Decode<wire::ClocksReply>(reply.body);
  ASSERT_TRUE(clocks.ok());
  EXPECT_EQ(clocks->clocks[0].max_hz, 1000U);
  const wire::Frame looked = first.Call(wire::Verb::kClocks, wire::Empty{});
  EXPECT_EQ(wire::Decode<wire::ClocksReply>(looked.body)->npu, "load 7 %");
  second.Call(wire::Verb::kPinClocks, wire::PinClocks{true});
  EXPECT_EQ(HeldPins(), 2U);
  // Asked twice is held once.
  second.Call(wire::Verb::kPinClocks, wire::PinClocks{true});
  EXPECT_EQ(HeldPins(), 2U);

  first.Call(wire::Verb::kPinClocks, wire::PinClocks{false});
  EXPECT_EQ(HeldPins(), 1U);
  second.Close();
  daemon_.WaitUntil([](const auto& status) { return status.sessions == 1; });
  EXPECT_EQ(HeldPins(), 0U);
}

TEST_F(BoardRequestsTest, PinThatFailsSaysWhy) {
  board_.can_pin = false;
  TestClient client = Connect();
  const wire::Frame reply =
      client.Call(wire::Verb::kPinClocks, wire::PinClocks{true});
  EXPECT_EQ(reply.code, base::Code::kFailedPrecondition);
  EXPECT_THAT(wire::DecodeFailure(reply).message, HasSubstr("'/sys'"));
}

TEST_F(BoardRequestsTest, WhatChangesThingsForOthersIsForOperators) {
  TestClient client = Connect(/*admin=*/false);
  EXPECT_EQ(client.Call(wire::Verb::kPinClocks, wire::PinClocks{true}).code,
            base::Code::kPermissionDenied);
  EXPECT_EQ(client.Call(wire::Verb::kSetLogLevel, wire::SetLogLevel{3}).code,
            base::Code::kPermissionDenied);
  EXPECT_EQ(client.Call(wire::Verb::kReset, wire::ResetRequest{}).code,
            base::Code::kPermissionDenied);
  EXPECT_EQ(client.Call(wire::Verb::kClocks, wire::Empty{}).code,
            base::Code::kOk);
}

TEST_F(BoardRequestsTest, LevelIsSetWithinItsRange) {
  TestClient client = Connect();
  const auto ask = [&](uint32_t level) {
    const wire::Frame reply =
        client.Call(wire::Verb::kSetLogLevel, wire::SetLogLevel{level});
    const auto before = wire::Decode<wire::SetLogLevel>(reply.body);
    return before.ok() ? before->level : 99;
  };
  EXPECT_EQ(ask(4'000'000'000), 2U);
  EXPECT_EQ(ask(0), 5U);
}

TEST_F(BoardRequestsTest, LinesComeUntilTheConnectionEnds) {
  TestClient client = Connect(/*admin=*/false);
  client.Call(wire::Verb::kFollowLogs, wire::FollowLogs{9, 20});
  daemon_.RunOnLoop([&] {
    EXPECT_EQ(board_.followed_level, 5U);
    EXPECT_EQ(board_.followed_recent, 20U);
    EXPECT_TRUE(board_.follower({1, "hot", 77, 3}));
  });
  const wire::LogLine line = NextLine(client);
  EXPECT_STREQ(line.text, "hot");
  EXPECT_EQ(line.level, 1U);
  EXPECT_EQ(line.time_ns, 77U);
  EXPECT_EQ(line.lost, 3U);

  client.Close();
  daemon_.WaitUntil([](const auto& status) { return status.sessions == 0; });
  daemon_.RunOnLoop([&] { EXPECT_EQ(board_.follower, nullptr); });
}

TEST_F(BoardRequestsTest, FollowerThatDoesNotReadLosesLinesNotItsConnection) {
  TestClient client = Connect();
  client.Call(wire::Verb::kFollowLogs, wire::FollowLogs{2, 0});
  size_t taken = 0;
  daemon_.RunOnLoop([&] {
    const std::string text(1000, 'x');
    for (int i = 0; i < 10'000; ++i) {
      taken += board_.follower({2, text, 0, 0}) ? 1 : 0;
    }
  });
  EXPECT_LT(taken, 10'000U);
  for (size_t i = 0; i < taken; ++i) NextLine(client);
  // It is still there, and so is its place at the log.
  EXPECT_EQ(client.Call(wire::Verb::kClocks, wire::Empty{}).code,
            base::Code::kOk);
  daemon_.RunOnLoop([&] { EXPECT_TRUE(board_.follower({2, "again", 0, 5})); });
  EXPECT_EQ(NextLine(client).lost, 5U);
}

TEST_F(BoardRequestsTest, ResetOfADeviceThatHasNoneSaysSo) {
  TestClient client = Connect();
  const wire::Frame reply =
      client.Call(wire::Verb::kReset, wire::ResetRequest{});
  EXPECT_EQ(reply.code, base::Code::kUnimplemented);
  EXPECT_THAT(wire::DecodeFailure(reply).message,
              HasSubstr("has nothing to reset"));
  EXPECT_EQ(client.Call(wire::Verb::kReset, wire::ResetRequest{1}).code,
            base::Code::kInvalidArgument);
}

TEST_F(BoardRequestsTest, QuarantineIsShownAndNobodyIsReleasedFromNone) {
  TestClient client = Connect();
  const wire::Frame shown =
      client.Call(wire::Verb::kQuarantine, wire::QuarantineRequest{});
  ASSERT_EQ(shown.code, base::Code::kOk);
  EXPECT_TRUE(wire::Decode<wire::QuarantineReply>(shown.body)->models.empty());
  wire::QuarantineRequest release{};
  wire::SetText(release.release, "12345678");
  EXPECT_EQ(client.Call(wire::Verb::kQuarantine, release).code,
            base::Code::kNotFound);
}

TEST(WithoutBoardTest, ItsVerbsSayWhoAnswersThem) {
  TestDaemon daemon;
  TestClient client(daemon.Connect(/*admin=*/true));
  client.SayHello();
  for (const wire::Verb verb : {wire::Verb::kDoctor, wire::Verb::kClocks}) {
    const wire::Frame reply = client.Call(verb, wire::Empty{});
    EXPECT_EQ(reply.code, base::Code::kUnimplemented);
    EXPECT_THAT(wire::DecodeFailure(reply).message, HasSubstr("rknnd only"));
  }
}

}  // namespace
}  // namespace rknnd::transport::testing
