// Tests of the ModelConfig that clients send: what of it counts, and JSON that
// is none.

#include "daemon/transport/grpc/inference/repository_config.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace rknnd::transport {
namespace {

using Versions = std::vector<std::string>;

const Versions& There() {
  static const Versions there = {"1", "2", "10"};
  return there;
}

absl::StatusOr<Versions> Choose(const std::string& config) {
  const auto policy = ParseModelConfig("m", config);
  if (!policy.ok()) return policy.status();
  return policy->Choose(There());
}

TEST(RepositoryConfigTest, LatestIsServedUnlessItSaysOtherwise) {
  for (const char* config :
       {"", "{}", R"({"name":"m","max_batch_size":0,"input":[]})",
        R"({"version_policy":{}})", R"({"version_policy":{"latest":{}}})",
        R"({"versionPolicy":{"latest":{"numVersions":1}}})"}) {
    const auto chosen = Choose(config);
    ASSERT_TRUE(chosen.ok()) << config << ": " << chosen.status();
    EXPECT_EQ(*chosen, Versions{"10"}) << config;
  }
}

TEST(RepositoryConfigTest, PoliciesChooseVersions) {
  EXPECT_EQ(*Choose(R"({"version_policy":{"latest":{"num_versions":2}}})"),
            (Versions{"2", "10"}));
  EXPECT_EQ(*Choose(R"({"version_policy":{"latest":{"num_versions":99}}})"),
            There());
  EXPECT_EQ(*Choose(R"({"version_policy":{"all":{}}})"), There());
  // As numbers and as protobuf writes 64-bit ones.
  EXPECT_EQ(*Choose(R"({"version_policy":{"specific":{"versions":[10,"1"]}}})"),
            (Versions{"1", "10"}));
}

TEST(RepositoryConfigTest, VersionThatIsNotThereIsNotFound) {
  EXPECT_EQ(Choose(R"({"version_policy":{"specific":{"versions":[3]}}})")
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

TEST(RepositoryConfigTest, WhatIsNoConfigIsRefused) {
  const std::string deep(100000, '[');
  for (const std::string& config :
       {std::string("nonsense"), std::string("[]"), std::string("{\"name\":"),
        std::string(R"({"name":"other"})"), std::string(R"({"name":7})"),
        std::string(R"({"version_policy":[]})"),
        std::string(R"({"version_policy":{"all":{},"latest":{}}})"),
        std::string(R"({"version_policy":{"newest":{}}})"),
        std::string(R"({"version_policy":{"latest":{"num_versions":0}}})"),
        std::string(R"({"version_policy":{"latest":{"num_versions":-1}}})"),
        std::string(R"({"version_policy":{"specific":{}}})"),
        std::string(R"({"version_policy":{"specific":{"versions":[]}}})"),
        std::string(R"({"version_policy":{"specific":{"versions":[0]}}})"),
        std::string(R"({"version_policy":{"specific":{"versions":["../1"]}}})"),
        std::string(R"({"version_policy":{"specific":{"versions":[1.5]}}})"),
        deep, deep.substr(0, 60000)}) {
    EXPECT_EQ(ParseModelConfig("m", config).status().code(),
              absl::StatusCode::kInvalidArgument)
        << config.substr(0, 80);
  }
}

}  // namespace
}  // namespace rknnd::transport
