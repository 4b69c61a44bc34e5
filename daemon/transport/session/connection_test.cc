// One client against the whole transport: what it says, what it is answered.

#include "daemon/transport/session/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/values/model_options.h"
#include "base/values/sha256.h"
#include "daemon/transport/session/testing/test_daemon.h"

namespace rknnd::transport::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kModel[] = "bytes=64 weight=1000 internal=4096";

class ConnectionTest : public ::testing::Test {
 protected:
  TestClient Connect(bool admin = false) {
    return TestClient(daemon_.Connect(admin));
  }
  TestClient ConnectAndGreet(bool admin = false) {
    TestClient client = Connect(admin);
    EXPECT_EQ(client.SayHello().code, base::Code::kOk);
    return client;
  }
  static std::string ReasonOf(const wire::Frame& reply) {
    return wire::DecodeFailure(reply).message;
  }

  TestDaemon daemon_;
};

TEST_F(ConnectionTest, WelcomeTellsWhatThereIs) {
  TestClient client = Connect();
  const wire::Frame reply = client.SayHello();
  const auto welcome = wire::Decode<wire::Welcome>(reply.body);
  ASSERT_TRUE(welcome.ok());
  EXPECT_EQ(welcome->protocol, wire::kProtocolCurrent);
  EXPECT_EQ(welcome->cores, 2U);
  EXPECT_STREQ(welcome->soc, "rk3588");
  EXPECT_EQ(welcome->ring_entries, wire::kRingEntries);
  EXPECT_EQ(welcome->max_contexts, core::SessionLimits().contexts);
  EXPECT_EQ(client.ring()->header.magic, wire::kRingMagic);
}

TEST_F(ConnectionTest, ClientThatIsTooNewIsToldToUpdateTheBoard) {
  TestClient client = Connect();
  const wire::Frame reply = client.SayHello(2, 3);
  EXPECT_EQ(reply.code, base::Code::kFailedPrecondition);
  EXPECT_THAT(ReasonOf(reply), HasSubstr(", speaks 2, board rknnd"));
  EXPECT_THAT(ReasonOf(reply), HasSubstr("update the board side"));
  client.ExpectEnd();
}

TEST_F(ConnectionTest, ClientThatSpeaksNewerProtocolsTooIsWelcome) {
  TestClient client = Connect();
  const wire::Frame reply = client.SayHello(1, 9);
  const auto welcome = wire::Decode<wire::Welcome>(reply.body);
  ASSERT_TRUE(welcome.ok());
  EXPECT_EQ(welcome->protocol, 1U);
}

TEST_F(ConnectionTest, ProtocolZeroIsRefused) {
  TestClient client = Connect();
  EXPECT_EQ(client.SayHello(0, 0).code, base::Code::kInvalidArgument);
  client.ExpectEnd();
}

TEST_F(ConnectionTest, VerbBeforeHelloEndsTheConnection) {
  TestClient client = Connect();
  const wire::Frame reply =
      client.Call(wire::Verb::kDestroyContext, wire::DestroyContext{1});
  EXPECT_EQ(reply.code, base::Code::kFailedPrecondition);
  EXPECT_THAT(ReasonOf(reply), HasSubstr("before 'Hello'"));
  client.ExpectEnd();
}

TEST_F(ConnectionTest, SecondHelloIsRefusedAndTheSessionStays) {
  TestClient client = ConnectAndGreet();
  const wire::Frame reply = client.Call(wire::Verb::kHello, wire::Hello{});
  EXPECT_EQ(reply.code, base::Code::kFailedPrecondition);
  EXPECT_EQ(client.Allocate(1, 4096), base::Code::kOk);
}

TEST_F(ConnectionTest, UnknownVerbIsAnsweredAndTheSessionStays) {
  TestClient client = ConnectAndGreet();
  const wire::Frame reply =
      client.Call(static_cast<wire::Verb>(77), wire::Empty{});
  EXPECT_EQ(reply.code, base::Code::kUnimplemented);
  EXPECT_THAT(ReasonOf(reply), HasSubstr("verb 77"));
  EXPECT_EQ(client.Allocate(1, 4096), base::Code::kOk);
}

TEST_F(ConnectionTest, VerbsOfOperatorsAreServedOnAdminSockOnly) {
  TestClient client = ConnectAndGreet();
  const wire::Frame refused = client.Call(wire::Verb::kDrain, wire::Empty{});
  EXPECT_EQ(refused.code, base::Code::kPermissionDenied);
  EXPECT_THAT(ReasonOf(refused), HasSubstr("admin.sock"));
}

TEST_F(ConnectionTest, DrainedDaemonNamesWhoIsLeftAndCanBeLookedAt) {
  TestClient client = ConnectAndGreet();
  TestClient admin = ConnectAndGreet(true);
  const wire::Frame reply = admin.Call(wire::Verb::kDrain, wire::Empty{});
  const auto left = wire::Decode<wire::DrainReply>(reply.body);
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(left->sessions.size(), 2U);
  TestClient late = Connect();
  EXPECT_EQ(late.SayHello().code, base::Code::kOk);
  wire::ReportRequest status{};
  status.kind = rknnd_v1_ReportKind_REPORT_STATUS;
  EXPECT_EQ(late.Call(wire::Verb::kReport, status).code, base::Code::kOk);
  EXPECT_EQ(late.Call(wire::Verb::kUndoDrain, wire::Empty{}).code,
            base::Code::kPermissionDenied);
  EXPECT_EQ(admin.Call(wire::Verb::kUndoDrain, wire::Empty{}).code,
            base::Code::kOk);
}

TEST_F(ConnectionTest, BodyThatIsNoMessageIsAnswered) {
  TestClient client = ConnectAndGreet();
  const wire::Frame reply = client.Call(
      wire::Verb::kBind, std::vector<std::byte>(40, std::byte{0xFF}));
  EXPECT_EQ(reply.code, base::Code::kInvalidArgument);
  EXPECT_EQ(client.Allocate(1, 4096), base::Code::kOk);
}

TEST_F(ConnectionTest, FrameComesBackFromTheDevice) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(3);
  std::memset(client.buffer(30), 41, 64);
  ASSERT_EQ(client.RunOnce(3), base::Code::kOk);
  EXPECT_EQ(client.buffer(31)[0], std::byte{42});
  EXPECT_EQ(client.buffer(31)[63], std::byte{42});
}

TEST_F(ConnectionTest, ModelThatIsNotThereIsNotFound) {
  TestClient client = ConnectAndGreet();
  EXPECT_EQ(client.CreateContext(1, "bytes=8 name=absent"),
            base::Code::kNotFound);
  // It is how sessions begin, not a failure to write down.
  EXPECT_THAT(daemon_.log().lines(), ::testing::IsEmpty());
}

TEST_F(ConnectionTest, FollowerWhoseOwnerIsNotThereIsNoFailureToWriteDown) {
  TestClient client = ConnectAndGreet();
  const std::string model = "weight=1 lacks=w";
  auto memfd = base::MakeImmutableMemfd(
      "model", std::as_bytes(std::span(model.data(), model.size())));
  ASSERT_TRUE(memfd.ok());
  std::vector<base::UniqueFd> fds;
  fds.push_back(*std::move(memfd));
  wire::UploadModel upload;
  upload.name = "small.onnx";
  upload.options = base::WithWeightsOf("", {});
  base::Sha256 hash;
  hash.Update(std::as_bytes(std::span(model)));
  hash.Update(std::as_bytes(std::span(upload.options)));
  upload.model = hash.Finish();

  const wire::Frame reply =
      client.Call(wire::Verb::kUploadModel, upload, std::move(fds));

  EXPECT_EQ(reply.code, base::Code::kNotFound);
  EXPECT_THAT(daemon_.log().lines(), ::testing::IsEmpty());
}

TEST_F(ConnectionTest, ContextInfoTellsTheTensors) {
  TestClient client = ConnectAndGreet();
  ASSERT_EQ(client.Upload(kModel), base::Code::kOk);
  wire::CreateContext create{};
  create.context = 1;
  const auto id = core::ModelId(
      base::Sha256Of(std::as_bytes(std::span(kModel, sizeof kModel - 1))));
  std::memcpy(create.model, id.data(), id.size());
  const wire::Frame reply = client.Call(wire::Verb::kCreateContext, create);
  const auto info = wire::Decode<wire::ContextInfo>(reply.body);
  ASSERT_TRUE(info.ok());
  ASSERT_EQ(info->inputs.size(), 1U);
  EXPECT_EQ(info->inputs[0].size, 64U);
  EXPECT_EQ(info->outputs.size(), 1U);
  EXPECT_EQ(info->weight_size, 1000U);
}

TEST_F(ConnectionTest, ModelInAWritableMemfdIsRefused) {
  TestClient client = ConnectAndGreet();
  auto memfd = base::MakeMemfd("model", 4096);
  ASSERT_TRUE(memfd.ok());
  std::vector<base::UniqueFd> fds;
  fds.push_back(*std::move(memfd));
  wire::UploadModel upload;
  upload.name = "evil.onnx";
  const wire::Frame reply =
      client.Call(wire::Verb::kUploadModel, upload, std::move(fds));
  EXPECT_EQ(reply.code, base::Code::kInvalidArgument);
  EXPECT_THAT(ReasonOf(reply), HasSubstr("'evil.onnx'"));
  EXPECT_THAT(ReasonOf(reply), HasSubstr("sealed"));
}

TEST_F(ConnectionTest, UploadAndImportWithoutTheirFdAreRefused) {
  TestClient client = ConnectAndGreet();
  EXPECT_EQ(client.Call(wire::Verb::kUploadModel, wire::UploadModel{}).code,
            base::Code::kInvalidArgument);
  EXPECT_EQ(
      client.Call(wire::Verb::kImportBuffer, wire::ImportBuffer{1, 64}).code,
      base::Code::kInvalidArgument);
}

TEST_F(ConnectionTest, UploadWithoutItsSecondFdIsRefused) {
  TestClient client = ConnectAndGreet();
  const std::string model = "weight=1 lacks=w";
  auto memfd = base::MakeImmutableMemfd(
      "model", std::as_bytes(std::span(model.data(), model.size())));
  ASSERT_TRUE(memfd.ok());
  std::vector<base::UniqueFd> fds;
  fds.push_back(*std::move(memfd));
  wire::UploadModel upload;
  upload.name = "small.onnx";
  upload.has_weights_of = true;
  const wire::Frame reply =
      client.Call(wire::Verb::kUploadModel, upload, std::move(fds));
  EXPECT_EQ(reply.code, base::Code::kInvalidArgument);
  EXPECT_THAT(ReasonOf(reply), HasSubstr("whose weights it shares"));
}

TEST_F(ConnectionTest, NumberZeroIsRefused) {
  TestClient client = ConnectAndGreet();
  EXPECT_EQ(client.Call(wire::Verb::kCreateContext, wire::CreateContext{}).code,
            base::Code::kInvalidArgument);
  EXPECT_EQ(client.Allocate(0, 64), base::Code::kInvalidArgument);
}

TEST_F(ConnectionTest, TypeAndLayoutThatDoNotExistAreRefused) {
  TestClient client = ConnectAndGreet();
  wire::Bind bind{};
  bind.context = 1;
  bind.type = 1'000'000;
  wire::Frame reply = client.Call(wire::Verb::kBind, bind);
  EXPECT_THAT(ReasonOf(reply), HasSubstr("type '1000000'"));
  bind.type = 0;
  bind.layout = 4;
  reply = client.Call(wire::Verb::kBind, bind);
  EXPECT_THAT(ReasonOf(reply), HasSubstr("layout '4'"));
}

TEST_F(ConnectionTest, HugeSizesAreRefused) {
  TestClient client = ConnectAndGreet();
  EXPECT_EQ(client.Allocate(1, ~uint64_t{0}), base::Code::kInvalidArgument);
  EXPECT_EQ(client.Allocate(1, uint64_t{1} << 40),
            base::Code::kResourceExhausted);
}

TEST_F(ConnectionTest, LargeBuffersOfManyClientsComeAndGo) {
  constexpr uint64_t kLarge = uint64_t{3} << 20;
  constexpr int kClients = 3;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([client = ConnectAndGreet()]() mutable {
      for (uint32_t round = 0; round < 10; ++round) {
        EXPECT_EQ(client.Allocate(1 + round, kLarge), base::Code::kOk);
        wire::ReleaseBuffer release{};
        release.buffer = 1 + round;
        EXPECT_EQ(client.Call(wire::Verb::kReleaseBuffer, release).code,
                  base::Code::kOk);
      }
      // Goes while one is being made.
      wire::AllocateBuffer last{};
      last.buffer = 1;
      last.size = kLarge;
      wire::Frame request;
      request.verb = wire::Verb::kAllocateBuffer;
      request.request = 1;
      request.body = *wire::Encode(last);
      EXPECT_TRUE(
          wire::SendFrame(client.socket(), request, base::Block::kYes).ok());
      client.Close();
    });
  }
  for (std::thread& thread : threads) thread.join();
  daemon_.WaitUntil([](const core::StatusReport& status) {
    return status.sessions == 0 && status.memory.total() == 0;
  });
  while (daemon_.device().memories() != 0) std::this_thread::yield();
}

TEST_F(ConnectionTest, AnotherSessionsNumbersDoNotExist) {
  TestClient owner = ConnectAndGreet();
  owner.MakeReady(1);
  TestClient client = ConnectAndGreet();
  EXPECT_EQ(
      client.Call(wire::Verb::kReleaseBuffer, wire::ReleaseBuffer{10}).code,
      base::Code::kNotFound);
  EXPECT_EQ(
      client.Call(wire::Verb::kDestroyContext, wire::DestroyContext{1}).code,
      base::Code::kNotFound);
  EXPECT_EQ(client.BindTo(1, false, 10), base::Code::kNotFound);
  EXPECT_EQ(client.RunOnce(1), base::Code::kNotFound);
  EXPECT_EQ(owner.RunOnce(1), base::Code::kOk);
}

TEST_F(ConnectionTest, EveryKindOfReportIsGiven) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  ASSERT_EQ(client.RunOnce(1), base::Code::kOk);
  const auto report = [&](uint32_t kind) {
    const wire::Frame reply =
        client.Call(wire::Verb::kReport, wire::ReportRequest{kind});
    EXPECT_EQ(reply.code, base::Code::kOk);
    auto decoded = wire::Decode<wire::Report>(reply.body);
    EXPECT_TRUE(decoded.ok());
    return *std::move(decoded);
  };
  EXPECT_EQ(report(rknnd_v1_ReportKind_REPORT_STATUS).buffer_count, 2U);
  const auto sessions = report(rknnd_v1_ReportKind_REPORT_SESSIONS).sessions;
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_STREQ(sessions[0].comm, "test");
  EXPECT_EQ(sessions[0].pid, getpid());
  EXPECT_EQ(report(rknnd_v1_ReportKind_REPORT_MODELS).models.size(), 1U);
  EXPECT_EQ(report(rknnd_v1_ReportKind_REPORT_CONTEXTS).contexts.size(), 1U);
  EXPECT_EQ(report(rknnd_v1_ReportKind_REPORT_BUFFERS).buffers.size(), 2U);
  const wire::Report memory = report(rknnd_v1_ReportKind_REPORT_MEMORY);
  EXPECT_EQ(memory.memory.weight, 1000U);
  EXPECT_EQ(memory.memory.io, 8192U);
  ASSERT_EQ(client.Allocate(50, 8192, 4), base::Code::kOk);  // in SRAM
  const wire::Report sram = report(rknnd_v1_ReportKind_REPORT_SRAM);
  EXPECT_EQ(sram.sram_total - sram.sram_free, 8192U);
  ASSERT_EQ(sram.sram_windows.size(), 1U);
  EXPECT_EQ(sram.sram_windows[0].size, 8192U);
  EXPECT_THAT(sram.sram_windows[0].holder, HasSubstr("buffer 50 of session"));
}

TEST_F(ConnectionTest, BufferKeyIsAnsweredToItsSessionAlone) {
  TestClient client = ConnectAndGreet();
  ASSERT_EQ(client.Allocate(7, 4096), base::Code::kOk);
  const auto ask = [](TestClient& from, uint32_t buffer) {
    return from.Call(wire::Verb::kBufferKey, wire::BufferKeyRequest{buffer});
  };
  const auto first = wire::Decode<wire::BufferKey>(ask(client, 7).body);
  const auto again = wire::Decode<wire::BufferKey>(ask(client, 7).body);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->size, 4096U);
  EXPECT_EQ(std::memcmp(first->key, again->key, sizeof first->key), 0);
  core::BufferKey key;
  std::copy(std::begin(first->key), std::end(first->key), key.begin());
  EXPECT_TRUE(daemon_.service().FindBuffer(key).ok());
  TestClient other = ConnectAndGreet();
  EXPECT_EQ(ask(other, 7).code, base::Code::kNotFound);
  EXPECT_EQ(ask(client, 8).code, base::Code::kNotFound);
}

TEST_F(ConnectionTest, UnknownReportIsRefused) {
  TestClient client = ConnectAndGreet();
  EXPECT_EQ(client.Call(wire::Verb::kReport, wire::ReportRequest{200}).code,
            base::Code::kInvalidArgument);
}

TEST_F(ConnectionTest, LargeReportTravelsInAMemfd) {
  TestClient client = ConnectAndGreet();
  for (uint32_t number = 1; number <= 2000; ++number) {
    wire::AllocateBuffer allocate{};
    allocate.buffer = number;
    allocate.size = 4096;
    ASSERT_EQ(client.Call(wire::Verb::kAllocateBuffer, allocate).code,
              base::Code::kOk);
  }
  const wire::Frame reply =
      client.Call(wire::Verb::kReport,
                  wire::ReportRequest{rknnd_v1_ReportKind_REPORT_BUFFERS});
  EXPECT_GT(reply.body.size(), wire::kMaxInlineBody);
  const auto report = wire::Decode<wire::Report>(reply.body);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->buffers.size(), 2000U);
}

TEST_F(ConnectionTest, SurplusFdsAreClosed) {
  TestClient client = ConnectAndGreet();
  // An answer may arrive before the daemon has closed what came or went with
  // it; the loop's next task finds it done.
  daemon_.RunOnLoop([] {});
  const size_t before = OpenFds();
  for (int round = 0; round < 50; ++round) {
    std::vector<base::UniqueFd> fds;
    for (int i = 0; i < 3; ++i) fds.push_back(*base::MakeEventFd());
    client.Call(wire::Verb::kDestroyContext, wire::DestroyContext{1},
                std::move(fds));
  }
  daemon_.RunOnLoop([] {});
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(ConnectionTest, RequestThatEndsBadlyIsWrittenDownOnce) {
  TestClient client = ConnectAndGreet();
  client.Call(wire::Verb::kDestroyContext, wire::DestroyContext{9});
  EXPECT_THAT(daemon_.log().lines(),
              ::testing::ElementsAre(::testing::AllOf(
                  HasSubstr("DestroyContext failed"), HasSubstr("'test'"),
                  HasSubstr("NOT_FOUND"))));
}

TEST_F(ConnectionTest, ManyFailuresDoNotFillTheLog) {
  TestClient client = ConnectAndGreet();
  for (int i = 0; i < 500; ++i) {
    client.Call(wire::Verb::kDestroyContext, wire::DestroyContext{9});
  }
  EXPECT_LE(daemon_.log().lines().size(), 20U);
  daemon_.Advance(base::kSecond);
  client.Call(wire::Verb::kDestroyContext, wire::DestroyContext{9});
  EXPECT_THAT(daemon_.log().lines(),
              Contains(HasSubstr("480 such lines left out")));
}

TEST_F(ConnectionTest, ClientThatSaysNothingIsDisconnected) {
  TestClient silent = Connect();
  TestClient polite = ConnectAndGreet();
  daemon_.Advance(6 * base::kSecond);
  silent.ExpectEnd();
  EXPECT_EQ(polite.Allocate(1, 64), base::Code::kOk);
}

}  // namespace
}  // namespace rknnd::transport::testing
