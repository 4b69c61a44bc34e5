#include "daemon/core/scheduling/leases.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

class LeasesTest : public ::testing::Test {
 protected:
  absl::Status Take(SessionId session, uint32_t cores,
                    const std::string& command = "a") {
    return leases_.Take(
        session, {cores, command, 812},
        [this, session](absl::Status) { held_.push_back(session); });
  }

  Leases leases_{7};
  std::vector<SessionId> held_;
};

TEST_F(LeasesTest, HeldWhenNobodyIsOnItsCores) {
  ASSERT_TRUE(Take(1, 3).ok());
  EXPECT_EQ(leases_.lent(), 3U);
  EXPECT_EQ(leases_.awaited(), 3U);
  leases_.Settle(2);
  EXPECT_TRUE(held_.empty());
  leases_.Settle(4);
  EXPECT_EQ(held_, std::vector<SessionId>{1});
  EXPECT_EQ(leases_.awaited(), 0U);
  leases_.Settle(0);
  EXPECT_EQ(held_.size(), 1U);
}

TEST_F(LeasesTest, OverlapIsRefusedAndNamesTheHolder) {
  ASSERT_TRUE(Take(1, 3, "llm").ok());
  const absl::Status refused = Take(2, 6);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "core 1 is lent to 'llm' (pid 812) until that ends: wait for it, "
            "or lease others");
  EXPECT_TRUE(Take(2, 4).ok());
  EXPECT_EQ(leases_.lent(), 7U);
}

TEST_F(LeasesTest, OneLeaseAConnection) {
  ASSERT_TRUE(Take(1, 1).ok());
  EXPECT_EQ(Take(1, 2).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(LeasesTest, CoresThatAreNotThereAreRefused) {
  EXPECT_EQ(Take(1, 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Take(1, 9).message(),
            "no lease of core 3: this NPU has cores 0 to 2");
  EXPECT_EQ(leases_.lent(), 0U);
}

TEST_F(LeasesTest, GivenBackWhileItWaitsIsNeverHeld) {
  ASSERT_TRUE(Take(1, 1).ok());
  EXPECT_TRUE(leases_.GiveBack(1));
  EXPECT_FALSE(leases_.GiveBack(1));
  leases_.Settle(0);
  EXPECT_TRUE(held_.empty());
  EXPECT_EQ(leases_.lent(), 0U);
  EXPECT_EQ(leases_.HolderOf(1), "");
}

}  // namespace
}  // namespace rknnd::core
