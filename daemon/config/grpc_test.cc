#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/config/config.h"

namespace rknnd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GrpcConfigTest, WithoutItNothingIsServed) {
  Config config;
  ASSERT_TRUE(ReadToml("", "test.toml", config).ok());
  EXPECT_TRUE(config.grpc.addresses.empty());
  EXPECT_FALSE(config.grpc.insecure);
  EXPECT_TRUE(CheckConfig(config).ok());
}

TEST(GrpcConfigTest, EveryKeyIsTakenOver) {
  Config config;
  const absl::Status status = ReadToml(R"(
[grpc]
listen = ["0.0.0.0:8001", "unix:/run/x/grpc.sock"]
insecure = true
certificate = "/c.pem"
key = "/c.key"
client_ca = "/ca.pem"
operators = ["a", "b"]
tokens = "/tokens"
message_bytes = 100000
memory = 5000000
connections = 7
streams = 8
requests = 9
keepalive = 2.5
unread = 3
advertise = true
[models]
repository = "/models"
)",
                                       "test.toml", config);
  ASSERT_TRUE(status.ok()) << status;
  const transport::GrpcOptions& grpc = config.grpc;
  EXPECT_THAT(grpc.addresses,
              ElementsAre("0.0.0.0:8001", "unix:/run/x/grpc.sock"));
  EXPECT_TRUE(grpc.insecure);
  EXPECT_EQ(grpc.certificate, "/c.pem");
  EXPECT_EQ(grpc.key, "/c.key");
  EXPECT_EQ(grpc.client_ca, "/ca.pem");
  EXPECT_THAT(grpc.operators, ElementsAre("a", "b"));
  EXPECT_EQ(grpc.tokens, "/tokens");
  EXPECT_EQ(grpc.message_bytes, 100'000U);
  EXPECT_EQ(grpc.memory, 5'000'000U);
  EXPECT_EQ(grpc.connections, 7U);
  EXPECT_EQ(grpc.streams, 8U);
  EXPECT_EQ(grpc.requests, 9U);
  EXPECT_EQ(grpc.keepalive, 2'500 * base::kMillisecond);
  EXPECT_EQ(grpc.unread, 3 * base::kSecond);
  EXPECT_TRUE(grpc.advertise);
  EXPECT_EQ(grpc.model_repository, "/models");
  EXPECT_TRUE(CheckConfig(config).ok());
}

TEST(GrpcConfigTest, OneAddressNeedsNoList) {
  Config config;
  ASSERT_TRUE(ReadToml("[grpc]\nlisten = \"127.0.0.1:0\"", "f", config).ok());
  EXPECT_THAT(config.grpc.addresses, ElementsAre("127.0.0.1:0"));
}

TEST(GrpcConfigTest, WhatIsWrongIsNamedWithItsLine) {
  const struct {
    std::string text, message;
  } cases[] = {
      {"grpc = 1", "must be a table: [grpc]"},
      {"[grpc]\nport = 80", "line 2: key 'grpc.port' is unknown"},
      {"[grpc]\nlisten = 80", "must be a list of texts"},
      {"[grpc]\nlisten = [80]", "must be a text in quotes"},
      {"[grpc]\nmessage_bytes = 10", "is 10, must be 65536 to 2147483647"},
      {"[grpc]\nconnections = 0", "is 0, must be 1 to 100000"},
      {"[grpc]\nkeepalive = 0", "is 0 seconds, must be 1 to 3600"},
      {"[grpc]\ninsecure = \"yes\"", "must be true or false"},
  };
  for (const auto& wrong : cases) {
    Config config;
    const absl::Status status = ReadToml(wrong.text, "f", config);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(wrong.message));
  }
}

TEST(GrpcConfigTest, WhatDoesNotGoTogetherIsRefused) {
  Config config;
  config.grpc.operators = {"ops"};
  EXPECT_THAT(std::string(CheckConfig(config).message()),
              HasSubstr("takes grpc.client_ca"));
  config.grpc = {};
  config.grpc.tokens = "tokens";
  EXPECT_THAT(std::string(CheckConfig(config).message()),
              HasSubstr("must be a path from the root"));
}

}  // namespace
}  // namespace rknnd
