#include "daemon/transport/grpc/relay/http2_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace rknnd::transport {
namespace {

using ::testing::HasSubstr;
using Next = Http2Guard::Next;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum Type : uint8_t {
  kData,
  kHeaders,
  kPriority,
  kReset,
  kSettings,
  kPush,
  kPing,
  kGoaway,
  kWindow,
  kContinuation,
};
constexpr uint8_t kAck = 1, kEndStream = 1, kEndHeaders = 4, kPadded = 8;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream,
                  const std::string& payload = "") {
  const auto size = static_cast<uint32_t>(payload.size());
  std::string frame;
  for (const int shift : {16, 8, 0}) {
    frame.push_back(static_cast<char>(size >> shift & 0xff));
  }
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) {
    frame.push_back(static_cast<char>(stream >> shift & 0xff));
  }
  return frame + payload;
}

std::string Message(uint32_t size) {
  std::string message(1, '\0');
  for (const int shift : {24, 16, 8, 0}) {
    message.push_back(static_cast<char>(size >> shift & 0xff));
  }
  return message + std::string(size, 'm');
}

// Of a fixed size; calls may be opened or not.
class Room final : public Http2Room {
 public:
  bool Take(uint64_t bytes) override {
    if (bytes > size - used) return false;
    used += bytes;
    return true;
  }
  void GiveBack(uint64_t bytes) override {
    ASSERT_LE(bytes, used);
    used -= bytes;
  }
  bool MayOpen(uint32_t resets) override {
    return resets < kUnseenResets || calls_ended;
  }

  uint64_t size = 1 << 20, used = 0;
  bool calls_ended = true;
};

class Http2GuardTest : public ::testing::Test {
 protected:
  Http2GuardTest() {
    EXPECT_EQ(Send(kPreface + Frame(kSettings, 0, 0)), Next::kMore);
    guard_.FromServer(Bytes(Frame(kSettings, 0, 0)));
    guard_.FromServer(Bytes(Frame(kSettings, kAck, 0)));
    EXPECT_EQ(Send(Frame(kSettings, kAck, 0)), Next::kMore);
  }

  static std::span<const std::byte> Bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
  }
  // What is to be shown again is shown again before `text`, in pieces of
  // `cut_` bytes.
  Next Send(const std::string& text) {
    kept_ += text;
    while (!kept_.empty()) {
      const std::string piece = kept_.substr(0, cut_);
      const Http2Guard::Verdict verdict = guard_.FromClient(Bytes(piece));
      EXPECT_LE(verdict.pass, piece.size());
      why_ = verdict.why;
      kept_.erase(0, verdict.pass);
      if (verdict.next == Next::kEnd) return Next::kEnd;
      if (verdict.pass == 0) return verdict.next;
      if (verdict.next == Next::kMark) ++marks_;
      EXPECT_TRUE(verdict.next != Next::kMore || verdict.pass == piece.size());
    }
    return Next::kMore;
  }
  std::string FromServer(const std::string& text) {
    const auto on = guard_.FromServer(Bytes(text));
    return {reinterpret_cast<const char*>(on.data()), on.size()};
  }
  static std::string Call(uint32_t stream) {
    return Frame(kHeaders, kEndHeaders, stream, "method");
  }
  void Answer(uint32_t stream) {
    guard_.FromServer(Bytes(Frame(kHeaders, kEndHeaders | kEndStream, stream)));
  }

  base::FakeClock clock_;
  Room room_;
  Http2Guard guard_{{4, 1 << 16, 1000}, &clock_, &room_};
  size_t cut_ = 1 << 20;
  std::string kept_, why_;
  int marks_ = 0;
};

TEST_F(Http2GuardTest, ACallPassesInAnySplitOfBytes) {
  uint32_t stream = 1;
  for (const size_t cut : {1, 2, 7, 9, 10, 1000}) {
    cut_ = cut;
    EXPECT_EQ(
        Send(Call(stream) + Frame(kData, kEndStream, stream, Message(100))),
        Next::kMore);
    EXPECT_EQ(guard_.streams(), 1U);
    EXPECT_EQ(room_.used, kCallBytes + 6 + 105);
    Answer(stream);
    EXPECT_EQ(guard_.streams(), 0U);
    EXPECT_EQ(room_.used, 0U);
    stream += 2;
  }
}

TEST_F(Http2GuardTest, HeadersWithoutEndAreEnded) {
  EXPECT_EQ(Send(Frame(kHeaders, 0, 1, std::string(400, 'h')) +
                 Frame(kContinuation, 0, 1, std::string(600, 'h'))),
            Next::kMore);
  EXPECT_EQ(Send(Frame(kContinuation, 0, 1, "h")), Next::kEnd);
  EXPECT_THAT(why_, HasSubstr("headers are too large"));
}

TEST_F(Http2GuardTest, HeadersInEmptyFramesAreEnded) {
  EXPECT_EQ(Send(Frame(kHeaders, 0, 1)), Next::kMore);
  Next next = Next::kMore;
  int frames = 0;
  for (; next == Next::kMore && frames < 1000; ++frames) {
    next = Send(Frame(kContinuation, 0, 1));
  }
  EXPECT_EQ(next, Next::kEnd);
  EXPECT_LT(frames, 20);
}

TEST_F(Http2GuardTest, WhatIsNoHttp2IsEnded) {
  const std::string wrong[] = {
      Frame(kContinuation, kEndHeaders, 1),
      Frame(kHeaders, 0, 1) + Frame(kData, 0, 1),
      Frame(kHeaders, 0, 1) + Frame(kContinuation, 0, 3),
      Frame(kPush, kEndHeaders, 1),
      Frame(kHeaders, kEndHeaders, 2),
      Frame(kData, kPadded, 1, "x"),
      Frame(kGoaway, 0, 0, std::string(5000, 'g')),
      Frame(kSettings, 0, 0, std::string(600, 's')),
      Frame(kData, 0, 1, std::string((1 << 16) + 1, 'd')),
      Frame(99, 0, 0, std::string((1 << 14) + 1, 'u')),
  };
  for (const std::string& bytes : wrong) {
    Http2Guard guard({4, 1 << 16, 1000}, &clock_, &room_);
    const std::string all = kPreface + Frame(kSettings, 0, 0) + bytes;
    const auto verdict = guard.FromClient(Bytes(all));
    EXPECT_EQ(verdict.next, Next::kEnd) << bytes.substr(0, 9);
    EXPECT_LT(verdict.pass, all.size());
  }
  Http2Guard guard({4, 1 << 16, 1000}, &clock_, &room_);
  EXPECT_EQ(guard.FromClient(Bytes("GET / HTTP/1.1\r\n")).next, Next::kEnd);
}

TEST_F(Http2GuardTest, NoMoreCallsAreOpenThanAllowed) {
  for (const uint32_t stream : {1, 3, 5, 7}) {
    EXPECT_EQ(Send(Call(stream)), Next::kMore);
  }
  EXPECT_EQ(Send(Call(9)), Next::kWait);
  EXPECT_EQ(Send(""), Next::kWait);
  Answer(3);
  EXPECT_EQ(Send(""), Next::kMore);
  EXPECT_EQ(guard_.streams(), 4U);
}

TEST_F(Http2GuardTest, WhoWasNotToldHowManyMayOpenSomeMore) {
  Http2Guard guard({4, 1 << 16, 1000}, &clock_, &room_);
  std::string calls = kPreface + Frame(kSettings, 0, 0);
  for (uint32_t stream = 1; stream < 200; stream += 2) calls += Call(stream);
  EXPECT_EQ(guard.FromClient(Bytes(calls)).next, Next::kWait);
  EXPECT_EQ(guard.streams(), 32U);
}

TEST_F(Http2GuardTest, CallsThatAreTakenBackMustBeReadAndEndFirst) {
  std::string calls;
  for (uint32_t stream = 1; stream < 200; stream += 2) {
    calls += Call(stream) + Frame(kReset, 0, stream, "code");
  }
  EXPECT_EQ(Send(calls), Next::kWait);
  EXPECT_EQ(guard_.streams(), 0U);
  EXPECT_EQ(marks_, 1);
  EXPECT_GT(kept_.size(), calls.size() / 2);
  EXPECT_EQ(Send(""), Next::kWait);
  // gRPC has read them, but holds them still.
  room_.calls_ended = false;
  EXPECT_TRUE(FromServer(Frame(kSettings, kAck, 0)).empty());
  const size_t before = kept_.size();
  EXPECT_EQ(Send(""), Next::kWait);
  EXPECT_EQ(kept_.size(), before);
  room_.calls_ended = true;
  EXPECT_EQ(Send(""), Next::kWait);
  EXPECT_EQ(marks_, 2);
  EXPECT_LT(kept_.size(), before);
}

TEST_F(Http2GuardTest, ThePeerSeesNoAnswerToAMark) {
  const std::string ack = Frame(kSettings, kAck, 0);
  const std::string answer = Frame(kData, 0, 99, "data");
  for (const size_t cut : {1, 4, 9, 13, 100}) {
    // A frame is begun before the mark; two acknowledgements are the peer's.
    Http2Guard guard({64, 1 << 16, 1000}, &clock_, &room_);
    std::string calls =
        kPreface + Frame(kSettings, 0, 0) + Frame(kSettings, 0, 0);
    for (uint32_t stream = 1; stream < 17; stream += 2) calls += Call(stream);
    for (uint32_t stream = 1; stream < 17; stream += 2) {
      calls += Frame(kReset, 0, stream, "code");
    }
    std::string sent;
    const auto say = [&](const std::string& text) {
      const auto on = guard.FromServer(Bytes(text));
      sent.append(reinterpret_cast<const char*>(on.data()), on.size());
    };
    say(answer.substr(0, 5));
    ASSERT_EQ(guard.FromClient(Bytes(calls)).next, Next::kMark);
    const std::string rest = answer.substr(5) + ack + answer + ack + answer +
                             ack + answer + ack + answer;
    for (size_t at = 0; at < rest.size(); at += cut) {
      say(rest.substr(at, cut));
    }
    EXPECT_EQ(sent,
              answer + ack + answer + ack + answer + answer + ack + answer);
  }
}

TEST_F(Http2GuardTest, OneThatWasTakenBackHoldsNothing) {
  EXPECT_EQ(Send(Call(1) + Frame(kData, 0, 1, Message(5000))), Next::kMore);
  EXPECT_GT(room_.used, 5000U);
  EXPECT_EQ(Send(Frame(kReset, 0, 1, "code")), Next::kMore);
  EXPECT_EQ(room_.used, 0U);
  // What is still on its way for it does.
  EXPECT_EQ(Send(Frame(kData, 0, 1, Message(5000))), Next::kMore);
  EXPECT_EQ(room_.used, 0U);
}

TEST_F(Http2GuardTest, AMessageWaitsForRoom) {
  room_.size = kCallBytes + 1000;
  EXPECT_EQ(Send(Call(1) + Call(3)), Next::kWait);
  Answer(1);
  EXPECT_EQ(Send(""), Next::kMore);
  EXPECT_EQ(Send(Frame(kData, 0, 3, Message(2000))), Next::kWait);
  room_.size += 2000;
  EXPECT_EQ(Send(""), Next::kMore);
}

TEST_F(Http2GuardTest, AMessagesOwnBytesNeedNotBeShown) {
  const std::string frame = Frame(kData, 0, 1, Message(1000));
  EXPECT_EQ(Send(Call(1)), Next::kMore);
  const uint64_t call = room_.used;
  // A frame's header and a message's are looked at.
  EXPECT_EQ(Send(frame.substr(0, 13)), Next::kMore);
  EXPECT_EQ(guard_.unread(), 0U);
  EXPECT_EQ(Send(frame.substr(13, 11)), Next::kMore);
  ASSERT_EQ(guard_.unread(), 990U);
  guard_.MovedUnread(600);
  EXPECT_EQ(guard_.unread(), 390U);
  EXPECT_EQ(Send(frame.substr(24 + 600)), Next::kMore);
  EXPECT_EQ(guard_.unread(), 0U);
  EXPECT_EQ(room_.used, call + 1005);
  // The end of a message is one, moved or shown.
  Answer(1);
  EXPECT_EQ(Send(Call(3) + frame.substr(0, 5) + std::string("\0\0\0\3", 4) +
                 frame.substr(9, 5)),
            Next::kMore);
  guard_.FromServer(Bytes(Frame(kHeaders, kEndHeaders, 3)));
  const uint64_t answered = room_.used;
  guard_.MovedUnread(1000);
  EXPECT_LT(room_.used, answered);
  EXPECT_EQ(Send(Frame(kData, kEndStream, 3)), Next::kMore);
}

TEST_F(Http2GuardTest, AFramesHeaderWaitsForRoomForAllOfIt) {
  EXPECT_EQ(Send(Call(1)), Next::kMore);
  const uint64_t call = room_.used;
  const std::string frame = Frame(kData, 0, 1, Message(1000));
  room_.size = call + 1004;
  EXPECT_EQ(Send(frame.substr(0, 9)), Next::kWait);
  EXPECT_EQ(kept_.size(), 1U);
  EXPECT_EQ(room_.used, call);
  ++room_.size;
  EXPECT_EQ(Send(""), Next::kMore);
  EXPECT_EQ(room_.used, call + 1005);
  // An answer gives nothing back of what has not come yet.
  EXPECT_EQ(Send(frame.substr(9, 105)), Next::kMore);
  guard_.FromServer(Bytes(Frame(kHeaders, kEndHeaders, 1)));
  EXPECT_EQ(room_.used, kCallBytes + 1005);
  EXPECT_EQ(Send(frame.substr(9 + 105)), Next::kMore);
  EXPECT_EQ(room_.used, kCallBytes);
  // Nor does the call's end, as gRPC waits for the rest.
  EXPECT_EQ(Send(frame.substr(0, 100)), Next::kMore);
  Answer(1);
  EXPECT_EQ(room_.used, frame.size() - 100);
  EXPECT_EQ(Send(frame.substr(100)), Next::kMore);
  EXPECT_EQ(room_.used, 0U);
}

TEST_F(Http2GuardTest, HeadersBeforeAMessagesBytesAreToldFromThem) {
  constexpr auto kAny = std::numeric_limits<size_t>::max();
  const std::string message = Message(1000);
  EXPECT_EQ(guard_.before_unread(100), kAny);
  EXPECT_EQ(Send(Call(1) + Frame(kData, 0, 1, message.substr(0, 400))),
            Next::kMore);
  // 605 bytes of it are missing, in frames that begin with a header each.
  EXPECT_EQ(guard_.before_unread(606), kAny);
  EXPECT_EQ(guard_.before_unread(605), 9U);
  const std::string rest = Frame(kData, 0, 1, message.substr(400));
  EXPECT_EQ(Send(rest.substr(0, 4)), Next::kMore);
  EXPECT_EQ(guard_.before_unread(605), 5U);
  EXPECT_EQ(Send(rest.substr(4, 5)), Next::kMore);
  EXPECT_EQ(guard_.unread(), 605U);
  guard_.MovedUnread(605);
  EXPECT_EQ(guard_.before_unread(1), kAny);
  // Another frame comes between, with the next one's header behind it.
  EXPECT_EQ(Send(Call(3) + Frame(kData, 0, 3, message.substr(0, 400)) +
                 Frame(kWindow, 0, 0, "1234").substr(0, 9)),
            Next::kMore);
  EXPECT_EQ(guard_.before_unread(605), 4U + 9U);
  Answer(3);
  EXPECT_EQ(guard_.before_unread(1), kAny);
}

TEST_F(Http2GuardTest, OfAnAnsweredCallOnlyWhatIsNotWholeIsHeld) {
  EXPECT_EQ(Send(Call(1) + Frame(kData, 0, 1, Message(3000))), Next::kMore);
  EXPECT_EQ(room_.used, kCallBytes + 6 + 3005);
  guard_.FromServer(Bytes(Frame(kHeaders, kEndHeaders, 1)));
  EXPECT_EQ(room_.used, kCallBytes);
  const std::string message = Message(4000);
  cut_ = 3;
  EXPECT_EQ(Send(Frame(kData, 0, 1, message.substr(0, 2))), Next::kMore);
  EXPECT_EQ(Send(Frame(kData, 0, 1, message.substr(2, 3000))), Next::kMore);
  EXPECT_EQ(room_.used, kCallBytes + 3002);
  EXPECT_EQ(Send(Frame(kData, 0, 1, message.substr(3002) + Message(0))),
            Next::kMore);
  EXPECT_EQ(room_.used, kCallBytes);
}

TEST_F(Http2GuardTest, AnswersThatNobodyTakesHoldUpWhatAsksForThem) {
  const std::string ping = Frame(kPing, 0, 0, "12345678");
  std::string flood;
  for (int i = 0; i < 100; ++i) flood += ping;
  EXPECT_EQ(Send(flood), Next::kWait);
  EXPECT_GT(kept_.size(), 90 * ping.size());
  const size_t before = kept_.size();
  guard_.FromServer(Bytes(Frame(kPing, kAck, 0, "12345678")));
  EXPECT_EQ(Send(""), Next::kWait);
  EXPECT_EQ(kept_.size(), before - ping.size());
}

TEST_F(Http2GuardTest, FramesThatMeanNothingHaveARate) {
  const std::string idle = Frame(kPriority, 0, 1, "12345");
  std::string some;
  for (int i = 0; i < 900; ++i) some += idle;
  EXPECT_EQ(Send(some), Next::kMore);
  clock_.Advance(10 * base::kSecond);
  EXPECT_EQ(Send(some), Next::kMore);
  EXPECT_EQ(Send(some), Next::kEnd);
  EXPECT_THAT(why_, HasSubstr("mean nothing"));
}

TEST_F(Http2GuardTest, GoodbyeSaysWhyBetweenFramesOnly) {
  EXPECT_EQ(Send(Call(5)), Next::kMore);
  const auto goodbye = guard_.Goodbye("too much");
  ASSERT_TRUE(goodbye.has_value());
  EXPECT_EQ(*goodbye,
            Frame(kGoaway, 0, 0, std::string("\0\0\0\5\0\0\0\13too much", 16)));
  guard_.FromServer(Bytes(Frame(kData, 0, 5, "half").substr(0, 11)));
  EXPECT_FALSE(guard_.Goodbye("too much").has_value());
  EXPECT_FALSE(Http2Guard({}, &clock_, &room_).Goodbye("too much").has_value());
}

}  // namespace
}  // namespace rknnd::transport
