// A client on the same board hands tensors to the gRPC server by the key of a
// buffer: no byte of them is copied, and what becomes of the memory is its
// owner's business.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/grpc_client.h"
#include "tests/integration/harness/integer_model.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr int kBytes = 64;  // of each tensor: 16 numbers
// Of y, for 1 and -1 by turns as x.
constexpr char kPair[] = "02000000feffffff";

class RegionsTest : public IntegrationTest {
 protected:
  RegionsTest() {
    const std::string repository = folder() + "/models";
    std::filesystem::create_directory(repository);
    model_ = WriteFile(repository + "/sum.onnx", IntegerSum());
    StartDaemon(
        {.more = {"--grpc", address_, "--model-repository", repository}});
    client_ = std::make_unique<GrpcClient>(address_);
    owner_ = StartClient();
    EXPECT_TRUE(Done(owner_->Do("init a " + model_)));
    EXPECT_TRUE(Done(owner_->Do("create in a 4096")));
    EXPECT_TRUE(Done(owner_->Do("create out a 4096")));
    std::string numbers;
    for (int i = 0; i < 8; ++i) numbers.append("\x01\0\0\0\xff\xff\xff\xff", 8);
    EXPECT_TRUE(Done(
        owner_->Do("fill in " + WriteFile(folder() + "/numbers", numbers))));
    in_ = KeyOf("in");
    out_ = KeyOf("out");
    EXPECT_TRUE(Eventually([this] {
      return client_->AskOip("ModelReady", {{"name", "sum"}})
          .reply.value("ready", false);
    }));
  }

  std::string KeyOf(const std::string& memory) {
    const Reply reply = owner_->Do("key a " + memory);
    EXPECT_TRUE(Done(reply));
    std::string key;
    std::istringstream(reply.text) >> key;
    EXPECT_EQ(key.size(), 32U);
    return key;
  }
  static json Place(const std::string& region, int64_t offset = 0,
                    int64_t size = kBytes) {
    json place = {{"shared_memory_region", {{"string_param", region}}},
                  {"shared_memory_byte_size", {{"int64_param", size}}}};
    if (offset != 0) place["shared_memory_offset"] = {{"int64_param", offset}};
    return place;
  }
  GrpcJson Infer(const json& input, const json& output) {
    return client_->AskOip(
        "ModelInfer", {{"model_name", "sum"},
                       {"inputs",
                        {{{"name", "x"},
                          {"datatype", "INT32"},
                          {"shape", {1, 16}},
                          {"parameters", input}}}},
                       {"outputs", {{{"name", "y"}, {"parameters", output}}}}});
  }
  GrpcJson Register(const std::string& name, const std::string& key,
                    uint64_t offset = 0, uint64_t size = 4096) {
    return client_->AskOip("SystemSharedMemoryRegister", {{"name", name},
                                                          {"key", key},
                                                          {"offset", offset},
                                                          {"byte_size", size}});
  }
  // All that was copied for any context of the daemon.
  uint64_t Copied() {
    uint64_t bytes = 0;
    for (const json& context :
         AskRknnctl(folder(), daemon().target(), {"contexts"})) {
      for (const json& direction : context["copied_bytes"]) {
        for (const json& reason : direction) bytes += reason.get<uint64_t>();
      }
    }
    return bytes;
  }
  std::string Out(int offset = 0) {
    return owner_->Do("peek out " + std::to_string(offset) + " 8").text;
  }

  const std::string address_ = "unix:" + folder() + "/grpc.sock";
  std::string model_;
  std::unique_ptr<GrpcClient> client_;
  std::unique_ptr<ClientProcess> owner_;
  std::string in_, out_;
};

TEST_F(RegionsTest, NothingIsCopiedBetweenMemoryThatIsNamedByItsKey) {
  for (int run = 0; run < 5; ++run) {
    ASSERT_TRUE(Done(owner_->Do("poke out 0 7")));
    const GrpcJson answer = Infer(Place(in_), Place(out_));
    ASSERT_TRUE(answer.ok()) << answer.message;
    EXPECT_EQ(Out(), kPair);
  }
  EXPECT_EQ(Copied(), 0U);
}

TEST_F(RegionsTest, RegisteredWindowsAreUsedByTheirNames) {
  ASSERT_TRUE(Register("frames", in_).ok());
  ASSERT_TRUE(Register("answers", out_, 1024, 1024).ok());
  const GrpcJson answer = Infer(Place("frames"), Place("answers", 512));
  ASSERT_TRUE(answer.ok()) << answer.message;
  EXPECT_EQ(Out(1536), kPair);
  EXPECT_EQ(Copied(), 0U);

  const GrpcJson twice = Register("frames", in_);
  EXPECT_EQ(twice.code, GrpcCode::kAlreadyExists) << twice.message;
  const GrpcJson status = client_->AskOip("SystemSharedMemoryStatus");
  ASSERT_TRUE(status.ok()) << status.message;
  const json& regions = status.reply["regions"];
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_THAT(regions["answers"].dump(), testing::Not(HasSubstr(out_)));
  EXPECT_THAT(regions["answers"].dump(), HasSubstr(out_.substr(0, 8)));

  ASSERT_TRUE(
      client_->AskOip("SystemSharedMemoryUnregister", {{"name", "frames"}})
          .ok());
  EXPECT_EQ(Infer(Place("frames"), Place("answers")).code, GrpcCode::kNotFound);
}

TEST_F(RegionsTest, WhatIsNoRegionOrNotInItIsRefused) {
  EXPECT_EQ(Register("shm", "/frames").code, GrpcCode::kInvalidArgument);
  EXPECT_THAT(Register("shm", "/frames").message,
              HasSubstr("rknnd_query_buffer_key"));
  EXPECT_EQ(Register("a", in_, 4096, 1).code, GrpcCode::kInvalidArgument);
  EXPECT_EQ(Register("a", in_, UINT64_MAX, 2).code, GrpcCode::kInvalidArgument);
  EXPECT_EQ(Register("a", std::string(32, '0')).code, GrpcCode::kNotFound);
  EXPECT_EQ(Infer(Place("never"), Place(out_)).code, GrpcCode::kNotFound);
  EXPECT_EQ(Infer(Place(std::string(32, 'f')), Place(out_)).code,
            GrpcCode::kNotFound);
  EXPECT_EQ(Infer(Place(in_, 4096 - kBytes + 2), Place(out_)).code,
            GrpcCode::kInvalidArgument);
  EXPECT_EQ(Infer(Place(in_, 0, kBytes - 2), Place(out_)).code,
            GrpcCode::kInvalidArgument);
  EXPECT_FALSE(Infer(Place(in_), Place(out_, 0, kBytes - 2)).ok());
  EXPECT_FALSE(Infer(Place(in_, -8), Place(out_)).ok());
  EXPECT_FALSE(
      Infer(json{{"shared_memory_offset", {{"int64_param", 8}}}}, Place(out_))
          .ok());
  const GrpcJson right = Infer(Place(in_), Place(out_));
  EXPECT_TRUE(right.ok()) << right.message;
}

TEST_F(RegionsTest, MemoryGoesWithItsOwnerHoweverThatEnds) {
  ASSERT_TRUE(Register("frames", in_).ok());
  ASSERT_TRUE(Infer(Place("frames"), Place(out_)).ok());
  owner_->Kill();
  EXPECT_TRUE(Eventually([this] {
    return Infer(Place("frames"), Place(out_)).code == GrpcCode::kNotFound;
  }));
  EXPECT_TRUE(Eventually([this] {
    return client_->AskOip("SystemSharedMemoryStatus").reply["regions"].empty();
  }));
  EXPECT_TRUE(daemon().alive());

  // A program that comes next has other keys, and is served as well.
  owner_ = StartClient();
  ASSERT_TRUE(Done(owner_->Do("init a " + model_)));
  ASSERT_TRUE(Done(owner_->Do("create in a 4096")));
  ASSERT_TRUE(Done(owner_->Do("create out a 4096")));
  EXPECT_NE(KeyOf("in"), in_);
  const GrpcJson again = Infer(Place(KeyOf("in")), Place(KeyOf("out")));
  EXPECT_TRUE(again.ok()) << again.message;
}

TEST_F(RegionsTest, ReleasedMemoryIsRefusedAndARegionOfItGone) {
  ASSERT_TRUE(Register("frames", in_).ok());
  ASSERT_TRUE(Infer(Place("frames"), Place(out_)).ok());
  ASSERT_TRUE(Done(owner_->Do("destroy_mem a in")));
  EXPECT_EQ(Infer(Place("frames"), Place(out_)).code, GrpcCode::kNotFound);
  EXPECT_EQ(Infer(Place(in_), Place(out_)).code, GrpcCode::kNotFound);
}

TEST_F(RegionsTest, KeyIsAnotherOneOnceTheDaemonWasStartedAnew) {
  KillDaemon();
  RestartDaemon();
  EXPECT_NE(KeyOf("in"), in_);
  EXPECT_EQ(KeyOf("in"), KeyOf("in"));
}

}  // namespace
}  // namespace rknnd::integration
