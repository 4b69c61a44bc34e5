// More inferences at once than the daemon takes: those that have a place wait
// for their turn, unread, and the others are told when to come again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/grpc_client.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;

constexpr char kUnary[] = "/inference.GRPCInferenceService/ModelInfer";
// That are read or run, of which one peer may have four; as many wait.
constexpr int kRequests = 5;
constexpr int kPlaces = 4 + kRequests;

class InferenceCrowdTest : public IntegrationTest {
 protected:
  InferenceCrowdTest() {
    const std::string repository = folder() + "/models";
    fs::create_directory(repository);
    fs::copy_file(MakeRelu(folder()).path, repository + "/relu.onnx");
    const std::string config =
        WriteFile(folder() + "/config.toml",
                  "[grpc]\nrequests = " + std::to_string(kRequests) + "\n");
    StartDaemon({.more = {"--config", config, "--grpc", address_,
                          "--model-repository", repository}});
    client_ = std::make_unique<GrpcClient>(address_);
    EXPECT_TRUE(Eventually([this] {
      return client_->AskOip("ServerReady").reply.value("ready", false);
    }));
  }

  // So many calls without their messages. What is asked for behind them on the
  // same connection is answered when they have come.
  std::vector<std::unique_ptr<GrpcCall>> Open(int count) {
    std::vector<std::unique_ptr<GrpcCall>> calls;
    for (int i = 0; i < count; ++i) calls.push_back(client_->Start(kUnary));
    EXPECT_TRUE(client_->AskOip("ServerLive").ok());
    return calls;
  }
  static std::string Request() {
    return EncodeOip(
        {"relu", "", "", {{"x", "FP32", {1, 16}, std::string(64, '\0')}}, {}});
  }

  const std::string address_ = "unix:" + folder() + "/grpc.sock";
  std::unique_ptr<GrpcClient> client_;
};

TEST_F(InferenceCrowdTest, WhatHasNoRoomWaitsForItsTurn) {
  const auto calls = Open(kPlaces);
  // Each when it may: one that is not read takes no more than a few bytes.
  for (const auto& call : calls) EXPECT_TRUE(call->Write(Request()));
  for (const auto& call : calls) {
    EXPECT_TRUE(call->Read().has_value()) << call->Finish().message;
  }
}

TEST_F(InferenceCrowdTest, WhoHasNoPlaceIsToldWhenToComeAgain) {
  const auto calls = Open(kPlaces + 3);
  int refused = 0;
  for (const auto& call : calls) call->Write(Request());
  for (const auto& call : calls) {
    if (call->Read().has_value()) continue;
    const GrpcResult result = call->Finish();
    EXPECT_EQ(result.code, GrpcCode::kResourceExhausted) << result.message;
    ASSERT_TRUE(result.come_again.has_value()) << result.message;
    EXPECT_GT(result.come_again->count(), 0);
    ++refused;
  }
  EXPECT_EQ(refused, 3);
  // What they had is free again.
  EXPECT_TRUE(client_->Call(kUnary, Request()).ok());
}

TEST_F(InferenceCrowdTest, CallsThatAreTakenBackLeaveTheirPlaces) {
  for (int round = 0; round < 5; ++round) {
    Open(kPlaces + 3);  // and dropped
    EXPECT_TRUE(
        Eventually([this] { return client_->Call(kUnary, Request()).ok(); }));
  }
}

TEST_F(InferenceCrowdTest, TheDaemonEndsWhileTheyWait) {
  const auto calls = Open(kPlaces);
  EXPECT_TRUE(calls[0]->Write(Request()));
  EXPECT_EQ(EndDaemon(), 0);
  for (const auto& call : calls) {
    while (call->Read().has_value()) {
    }
    const GrpcCode code = call->Finish().code;
    EXPECT_THAT(code, testing::AnyOf(GrpcCode::kOk, GrpcCode::kUnavailable,
                                     GrpcCode::kCancelled));
  }
}

}  // namespace
}  // namespace rknnd::integration
