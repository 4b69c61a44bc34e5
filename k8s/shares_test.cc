// What shares are called and come to.

#include "k8s/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status/matchers.h"

namespace rknnd::k8s {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string MessageOf(const std::vector<std::string>& ids, uint32_t count) {
  return std::string(ParseShareIds(ids, count).status().message());
}

TEST(SharesTest, FourOfACoreUnlessSomebodySaysHowMany) {
  EXPECT_EQ(DefaultShares(3), 12U);
  EXPECT_EQ(DefaultShares(1), 4U);
  // A daemon that knows no cores has some, and no node has more than it may.
  EXPECT_EQ(DefaultShares(0), 4U);
  EXPECT_EQ(DefaultShares(1'000'000), kMostShares);
}

TEST(SharesTest, IdsOfTheNodeAreUnderstoodInTheirOrder) {
  const auto shares = ParseShareIds({ShareId(11), ShareId(2)}, 12);
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_THAT(*shares, ElementsAre(2U, 11U));
  EXPECT_EQ(ShareId(7), "npu-share-007");
}

TEST(SharesTest, OtherIdsAreRefusedByName) {
  for (const char* id :
       {"", "npu-share-", "npu-share-7", "npu-share-+07", "npu-share-0007",
        "npu-share-07x", "gpu-0", "npu-share-99999999999"}) {
    EXPECT_THAT(MessageOf({id}, 12), HasSubstr("none of this node's")) << id;
  }
  EXPECT_THAT(MessageOf({ShareId(12)}, 12), HasSubstr("not there any more"));
  EXPECT_THAT(MessageOf({ShareId(1), ShareId(1)}, 12), HasSubstr("twice"));
  EXPECT_THAT(MessageOf({}, 12), HasSubstr("no share at all"));
}

TEST(SharesTest, AllSharesTogetherAreTheWholeNpu) {
  const Capacity capacity{3, 4096};
  const wire::ShareSocket all = ShareSocketFor("a", 12, 12, capacity);
  EXPECT_EQ(all.weight, 1000U);
  EXPECT_EQ(all.sessions, 512U);
  EXPECT_LE(all.memory, capacity.memory);
  EXPECT_GT(all.memory, capacity.memory - 12);
  const wire::ShareSocket one = ShareSocketFor("a", 1, 12, capacity);
  EXPECT_EQ(one.weight, 83U);
  EXPECT_EQ(one.memory, 341U);
  EXPECT_STREQ(one.name, "a");
}

TEST(SharesTest, TheSmallestShareHasALimitAndSomeRoom) {
  const wire::ShareSocket share_socket = ShareSocketFor("a", 1, 256, {3, 100});
  EXPECT_EQ(share_socket.weight, 3U);
  EXPECT_EQ(share_socket.sessions, 8U);
  EXPECT_EQ(share_socket.memory, 1U);  // not 0, which would be none
}

TEST(SharesTest, MoreSharesThanThereAreIsAllOfThem) {
  EXPECT_EQ(ShareSocketFor("a", 12, 6, {3, 4096}).weight, 1000U);
}

TEST(SharesTest, WithoutACapacityThereIsNoLimitOfMemory) {
  EXPECT_EQ(ShareSocketFor("a", 1, 12, {}).memory, 0U);
}

TEST(SharesTest, AResourceHasADomainAndAName) {
  for (const char* name : {"rknnd.io/npu-share", "a/b", "x-1.y/z0"}) {
    EXPECT_TRUE(CheckResourceName(name).ok()) << name;
  }
  for (const char* name :
       {"", "/", "npu", "rknnd.io/", "/npu", "Rknnd.io/npu", "rknnd..io/npu",
        "rknnd.io/npu_share", "-a/b", "a/b/c", "a/../b"}) {
    EXPECT_THAT(std::string(CheckResourceName(name).message()),
                HasSubstr("--resource"))
        << name;
  }
}

}  // namespace
}  // namespace rknnd::k8s
