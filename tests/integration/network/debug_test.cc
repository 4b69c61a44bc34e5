// rknnd.v1.Debug as a tool in any language sees it: by messages in JSON over
// its own .proto, against a real daemon.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/values/sha256.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/grpc_client.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kPush[] = "/rknnd.v1.Debug/PushModel";
constexpr char kPushRequest[] = "rknnd.v1.DebugPushModelRequest";
constexpr char kPushReply[] = "rknnd.v1.DebugPushModelReply";
constexpr char kDumpReply[] = "rknnd.v1.DebugDumpReply";

// Bytes as protobuf's JSON has them.
std::string AsBase64(const std::string& bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) {
      const auto byte =
          i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
      word = word << 8 | byte;
    }
    for (size_t k = 0; k < 4; ++k) {
      text += i + k > bytes.size() ? '=' : kDigits[word >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

std::string Hash(const std::string& bytes) {
  const auto digest = base::Sha256Of(std::as_bytes(std::span(bytes)));
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

class DebugTest : public IntegrationTest {
 protected:
  // Users come by TCP, operators by a socket of the file system.
  void Start(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--grpc", "127.0.0.1:0", "--grpc",
                             "unix:" + folder() + "/grpc.sock"});
    StartDaemon({.more = more});
    user_.emplace(daemon().grpc_address());
    operator_.emplace("unix:" + folder() + "/grpc.sock");
    model_ = MakeConvNet(folder());
    bytes_ = ReadText(model_.path);
    hash_ = AsBase64(Hash(bytes_));
    // The endpoints have sessions of their own.
    idle_ = Held();
  }

  GrpcJson User(const std::string& method,
                const json& request = json::object()) {
    return user_->Ask("rknnd.v1.Debug/" + method, request);
  }
  GrpcJson Operator(const std::string& method,
                    const json& request = json::object()) {
    return operator_->Ask("rknnd.v1.Debug/" + method, request);
  }
  // Sends `bytes` in pieces as the model of `hash`.
  GrpcResult Push(const std::string& bytes, const std::string& hash,
                  size_t piece = 100, uint64_t size = 0) {
    const auto call = user_->Start(kPush);
    json message = {{"sha256", hash},
                    {"size", std::to_string(size == 0 ? bytes.size() : size)},
                    {"name", "pushed"}};
    bool open = call->Write(GrpcMessage(kPushRequest, message));
    for (size_t at = 0; open && at < bytes.size(); at += piece) {
      message = {{"piece", AsBase64(bytes.substr(at, piece))}};
      open = call->Write(GrpcMessage(kPushRequest, message));
    }
    call->WritesDone();
    const std::optional<std::string> reply = call->Read();
    GrpcResult result = call->Finish();
    if (reply.has_value()) result.bytes = *reply;
    return result;
  }
  void PushModel() {
    const GrpcResult result = Push(bytes_, hash_);
    ASSERT_TRUE(result.ok()) << result.message;
  }

  std::optional<GrpcClient> user_, operator_;
  TestModel model_;
  std::string bytes_, hash_, idle_;
};

TEST_F(DebugTest, StatusTellsWhatTheBoardIs) {
  Start();
  const GrpcJson status = User("Status");
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(status.reply["soc"], "rk3588");
  EXPECT_EQ(status.reply["cores"], 3);
  EXPECT_EQ(status.reply["device"], "soft");
}

// ---- models -----------------------------------------------------------------

TEST_F(DebugTest, ModelIsPushedOnceAndMeasured) {
  Start();
  GrpcResult pushed = Push(bytes_, hash_);
  ASSERT_TRUE(pushed.ok()) << pushed.message;
  EXPECT_EQ(GrpcMessageJson(kPushReply, pushed.bytes)["had"], false);
  // Again: the first message is enough.
  pushed = Push("", hash_, 1, bytes_.size());
  ASSERT_TRUE(pushed.ok()) << pushed.message;
  EXPECT_EQ(GrpcMessageJson(kPushReply, pushed.bytes)["had"], true);

  const GrpcJson perf =
      User("Perf", {{"sha256", hash_}, {"runs", 5}, {"layers", true}});
  ASSERT_TRUE(perf.ok()) << perf.message;
  EXPECT_EQ(perf.reply["run_ns"].size(), 5U);
  ASSERT_GE(perf.reply["layers"].size(), 2U);
  EXPECT_NE(perf.reply["layers"][1].value("kernel", ""), "");
  EXPECT_THAT(perf.reply["text"].get<std::string>(), HasSubstr("Conv"));

  const GrpcJson memory = User("Memory", {{"sha256", hash_}});
  ASSERT_TRUE(memory.ok()) << memory.message;
  EXPECT_GT(std::stoull(memory.reply["weight"].get<std::string>()), 0U);
  EXPECT_GT(std::stoull(memory.reply["other"].get<std::string>()), 0U);
  // Each call took its session with it.
  EXPECT_TRUE(Eventually([this] { return Held() == idle_; }));
}

TEST_F(DebugTest, DumpStreamsEachTensorWhole) {
  Start();
  PushModel();
  const auto call = user_->Start("/rknnd.v1.Debug/Dump");
  ASSERT_TRUE(call->Write(
      GrpcMessage("rknnd.v1.DebugDumpRequest", {{"sha256", hash_}})));
  call->WritesDone();
  size_t tensors = 0;
  uint64_t left = 0;
  while (const std::optional<std::string> message = call->Read()) {
    const json reply = GrpcMessageJson(kDumpReply, *message);
    if (reply.contains("tensor") && !reply["tensor"].is_null()) {
      EXPECT_EQ(left, 0U);
      ++tensors;
      left = std::stoull(reply["tensor"]["size"].get<std::string>());
      EXPECT_NE(reply["tensor"]["name"], "");
    }
    const std::string piece = reply["piece"];
    const size_t padding = std::count(piece.begin(), piece.end(), '=');
    left -= piece.size() / 4 * 3 - padding;
  }
  const GrpcResult end = call->Finish();
  EXPECT_TRUE(end.ok()) << end.message;
  EXPECT_GT(tensors, 0U);
  EXPECT_EQ(left, 0U);
}

TEST_F(DebugTest, WrongModelsAreRefusedWithTheReason) {
  Start();
  GrpcJson perf = User("Perf", {{"sha256", hash_}});
  EXPECT_EQ(perf.code, GrpcCode::kNotFound);
  EXPECT_THAT(perf.message, HasSubstr("push it first"));
  perf = User("Perf", {{"sha256", "YWJj"}});
  EXPECT_EQ(perf.code, GrpcCode::kInvalidArgument);
  EXPECT_THAT(perf.message, HasSubstr("sha256 has 3 bytes"));

  const std::string other = AsBase64(std::string(32, 'x'));
  EXPECT_EQ(Push(bytes_, other).code, GrpcCode::kInvalidArgument);
  GrpcResult result = Push(bytes_, hash_, 100, bytes_.size() + 1);
  EXPECT_EQ(result.code, GrpcCode::kInvalidArgument);
  EXPECT_THAT(result.message, HasSubstr("is incomplete"));
  result = Push(bytes_, hash_, 100, 10);
  EXPECT_EQ(result.code, GrpcCode::kInvalidArgument);
  EXPECT_THAT(result.message, HasSubstr("more came"));
  result = Push(bytes_, hash_, 100, uint64_t{1} << 60);
  EXPECT_EQ(result.code, GrpcCode::kResourceExhausted);
  EXPECT_THAT(result.message, HasSubstr("model_bytes"));

  PushModel();
  perf = User("Perf", {{"sha256", hash_}, {"inputs", {"AAAA"}}});
  EXPECT_EQ(perf.code, GrpcCode::kInvalidArgument);
  EXPECT_THAT(perf.message, HasSubstr("3 bytes given"));
  perf = User("Perf", {{"sha256", hash_}, {"runs", 1'000'000}});
  EXPECT_EQ(perf.code, GrpcCode::kInvalidArgument);
  EXPECT_THAT(perf.message, HasSubstr("10000"));
}

TEST_F(DebugTest, CallerThatVanishesLeavesNothing) {
  Start();
  const TestModel slow = MakeSlow(folder());
  const std::string bytes = ReadText(slow.path);
  const std::string hash = AsBase64(Hash(bytes));
  ASSERT_TRUE(Push(bytes, hash, 100'000).ok());
  {
    const auto call = user_->Start("/rknnd.v1.Debug/Perf");
    ASSERT_TRUE(call->Write(GrpcMessage("rknnd.v1.DebugPerfRequest",
                                        {{"sha256", hash}, {"runs", 10000}})));
    ASSERT_TRUE(SeesJobRunning());
  }
  EXPECT_TRUE(Eventually([this] { return Held() == idle_; }));
  EXPECT_TRUE(User("Status").ok());
}

TEST_F(DebugTest, APushThatStopsIsCutAndIsNobodys) {
  // As few seconds as can be configured.
  const std::string config = folder() + "/rknnd.toml";
  std::ofstream(config) << "[grpc]\nunread = 1\n";
  Start({"--config", config});
  const auto call = user_->Start(kPush);
  ASSERT_TRUE(call->Write(GrpcMessage(
      kPushRequest,
      {{"sha256", hash_}, {"size", std::to_string(bytes_.size())}})));
  // Not the daemon's own, whose limits and accounts are others'.
  ASSERT_TRUE(Eventually([this] {
    const json sessions = AskRknnctl(folder(), daemon().target(), {"sessions"});
    return sessions.dump().find("\"uid\":65534") != std::string::npos;
  }));
  const GrpcResult result = call->Finish();
  EXPECT_EQ(result.code, GrpcCode::kCancelled) << result.message;
  EXPECT_TRUE(Eventually([this] { return Held() == idle_; }));
  EXPECT_THAT(daemon().log(), HasSubstr("does not go on with its model"));
}

// ---- the board --------------------------------------------------------------

TEST_F(DebugTest, DoctorAnswersWithFindings) {
  Start();
  const GrpcJson doctor = User("Doctor");
  ASSERT_TRUE(doctor.ok()) << doctor.message;
  size_t cores = 0;
  for (const json& finding : doctor.reply["findings"]) {
    const std::string check = finding["check"];
    cores += check.starts_with("core-") && finding["severity"] == 0 ? 1 : 0;
  }
  EXPECT_EQ(cores, 3U);
  EXPECT_TRUE(User("Clocks").ok());
}

TEST_F(DebugTest, LogIsStreamed) {
  Start();
  const auto call = user_->Start("/rknnd.v1.Debug/Logs");
  ASSERT_TRUE(call->Write(GrpcMessage("rknnd.v1.DebugLogsRequest",
                                      {{"level", 2}, {"recent", 100}})));
  call->WritesDone();
  const auto wait_for = [&](const std::string& words) {
    while (const std::optional<std::string> message = call->Read()) {
      const json line = GrpcMessageJson("rknnd.v1.DebugLogLine", *message);
      if (line["text"].get<std::string>().find(words) != std::string::npos) {
        return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(wait_for("serves device 'soft'"));
  RawClient other(daemon().socket());
  other.SayHello();
  EXPECT_FALSE(
      other.Ask(wire::Verb::kDestroyContext, wire::DestroyContext{77}).ok());
  EXPECT_TRUE(wait_for("DestroyContext failed"));
  call->Cancel();
}

TEST_F(DebugTest, LogMayEndWithItsLastLines) {
  Start();
  const auto call = user_->Start("/rknnd.v1.Debug/Logs");
  ASSERT_TRUE(
      call->Write(GrpcMessage("rknnd.v1.DebugLogsRequest",
                              {{"level", 2}, {"recent", 3}, {"end", true}})));
  call->WritesDone();
  size_t lines = 0;
  while (call->Read().has_value()) ++lines;
  EXPECT_TRUE(call->Finish().ok());
  EXPECT_GT(lines, 0U);
  EXPECT_LE(lines, 3U);
}

TEST_F(DebugTest, WhatChangesThingsForOthersIsForOperators) {
  Start();
  for (const char* method : {"SetLogLevel", "Reset", "Drain"}) {
    EXPECT_EQ(User(method).code, GrpcCode::kPermissionDenied) << method;
  }
  PushModel();
  EXPECT_EQ(User("Perf", {{"sha256", hash_}, {"fix_clocks", true}}).code,
            GrpcCode::kPermissionDenied);

  const GrpcJson level = Operator("SetLogLevel", {{"level", 3}});
  ASSERT_TRUE(level.ok()) << level.message;
  const GrpcJson again = Operator("SetLogLevel", {{"level", 2}});
  EXPECT_EQ(again.reply["before"], 3);
  EXPECT_TRUE(Operator("Reset").ok());
  const GrpcJson drained = Operator("Drain");
  ASSERT_TRUE(drained.ok()) << drained.message;
  EXPECT_EQ(User("Perf", {{"sha256", hash_}}).code, GrpcCode::kUnavailable);
}

TEST_F(DebugTest, DaemonThatStopsEndsOpenCalls) {
  Start();
  const auto call = user_->Start("/rknnd.v1.Debug/Logs");
  ASSERT_TRUE(call->Write(
      GrpcMessage("rknnd.v1.DebugLogsRequest", {{"recent", 1}, {"level", 2}})));
  call->WritesDone();
  ASSERT_TRUE(call->Read().has_value());
  EXPECT_EQ(EndDaemon(), 0);
  while (call->Read().has_value()) {
  }
  EXPECT_EQ(call->Finish().code, GrpcCode::kUnavailable);
}

}  // namespace
}  // namespace rknnd::integration
