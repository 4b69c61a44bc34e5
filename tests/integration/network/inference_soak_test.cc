// Many clients of the inference service at once that cancel, hurry, break their
// streams off and ask for what is not there, by chance: each answer is its own
// request's, and afterwards nothing of it all is left in the daemon.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/grpc_client.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/proc.h"
#include "tests/integration/harness/sanitized.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;

constexpr char kSoakUnary[] = "/inference.GRPCInferenceService/ModelInfer";
constexpr char kSoakStream[] =
    "/inference.GRPCInferenceService/ModelStreamInfer";
constexpr int kElements = 16;
constexpr int kClients = 6;
constexpr int kRounds = 60;

// Numbers that no other request has, as long as `mark` differs.
OipRequest Marked(int mark) {
  std::vector<float> x(kElements);
  for (int i = 0; i < kElements; ++i) {
    x[static_cast<size_t>(i)] = static_cast<float>(mark * kElements + i);
  }
  std::string raw(x.size() * sizeof(float), '\0');
  std::memcpy(raw.data(), x.data(), raw.size());
  return {"relu",
          "",
          std::to_string(mark),
          {{"x", "FP32", {1, kElements}, std::move(raw)}},
          {}};
}

// An answer is that of the request whose id it has, which relu leaves as it is.
void ExpectOwn(const OipAnswer& answer) {
  ASSERT_EQ(answer.outputs.size(), 1U);
  EXPECT_EQ(answer.outputs[0].raw, Marked(std::stoi(answer.id)).inputs[0].raw);
}

class InferenceSoakTest : public IntegrationTest {
 protected:
  InferenceSoakTest() {
    const std::string repository = folder() + "/models";
    fs::create_directory(repository);
    const TestModel relu = MakeRelu(folder());
    fs::copy_file(relu.path, repository + "/relu.onnx");
    fs::copy_file(relu.path, repository + "/other.onnx");
    // Of both, one client may have three quarters: what is not given back is
    // missed soon.
    const std::string config = WriteFile(
        folder() + "/config.toml",
        "[grpc]\nrequests = 100\nmemory = 4194304\nmessage_bytes = 1048576\n");
    StartDaemon({.more = {"--config", config, "--grpc", address_,
                          "--model-repository", repository}});
    client_ = std::make_unique<GrpcClient>(address_);
    EXPECT_TRUE(Eventually([this] {
      return client_->AskOip("ServerReady").reply.value("ready", false);
    }));
  }

  // What one client does in a round; `mark` is its own.
  void PlayRound(const GrpcClient& client, std::mt19937* random, int mark) {
    switch ((*random)() % 7) {
      case 0:
        return Hurry(mark, 1 + static_cast<int>((*random)() % 4));
      case 1: {  // taken back at once
        const auto call = client.Start(kSoakUnary);
        call->Write(EncodeOip(Marked(mark)));
        if ((*random)() % 2 == 0) call->Cancel();
        return;
      }
      case 2:
        return BreakOff(client, random, mark, false);
      case 3:
        return BreakOff(client, random, mark, true);
      case 4: {
        OipRequest request = Marked(mark);
        request.inputs[0].name = "nobody";
        // Or there is no room for it now.
        EXPECT_THAT(client.Infer(request).code,
                    testing::AnyOf(GrpcCode::kInvalidArgument,
                                   GrpcCode::kResourceExhausted));
        return;
      }
      case 5: {
        OipRequest request = Marked(mark);
        request.model = "other";  // comes and goes
        const OipAnswer answer = client.Infer(request);
        if (answer.ok()) ExpectOwn(answer);
        return;
      }
      default: {
        const OipAnswer answer = client.Infer(Marked(mark));
        if (answer.ok()) return ExpectOwn(answer);
        EXPECT_EQ(answer.code, GrpcCode::kResourceExhausted) << answer.message;
      }
    }
  }

  void Hurry(int mark, int milliseconds) {
    GrpcClientOptions options;
    options.timeout = std::chrono::milliseconds(milliseconds);
    const OipAnswer answer = GrpcClient(address_, options).Infer(Marked(mark));
    if (answer.ok()) ExpectOwn(answer);
  }

  // A stream of which some answers are read, or all. So few bytes are taken by
  // gRPC, whoever reads them.
  static void BreakOff(const GrpcClient& client, std::mt19937* random, int mark,
                       bool with_errors) {
    const auto stream = client.Start(kSoakStream);
    const OipRequest good = Marked(mark);
    OipRequest bad = good;
    bad.model = "nobody";
    const int requests = 1 + static_cast<int>((*random)() % 30);
    for (int i = 0; i < requests; ++i) {
      const bool is_bad = with_errors && i % 3 == 2;
      if (!stream->Write(EncodeOip(is_bad ? bad : good))) return;
    }
    if ((*random)() % 2 == 0) stream->WritesDone();
    const int reads = static_cast<int>((*random)() % 31);
    for (int i = 0; i < std::min(reads, requests); ++i) {
      const std::optional<std::string> answer = stream->Read();
      if (!answer.has_value()) return;
      const bool own = answer->find(good.inputs[0].raw) != std::string::npos;
      const bool refused = answer->find("nobody") != std::string::npos ||
                           answer->find("grpc.") != std::string::npos;
      EXPECT_TRUE(own || refused) << *answer;
    }
    // What was not read is cancelled with it.
  }

  // All clients at once, until each has played its rounds or `ended`.
  std::vector<std::thread> Play(const std::atomic<bool>* ended) {
    std::vector<std::thread> clients;
    for (int number = 0; number < kClients; ++number) {
      clients.emplace_back([this, number, ended] {
        std::mt19937 random(static_cast<unsigned>(number) + 1);
        for (int round = 0; round < kRounds && !*ended; ++round) {
          const GrpcClient client(address_);
          PlayRound(client, &random, number * kRounds + round);
        }
      });
    }
    return clients;
  }

  // As many at once as one client's part of the memory holds while they are
  // read: none is refused.
  void ExpectAllRoom() {
    constexpr int kAtOnce = 30;
    std::vector<std::unique_ptr<GrpcCall>> calls;
    for (int i = 0; i < kAtOnce; ++i) {
      calls.push_back(client_->Start(kSoakUnary));
      EXPECT_TRUE(calls.back()->Write(EncodeOip(Marked(i))));
    }
    for (const auto& call : calls) {
      EXPECT_TRUE(call->Read().has_value()) << call->Finish().message;
    }
  }

  const std::string address_ = "unix:" + folder() + "/grpc.sock";
  std::unique_ptr<GrpcClient> client_;
};

TEST_F(InferenceSoakTest, NothingIsLeftOfClientsThatComeAndGo) {
  ExpectAllRoom();
  const ProcessUse before = UseOf(daemon().pid());
  std::atomic<bool> ended{false};
  std::vector<std::thread> clients = Play(&ended);
  std::thread repository([this, &ended] {
    while (!ended) {
      for (const char* const verb :
           {"RepositoryModelUnload", "RepositoryModelLoad"}) {
        const GrpcJson done = client_->AskOip(verb, {{"model_name", "other"}});
        EXPECT_TRUE(done.ok()) << done.message;
      }
    }
  });
  for (std::thread& client : clients) client.join();
  ended = true;
  repository.join();

  ASSERT_TRUE(daemon().alive());
  ExpectAllRoom();
  const OipAnswer answer = client_->Infer(Marked(7));
  ASSERT_TRUE(answer.ok()) << answer.message;
  ExpectOwn(answer);
  // Connections end a moment after their clients. Lanes that were not needed
  // before may have been made: a buffer each.
  constexpr size_t kLanes = 9;
  EXPECT_TRUE(Eventually([&] {
    return UseOf(daemon().pid()).fds <= before.fds + 3 * kLanes;
  })) << testing::PrintToString(before)
      << ", " << testing::PrintToString(UseOf(daemon().pid()));
  constexpr uint64_t kMost = uint64_t{64} << 20;
  if (!kSanitized) {
    EXPECT_LE(UseOf(daemon().pid()).rss, before.rss + kMost);
  }
}

TEST_F(InferenceSoakTest, TheDaemonEndsInTheMidstOfIt) {
  std::atomic<bool> ended{false};
  std::vector<std::thread> clients;
  for (int number = 0; number < kClients; ++number) {
    clients.emplace_back([this, &ended] {
      const GrpcClient client(address_);
      while (!ended) {
        const auto stream = client.Start(kSoakStream);
        for (int i = 0; i < 8; ++i) stream->Write(EncodeOip(Marked(i)));
        const auto call = client.Start(kSoakUnary);
        call->Write(EncodeOip(Marked(1)));
        stream->Read();
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const OipAnswer answer = client_->Infer(Marked(i));
    if (answer.ok()) ExpectOwn(answer);
  }
  EXPECT_EQ(EndDaemon(), 0);
  ended = true;
  for (std::thread& client : clients) client.join();
}

// Few bytes that need much, or that took long to read.
TEST_F(InferenceSoakTest, AMessageCostsNoMoreThanRequestsMayHold) {
  constexpr size_t kBytes = 200'000;
  const uint64_t before = UseOf(daemon().pid()).rss;
  std::string empties;
  while (empties.size() < kBytes) empties.append("\x2a\x00", 2);
  EXPECT_EQ(client_->Call(kSoakUnary, empties).code,
            GrpcCode::kInvalidArgument);
  // One input with contents of ever so many empty texts.
  std::string texts;
  while (texts.size() < kBytes) texts.append("\x42\x00", 2);
  const std::string contents("\x2a\xc0\x9a\x0c", 4);  // 200000 bytes
  const std::string input("\x2a\xc4\x9a\x0c", 4);
  const GrpcResult refused =
      client_->Call(kSoakUnary, input + contents + texts);
  EXPECT_EQ(refused.code, GrpcCode::kResourceExhausted) << refused.message;
  EXPECT_LE(UseOf(daemon().pid()).rss, before + (uint64_t{16} << 20));
  ExpectAllRoom();
}

}  // namespace
}  // namespace rknnd::integration
