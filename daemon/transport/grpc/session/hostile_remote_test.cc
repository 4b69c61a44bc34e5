// Peers that break the protocol, stop, vanish or do not read: each is
// disconnected with the reason, and nothing of it stays.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/transport/grpc/session/message.h"
#include "daemon/transport/grpc/session/testing/remote_daemon.h"
#include "rknnd/v1/remote.pb.h"

namespace rknnd::transport::testing {
namespace {

using base::Code;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kFailedPrecondition = static_cast<int>(Code::kFailedPrecondition);
constexpr int kInvalidArgument = static_cast<int>(Code::kInvalidArgument);

v1::ToDaemon FrameOf(wire::Verb verb, uint32_t request) {
  v1::ToDaemon message;
  message.mutable_frame()->set_verb(static_cast<uint32_t>(verb));
  message.mutable_frame()->set_request(request);
  return message;
}

v1::ToDaemon RunOf(uint32_t slot, uint32_t sequence) {
  v1::ToDaemon message;
  message.mutable_run()->set_operation(1);
  message.mutable_run()->set_context(1);
  message.mutable_run()->set_slot(slot);
  message.mutable_run()->set_sequence(sequence);
  return message;
}

struct Broken {
  const char* name;
  std::vector<v1::ToDaemon> messages;
  const char* reason;
};

std::vector<Broken> EveryKind() {
  std::vector<Broken> all;
  all.push_back({"no part", {v1::ToDaemon()}, "without a part"});
  v1::ToDaemon message = FrameOf(wire::Verb::kReport, 5);
  message.mutable_frame()->set_kind(1);
  all.push_back({"a reply", {message}, "nothing but requests"});
  message = FrameOf(wire::Verb::kReport, 5);
  message.mutable_frame()->set_verb(70000);
  all.push_back({"a verb of 32 bits", {message}, "70000"});
  message = FrameOf(wire::Verb::kReport, 5);
  message.mutable_frame()->add_attachments(5);
  all.push_back({"files for a report", {message}, "1 files, not 0"});
  message = FrameOf(wire::Verb::kUploadModel, 5);
  for (int i = 0; i < 3; ++i) message.mutable_frame()->add_attachments(5);
  all.push_back({"three models", {message}, "3 files, not 2"});
  message.mutable_frame()->add_attachments(5);
  all.push_back({"four attachments", {message}, "4 attachments"});
  message = FrameOf(wire::Verb::kReport, 5);
  message.mutable_frame()->set_body_attached(true);
  all.push_back({"a body of nothing", {message}, "no attachment"});
  v1::ToDaemon chunk;
  chunk.mutable_chunk()->set_request(77);
  chunk.mutable_chunk()->set_data("x");
  all.push_back({"a chunk of nothing", {chunk}, "has none to come"});
  message = FrameOf(wire::Verb::kUploadModel, 5);
  message.mutable_frame()->add_attachments(4);
  chunk.mutable_chunk()->set_request(5);
  chunk.mutable_chunk()->set_data("12345");
  all.push_back({"a chunk too long", {message, chunk}, "4 are to come"});
  chunk.mutable_chunk()->clear_data();
  all.push_back({"an empty chunk", {message, chunk}, "4 are to come"});
  all.push_back({"one number twice", {message, message}, "has the number"});
  all.push_back({"no such slot", {RunOf(128, 1)}, "slot '128'"});
  all.push_back({"no sequence", {RunOf(0, 0)}, "without a sequence"});
  v1::ToDaemon write;
  write.mutable_write()->set_buffer(10);
  // Buffers have whole pages.
  write.mutable_write()->set_offset(4092);
  write.mutable_write()->set_data("12345");
  all.push_back({"a write past the end", {write}, "not 5 from 4092"});
  write.mutable_write()->set_offset(UINT64_MAX - 1);
  all.push_back({"an offset that wraps", {write}, "not 5 from"});
  write.mutable_write()->set_data(std::string(kMaxRemoteMessage, 'x'));
  all.push_back({"a message too long", {write}, "none is above"});
  message = RunOf(0, 1);
  for (int i = 0; i < 1025; ++i) message.mutable_run()->add_inputs();
  all.push_back({"too many inputs", {message}, "1025 inputs"});
  return all;
}

TEST(HostileRemote, BrokenProtocolIsTheEndOfTheStreamAndSaysWhy) {
  RemoteDaemon remote;
  for (const Broken& broken : EveryKind()) {
    SCOPED_TRACE(broken.name);
    RemoteClient client(remote);
    ASSERT_EQ(client.SayHello().code, Code::kOk);
    client.MakeReady(1);
    for (const v1::ToDaemon& message : broken.messages) client.Send(message);
    const auto [code, text] = client.End();
    EXPECT_NE(code, 0);
    EXPECT_THAT(text, HasSubstr(broken.reason));
  }
  remote.daemon().WaitUntil([](const auto& s) {
    return s.sessions == 0 && s.buffers == 0 && s.contexts == 0;
  });
}

TEST(HostileRemote, NothingGoesBeforeHello) {
  RemoteDaemon remote;
  RemoteClient first(remote);
  first.Send(RunOf(0, 1));
  EXPECT_EQ(first.End().first, kFailedPrecondition);
  RemoteClient second(remote);
  second.Send(FrameOf(wire::Verb::kReport, 1));
  EXPECT_EQ(second.WaitFor(1).code, Code::kFailedPrecondition);
  EXPECT_EQ(second.End().first, kFailedPrecondition);
  RemoteClient third(remote);
  v1::ToDaemon garbled = FrameOf(wire::Verb::kHello, 1);
  garbled.mutable_frame()->set_body("\xff\xff\xff");
  third.Send(garbled);
  EXPECT_EQ(third.WaitFor(1).code, Code::kInvalidArgument);
  EXPECT_EQ(third.End().first, kInvalidArgument);
}

TEST(HostileRemote, ASlotInFlightIsNotGivenTwice) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1);
  remote.daemon().device().HoldJobs(true);
  client.Send(RunOf(7, 1));
  client.Send(RunOf(7, 2));
  const auto [code, text] = client.End();
  EXPECT_EQ(code, kFailedPrecondition);
  EXPECT_THAT(text, HasSubstr("slot '7' is still in flight"));
}

TEST(HostileRemote, WrongRangesAreTheRunsAnswer) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1);
  client.Run(0, 1, std::string(64, 'a'), false, 4097);
  EXPECT_EQ(client.WaitForRun(0).code, Code::kOutOfRange);
  client.Run(0, 2, std::string(4097, 'a'), false, 64);
  EXPECT_EQ(client.WaitForRun(0).code, Code::kOutOfRange);
  v1::ToDaemon run = RunOf(0, 3);
  run.mutable_run()->add_outputs()->set_buffer(99);
  client.Send(run);
  EXPECT_EQ(client.WaitForRun(0).code, Code::kNotFound);
  run = RunOf(0, 4);
  run.mutable_run()->set_operation(9);
  client.Send(run);
  EXPECT_EQ(client.WaitForRun(0).code, Code::kUnimplemented);
  client.Run(0, 5, std::string(64, 'a'), false, 64);
  EXPECT_EQ(client.WaitForRun(0).code, Code::kOk);
}

TEST(HostileRemote, BytesForABufferThatHasGoneAreDropped) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  v1::ToDaemon write;
  write.mutable_write()->set_buffer(99);
  write.mutable_write()->set_data("late");
  client.Send(write);
  EXPECT_EQ(client.Allocate(1, 4096), Code::kOk);
}

TEST(HostileRemote, WhoSaysNothingIsDisconnected) {
  RemoteDaemon remote;
  RemoteClient stranger(remote);
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  // The stranger's stream is known to the daemon by its answer.
  v1::ToDaemon ping;
  ping.mutable_ping()->set_token(1);
  stranger.Send(ping);
  v1::ToClient pong;
  ASSERT_TRUE(stranger.Receive(&pong));
  remote.daemon().Advance(5 * base::kSecond);
  remote.daemon().Advance(base::kSecond);
  EXPECT_EQ(stranger.End().first, static_cast<int>(Code::kDeadlineExceeded));
  EXPECT_EQ(client.Allocate(1, 4096), Code::kOk);
  remote.daemon().Advance(45 * base::kSecond);
  EXPECT_EQ(client.End().first, static_cast<int>(Code::kUnavailable));
  remote.daemon().WaitUntil([](const auto& s) { return s.sessions == 0; });
}

TEST(HostileRemote, AnUploadThatStopsIsRefused) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  const auto body = wire::Encode(wire::UploadModel{});
  const uint32_t request =
      client.SendFrame(wire::Verb::kUploadModel, *body, {100});
  client.SendChunk(request, "begun");
  EXPECT_EQ(client.Allocate(1, 4096), Code::kOk);
  remote.daemon().Advance(20 * base::kSecond);
  EXPECT_EQ(client.Allocate(2, 4096), Code::kOk);
  remote.daemon().Advance(11 * base::kSecond);
  EXPECT_EQ(client.WaitFor(request).code, Code::kDeadlineExceeded);
}

// A client may go at any moment, in whichever state it is.
TEST(HostileRemote, NothingStaysOfWhoVanishes) {
  RemoteDaemon remote;
  const std::vector<std::function<void(RemoteClient&)>> until = {
      [](RemoteClient&) {},
      [](RemoteClient& client) { client.SayHello(); },
      [](RemoteClient& client) {
        client.SayHello();
        client.SendFrame(wire::Verb::kUploadModel, {}, {1000});
        client.SendChunk(2, std::string(500, 'x'));
      },
      [](RemoteClient& client) {
        client.SayHello();
        client.MakeReady(1);
      },
      [&](RemoteClient& client) {
        client.SayHello();
        client.MakeReady(1);
        remote.daemon().device().HoldJobs(true);
        for (uint32_t slot = 0; slot < 16; ++slot) {
          client.Run(slot, 1, std::string(64, 'a'), false, 64);
        }
        while (remote.daemon().device().held() == 0) std::this_thread::yield();
      },
  };
  { RemoteClient warm_up(remote); }
  for (size_t i = 0; i < until.size(); ++i) {
    SCOPED_TRACE(i);
    {
      RemoteClient client(remote);
      until[i](client);
    }
    remote.daemon().device().HoldJobs(false);
    while (remote.daemon().device().Release()) {
    }
    remote.daemon().WaitUntil([](const auto& s) {
      return s.sessions == 0 && s.buffers == 0 && s.contexts == 0 &&
             s.jobs_running == 0;
    });
  }
}

TEST(HostileRemote, WhoDoesNotReadIsDisconnected) {
  constexpr size_t kBytes = size_t{16} << 20;
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1, kBytes);
  // More than fits what lies between: the daemon keeps a message of it.
  for (uint32_t slot = 0; slot < 8; ++slot) {
    client.Run(slot, 1, "a", false, kBytes);
  }
  remote.daemon().WaitUntil([](const auto& s) { return s.jobs_done >= 8; });
  EXPECT_EQ(remote.daemon().Status().sessions, 1U);
  // The client says that it is there, and reads nothing.
  v1::ToDaemon ping;
  ping.mutable_ping()->set_token(1);
  for (int i = 0; i < 20; ++i) {
    remote.daemon().Advance(3 * base::kSecond);
    client.Send(ping);
  }
  remote.daemon().WaitUntil([](const auto& s) { return s.sessions == 0; });
}

TEST(HostileRemote, StoppingEndsEveryCall) {
  RemoteDaemon remote;
  RemoteClient stranger(remote);
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1);
  remote.Stop();
  EXPECT_NE(client.End().first, 0);
  EXPECT_NE(stranger.End().first, 0);
  remote.daemon().WaitUntil(
      [](const auto& s) { return s.sessions == 0 && s.buffers == 0; });
}

TEST(HostileRemote, StoppingBringsTheEndsOfRunsThatAreThere) {
  // More than fits what lies between: some of it has not left by then.
  constexpr size_t kBytes = size_t{16} << 20;
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1, kBytes);
  client.Run(0, 1, "a", false, kBytes);
  remote.daemon().WaitUntil([](const auto& s) { return s.jobs_done == 1; });
  std::thread stopping([&remote] { remote.Stop(); });
  const auto ended = client.WaitForRun(0);
  EXPECT_EQ(ended.code, Code::kOk) << ended.text;
  EXPECT_EQ(ended.outputs.size(), kBytes);
  // Where the client still acknowledges bytes as the connection closes, gRPC
  // tells it of that instead of our reason.
  const auto [code, text] = client.End();
  EXPECT_EQ(code, static_cast<int>(Code::kUnavailable));
  EXPECT_THAT(text,
              AnyOf(HasSubstr("the daemon stops"), HasSubstr("Broken pipe"),
                    HasSubstr("Connection reset"), HasSubstr("Socket closed")));
  stopping.join();
}

}  // namespace
}  // namespace rknnd::transport::testing
