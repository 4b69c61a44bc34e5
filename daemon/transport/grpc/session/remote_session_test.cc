// Sessions over gRPC as their clients see them: Hello, models, buffers, runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "daemon/transport/grpc/session/testing/remote_daemon.h"
#include "rknnd/v1/remote.pb.h"

namespace rknnd::transport::testing {
namespace {

using base::Code;
using ::testing::Contains;
using ::testing::HasSubstr;

// What the fake device makes of a first input.
std::string PlusOne(std::string bytes) {
  for (char& byte : bytes) ++byte;
  return bytes;
}

TEST(RemoteSession, HelloOpensASessionAndItsEndClosesIt) {
  RemoteDaemon remote;
  {
    RemoteClient client(remote);
    const auto answer = client.SayHello();
    ASSERT_EQ(answer.code, Code::kOk);
    const auto welcome = wire::Decode<wire::Welcome>(answer.body);
    ASSERT_TRUE(welcome.ok());
    EXPECT_EQ(welcome->protocol, wire::kProtocolCurrent);
    // What makes sense on one machine only is not offered.
    EXPECT_EQ(welcome->features & 6, 0U);
    EXPECT_TRUE(answer.attachments.empty());
    EXPECT_EQ(remote.daemon().Status().sessions, 1U);
    client.WritesDone();
    EXPECT_EQ(client.End().first, 0);
  }
  remote.daemon().WaitUntil([](const auto& s) { return s.sessions == 0; });
}

TEST(RemoteSession, AReportNamesItsAddress) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  std::vector<core::SessionReport> sessions;
  remote.daemon().RunOnLoop(
      [&] { sessions = remote.daemon().service().Sessions(); });
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_THAT(sessions[0].peer.address, HasSubstr("127.0.0.1:"));
  EXPECT_EQ(sessions[0].peer.comm, "remote-test");
  EXPECT_EQ(sessions[0].peer.uid, 65534U);
  EXPECT_EQ(sessions[0].peer.pid, 0);
}

TEST(RemoteSession, AFailureIsLoggedWithItsAddress) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  EXPECT_NE(client.Allocate(0, 4096), Code::kOk);
  EXPECT_THAT(remote.daemon().log().lines(),
              Contains(HasSubstr("AllocateBuffer failed: peer 127.0.0.1:")));
}

TEST(RemoteSession, AMismatchNamesBothSidesAndWhichToUpdate) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  wire::Hello hello{};
  hello.protocol_min = wire::kProtocolCurrent + 1;
  hello.protocol_max = wire::kProtocolCurrent + 3;
  const auto answer = client.Call(wire::Verb::kHello, hello);
  EXPECT_EQ(answer.code, Code::kFailedPrecondition);
  EXPECT_THAT(answer.failure(), HasSubstr("this client"));
  EXPECT_THAT(answer.failure(), HasSubstr("update the board side"));
  const auto [code, text] = client.End();
  EXPECT_EQ(code, static_cast<int>(Code::kFailedPrecondition));
  EXPECT_EQ(text, answer.failure());
}

TEST(RemoteSession, SessionsOfAllTransportsCount) {
  TestDaemonOptions options;
  options.server_limits.sessions = 1;
  RemoteDaemon remote(options);
  TestClient local(remote.daemon().Connect());
  ASSERT_EQ(local.SayHello().code, Code::kOk);
  RemoteClient client(remote);
  const auto answer = client.SayHello();
  EXPECT_EQ(answer.code, Code::kResourceExhausted);
  EXPECT_THAT(answer.failure(), HasSubstr("limit 'sessions' is 1"));
}

TEST(RemoteSession, RunsAModelThatCameInChunks) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1);
  const std::string input(64, 'a');
  client.Run(3, 5, input, false, 64);
  const auto ended = client.WaitForRun(3);
  EXPECT_EQ(ended.code, Code::kOk) << ended.text;
  EXPECT_EQ(ended.sequence, 5U);
  EXPECT_EQ(ended.outputs, PlusOne(input));
}

TEST(RemoteSession, LargeTensorsComeBeforeTheirRunAndItsEnd) {
  constexpr size_t kBytes = (size_t{5} << 19) + 3;
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1, kBytes);
  std::string input(kBytes, 'x');
  input.front() = 'a';
  input[1 << 20] = 'b';
  input.back() = 'c';
  client.Run(0, 1, input, true, kBytes);
  const auto ended = client.WaitForRun(0);
  EXPECT_EQ(ended.code, Code::kOk) << ended.text;
  EXPECT_TRUE(ended.outputs == PlusOne(input));
}

TEST(RemoteSession, RunsWhereTheDeviceMustBeToldOfCaches) {
  TestDaemonOptions options;
  options.incoherent = true;
  RemoteDaemon remote(options);
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1);
  for (uint32_t round = 1; round <= 4; ++round) {
    const std::string input(64, static_cast<char>('a' + round));
    client.Run(0, round, input, round % 2 == 0, 64);
    const auto ended = client.WaitForRun(0);
    EXPECT_EQ(ended.code, Code::kOk) << ended.text;
    EXPECT_EQ(ended.outputs, PlusOne(input));
  }
}

TEST(RemoteSession, ABodyMayComeInChunks) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  wire::AllocateBuffer allocate{};
  allocate.buffer = 4;
  allocate.size = 4096;
  const auto body = wire::Encode(allocate);
  v1::ToDaemon request;
  v1::Frame& frame = *request.mutable_frame();
  frame.set_verb(static_cast<uint32_t>(wire::Verb::kAllocateBuffer));
  frame.set_request(100);
  frame.add_attachments(body->size());
  frame.set_body_attached(true);
  client.Send(request);
  for (const std::byte byte : *body) {
    client.SendChunk(100, std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(client.WaitFor(100).code, Code::kOk);
}

TEST(RemoteSession, AllSlotsAreInFlightAndAreUsedAgain) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1);
  for (uint32_t round = 1; round <= 3; ++round) {
    remote.daemon().device().HoldJobs(true);
    for (uint32_t slot = 0; slot < 8; ++slot) {
      client.Run(slot, round, std::string(64, 'q'), false, 64);
    }
    // A later frame is answered while they run.
    ASSERT_EQ(client.Allocate(50 + round, 4096), Code::kOk);
    remote.daemon().device().HoldJobs(false);
    while (remote.daemon().device().Release()) {
    }
    for (uint32_t slot = 0; slot < 8; ++slot) {
      const auto ended = client.WaitForRun(slot);
      EXPECT_EQ(ended.code, Code::kOk) << ended.text;
      EXPECT_EQ(ended.sequence, round);
    }
  }
}

TEST(RemoteSession, RunsPassAnUploadThatIsComing) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1);
  const std::string model = "bytes=32 weight=10 name=second";
  wire::UploadModel upload;
  upload.name = "second";
  const auto body = wire::Encode(upload);
  const uint32_t request =
      client.SendFrame(wire::Verb::kUploadModel, *body, {model.size()});
  client.SendChunk(request, model.substr(0, 10));
  client.Run(0, 1, std::string(64, 'a'), false, 64);
  EXPECT_EQ(client.WaitForRun(0).code, Code::kOk);
  client.SendChunk(request, model.substr(10));
  // Whole, and not what its hash says.
  EXPECT_NE(client.WaitFor(request).code, Code::kOk);
}

TEST(RemoteSession, ADumpComesAsAnAttachment) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  client.MakeReady(1);
  wire::DumpRequest dump{};
  dump.context = 1;
  ASSERT_EQ(client.Call(wire::Verb::kDump, dump).code, Code::kOk);
  client.Run(0, 1, std::string(64, 'a'), false, 64);
  ASSERT_EQ(client.WaitForRun(0).code, Code::kOk);
  dump.take = true;
  const auto taken = client.Call(wire::Verb::kDump, dump);
  ASSERT_EQ(taken.code, Code::kOk) << taken.failure();
  const auto reply = wire::Decode<wire::DumpReply>(taken.body);
  ASSERT_TRUE(reply.ok());
  ASSERT_EQ(taken.attachments.size(), 1U);
  EXPECT_EQ(taken.attachments[0].size(), reply->size);
}

TEST(RemoteSession, AModelAboveItsLimitIsRefusedBeforeItComes) {
  TestDaemonOptions options;
  options.limits.model_bytes = 100;
  RemoteDaemon remote(options);
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  const auto body = wire::Encode(wire::UploadModel{});
  const uint32_t request =
      client.SendFrame(wire::Verb::kUploadModel, *body, {101});
  const auto answer = client.WaitFor(request);
  EXPECT_EQ(answer.code, Code::kResourceExhausted);
  EXPECT_THAT(answer.failure(), HasSubstr("model_bytes"));
  // What was on its way is ignored.
  client.SendChunk(request, "late");
  EXPECT_EQ(client.Allocate(1, 4096), Code::kOk);
}

TEST(RemoteSession, FencesAndAddressesStayWhereTheyAre) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  ASSERT_EQ(client.SayHello().code, Code::kOk);
  EXPECT_EQ(client.Call(wire::Verb::kRegisterFence, wire::RegisterFence{}).code,
            Code::kUnimplemented);
  EXPECT_EQ(
      client.Call(wire::Verb::kImportPhysical, wire::ImportPhysical{}).code,
      Code::kUnimplemented);
  wire::ImportBuffer import{};
  import.buffer = 9;
  import.size = 4096;
  const auto imported = client.Call(wire::Verb::kImportBuffer, import);
  EXPECT_EQ(imported.code, Code::kOk) << imported.failure();
  EXPECT_TRUE(imported.attachments.empty());
}

TEST(RemoteSession, OnlyOperatorsChangeThingsForOthers) {
  RemoteDaemon as_user;
  RemoteClient user(as_user);
  ASSERT_EQ(user.SayHello().code, Code::kOk);
  EXPECT_EQ(user.Call(wire::Verb::kListFaults, wire::Empty{}).code,
            Code::kPermissionDenied);
  RemoteDaemon insecure({}, true);
  RemoteClient anybody(insecure);
  ASSERT_EQ(anybody.SayHello().code, Code::kOk);
  EXPECT_EQ(anybody.Call(wire::Verb::kListFaults, wire::Empty{}).code,
            Code::kFailedPrecondition);  // none are enabled
}

TEST(RemoteSession, APingIsAnsweredWithItsToken) {
  RemoteDaemon remote;
  RemoteClient client(remote);
  v1::ToDaemon ping;
  ping.mutable_ping()->set_token(4711);
  ASSERT_TRUE(client.Send(ping));
  v1::ToClient pong;
  ASSERT_TRUE(client.Receive(&pong));
  EXPECT_EQ(pong.pong().token(), 4711U);
}

}  // namespace
}  // namespace rknnd::transport::testing
