// Models of several resolutions with the same weights: the guide's flow
// (RKNN_FLAG_SHARE_WEIGHT_MEM, rknn_init_extend), in one process and in
// several, whatever becomes of the first model and of the daemon.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

class SharedWeightsTest : public IntegrationTest {
 protected:
  void SetUp() override {
    large_ = MakeResolution(folder(), 40);
    small_ = MakeResolution(folder(), 24);
    bare_ = MakeResolution(folder(), 24, /*with_weights=*/false);
  }

  // What the kernel says the daemon holds of them.
  uint64_t ResidentWeights() {
    std::istringstream smaps(
        ReadText("/proc/" + std::to_string(daemon().pid()) + "/smaps"));
    uint64_t sum = 0;
    bool ours = false;
    for (std::string line; std::getline(smaps, line);) {
      if (line.find("rknnd-weights") != std::string::npos) ours = true;
      if (line.rfind("VmFlags:", 0) == 0) ours = false;
      if (ours && line.rfind("Rss:", 0) == 0) {
        sum += std::stoull(line.substr(4)) << 10;
      }
    }
    return sum;
  }
  // Bytes of weights on the whole board.
  uint64_t Weights() {
    return AskRknnctl(folder(), daemon().target(), {"mem"})["kinds"]["weight"];
  }
  static int CountModels(const std::string& cache) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache)) {
      count += entry.path().extension() == ".model" ? 1 : 0;
    }
    return count;
  }
  // The owner's context 'a' and a follower's, 'b'.
  void StartBoth(ClientProcess& client) {
    ASSERT_TRUE(Done(client.Do("init a " + large_.path)));
    ASSERT_TRUE(Done(client.Do("share b " + bare_.path + " a")));
  }

  static constexpr uint64_t kFewKib = uint64_t{8} << 10;
  TestModel large_, small_, bare_;
};

TEST_F(SharedWeightsTest, FollowerAnswersAndCostsAFewKib) {
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + large_.path)));
  const uint64_t alone = Weights();
  EXPECT_GE(alone, 400U << 10);
  ASSERT_TRUE(Done(client->Do("share b " + bare_.path + " a")));

  EXPECT_TRUE(RunsRight(*client, "a", large_));
  EXPECT_TRUE(RunsRight(*client, "b", small_));
  EXPECT_GE(Weights(), alone);
  EXPECT_LE(Weights(), alone + kFewKib);
}

TEST_F(SharedWeightsTest, ModelsGivenAsBytesShareToo) {
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init_bytes a " + large_.path)));
  ASSERT_TRUE(Done(client->Do("share_bytes b " + bare_.path + " a")));
  EXPECT_TRUE(RunsRight(*client, "b", small_));
}

TEST_F(SharedWeightsTest, SharingNeedsNoDaemonOfItsOwn) {
  for (const std::string bytes : {"", "_bytes"}) {
    const auto client = StartClient({}, kLocal);
    ASSERT_TRUE(Done(client->Do("init" + bytes + " a " + large_.path)));
    ASSERT_TRUE(Done(client->Do("share" + bytes + " b " + bare_.path + " a")));
    EXPECT_TRUE(RunsRight(*client, "b", small_));
  }
}

TEST_F(SharedWeightsTest, EqualWeightsAreSharedUnasked) {
  StartDaemon();
  const auto first = StartClient();
  const auto second = StartClient();
  ASSERT_TRUE(Done(first->Do("init a " + large_.path)));
  const uint64_t alone = Weights();
  ASSERT_TRUE(Done(second->Do("init b " + small_.path)));

  EXPECT_LE(Weights(), alone + kFewKib);
  EXPECT_TRUE(RunsRight(*second, "b", small_));
  EXPECT_TRUE(RunsRight(*first, "a", large_));
}

TEST_F(SharedWeightsTest, ProcessesShareWhatAnotherBrought) {
  StartDaemon();
  const auto first = StartClient();
  const auto second = StartClient();
  StartBoth(*first);
  const uint64_t alone = Weights();
  StartBoth(*second);
  EXPECT_EQ(Weights(), alone);
  EXPECT_TRUE(RunsRight(*second, "b", small_));
  EXPECT_EQ(Status().model_count, 2U);
}

TEST_F(SharedWeightsTest, FollowerOutlivesItsOwner) {
  StartDaemon();
  const auto client = StartClient();
  StartBoth(*client);
  ASSERT_TRUE(Done(client->Do("destroy a")));
  EXPECT_TRUE(RunsRight(*client, "b", small_));
  ASSERT_TRUE(Done(client->Do("dup c b")));
  ASSERT_TRUE(Done(client->Do("destroy b")));
  EXPECT_TRUE(RunsRight(*client, "c", small_));
}

TEST_F(SharedWeightsTest, WhatNobodyUsesAnyMoreIsGivenBack) {
  // Models go with their last context.
  DaemonOptions options;
  options.more = {"--config",
                  WriteFile(folder() + "/rknnd.toml", "grace = 0\n")};
  StartDaemon(options);
  const TestModel other = MakeOtherResolution(folder(), 32);
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + large_.path)));
  const uint64_t alone = Weights();
  ASSERT_TRUE(Done(client->Do("share b " + other.path + " a")));
  const uint64_t both = Weights();

  // One of the owner's three weights is nobody's now.
  EXPECT_EQ(ResidentWeights(), both);
  ASSERT_TRUE(Done(client->Do("destroy a")));
  EXPECT_TRUE(Eventually([&] { return Weights() < both; }));
  EXPECT_EQ(ResidentWeights(), Weights());
  EXPECT_GE(Weights(), alone);
  EXPECT_LE(Weights(), alone + kFewKib);
  EXPECT_TRUE(RunsRight(*client, "b", other));
  ASSERT_TRUE(Done(client->Do("destroy b")));
  EXPECT_TRUE(Eventually([&] { return Weights() == 0; }));
}

TEST_F(SharedWeightsTest, FollowerAloneSaysWhatItNeeds) {
  StartDaemon();
  StartNeighbour();
  const auto client = StartClient();
  const Reply reply = client->Do("init b " + bare_.path);
  EXPECT_THAT(reply, Fails(RKNN_ERR_MODEL_INVALID, "'w0' has no data"));
  EXPECT_THAT(reply.text, testing::HasSubstr("RKNN_FLAG_SHARE_WEIGHT_MEM"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(SharedWeightsTest, WrongOwnerIsNamedByTheWeight) {
  StartDaemon();
  StartNeighbour();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + MakeRelu(folder()).path)));
  EXPECT_THAT(client->Do("share b " + bare_.path + " a"),
              Fails(RKNN_ERR_MODEL_INVALID, "initializer 'w0'"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(SharedWeightsTest, WhatIsNoOwnerIsRefused) {
  StartDaemon();
  const auto client = StartClient();
  // No context at all, and the one that is just being made.
  EXPECT_THAT(client->Do("share b " + small_.path + " never"),
              Fails(RKNN_ERR_CTX_INVALID, "extend->ctx"));
  EXPECT_THAT(client->Do("share b " + small_.path + " b"),
              Fails(RKNN_ERR_CTX_INVALID, "extend->ctx"));
  StartBoth(*client);
  ASSERT_TRUE(Done(client->Do("init d " + large_.path)));
  ASSERT_TRUE(Done(client->Do("destroy d")));
  EXPECT_THAT(client->Do("share c " + small_.path + " d"),
              Fails(RKNN_ERR_CTX_INVALID, "extend->ctx"));
  // One that shares itself.
  EXPECT_THAT(client->Do("share c " + small_.path + " b"),
              Fails(RKNN_ERR_PARAM_INVALID, "another context itself"));
  EXPECT_TRUE(RunsRight(*client, "b", small_));
}

TEST_F(SharedWeightsTest, FollowerWithWeightsOfItsOwnKeepsThem) {
  StartDaemon();
  const TestModel other = MakeOtherResolution(folder(), 32);
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + large_.path)));
  const uint64_t alone = Weights();
  ASSERT_TRUE(Done(client->Do("share b " + other.path + " a")));
  EXPECT_TRUE(RunsRight(*client, "b", other));
  // One of three differs.
  EXPECT_GE(Weights(), alone + (140U << 10));
  EXPECT_LE(Weights(), alone + (160U << 10));
}

TEST_F(SharedWeightsTest, RestartedDaemonGetsBothAgain) {
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init_bytes a " + large_.path)));
  ASSERT_TRUE(Done(client->Do("share_bytes b " + bare_.path + " a")));
  ASSERT_TRUE(Done(client->Do("destroy a")));
  KillDaemon();
  RestartDaemon();
  EXPECT_TRUE(RunsRight(*client, "b", small_));
}

TEST_F(SharedWeightsTest, RestartedDaemonWithACacheAsksNobody) {
  const std::string cache = folder() + "/cache";
  StartDaemon({.cache_dir = cache});
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init_bytes a " + large_.path)));
  ASSERT_TRUE(Done(client->Do("share_bytes b " + bare_.path + " a")));
  // They are written behind the answers.
  ASSERT_TRUE(Eventually([&cache] { return CountModels(cache) == 2; }));
  KillDaemon();
  RestartDaemon();
  EXPECT_TRUE(RunsRight(*client, "b", small_));
  EXPECT_TRUE(RunsRight(*client, "a", large_));
}

}  // namespace
}  // namespace rknnd::integration
