// What models cost that share their weights: the ledger has each byte once, as
// long as anybody uses it.

#include "daemon/core/models/weight_charges.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

// Two models share 100 bytes that the first of them pays for while it is there.
struct Shared {
  bool first_is_there = true;
};

class ChargedModel final : public driver::Model {
 public:
  ChargedModel(std::shared_ptr<Shared> shared, bool first, uint64_t own)
      : shared_(std::move(shared)), first_(first), own_(own) {
    info_.weight_size = 100 + own;
  }
  ~ChargedModel() override {
    if (first_) shared_->first_is_there = false;
  }
  [[nodiscard]] const driver::ModelInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t /*program*/, driver::Direction /*direction*/, uint32_t /*index*/,
      const driver::TensorFormat& /*format*/) const override {
    return 0;
  }
  [[nodiscard]] uint64_t held_weights() const override {
    return own_ + (first_ || !shared_->first_is_there ? 100 : 0);
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const bool first_;
  const uint64_t own_;
  driver::ModelInfo info_;
};

class WeightChargesTest : public ::testing::Test {
 protected:
  std::unique_ptr<driver::Model> Enter(bool first, uint64_t own) {
    auto model = std::make_unique<ChargedModel>(shared_, first, own);
    EXPECT_TRUE(charges_.Enter(*model, "a model").ok());
    return model;
  }
  [[nodiscard]] uint64_t weight() const { return ledger_->totals().weight; }

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  const std::shared_ptr<Ledger> ledger_ = Ledger::Create(1000, "budget");
  WeightCharges charges_{ledger_};
};

TEST_F(WeightChargesTest, SharedBytesAreChargedOnce) {
  auto first = Enter(true, 7);
  auto second = Enter(false, 3);
  EXPECT_EQ(weight(), 110U);

  charges_.Leave(std::move(second));
  EXPECT_EQ(weight(), 107U);
  charges_.Leave(std::move(first));
  EXPECT_EQ(weight(), 0U);
}

TEST_F(WeightChargesTest, ThoseThatStayGoOnPaying) {
  auto first = Enter(true, 7);
  auto second = Enter(false, 3);

  charges_.Leave(std::move(first));
  EXPECT_EQ(weight(), 103U);
  charges_.Leave(std::move(second));
  EXPECT_EQ(weight(), 0U);
}

TEST_F(WeightChargesTest, StayingNeedsNoRoomInTheBudget) {
  auto first = Enter(true, 0);
  auto second = Enter(false, 0);
  std::unique_ptr<driver::Model> other =
      std::make_unique<ChargedModel>(std::make_shared<Shared>(), false, 900);
  ASSERT_TRUE(charges_.Enter(*other, "another").ok());
  EXPECT_EQ(weight(), 1000U);

  charges_.Leave(std::move(first));
  EXPECT_EQ(weight(), 1000U);
  charges_.Leave(std::move(other));
  EXPECT_EQ(weight(), 100U);
  charges_.Leave(std::move(second));
  EXPECT_EQ(weight(), 0U);
}

TEST_F(WeightChargesTest, ModelBeyondTheBudgetIsNotCharged) {
  auto first = Enter(true, 0);
  auto large = std::make_unique<ChargedModel>(shared_, false, 901);
  EXPECT_FALSE(charges_.Enter(*large, "a large model").ok());
  EXPECT_EQ(weight(), 100U);

  charges_.Leave(std::move(large));
  EXPECT_EQ(weight(), 100U);
  charges_.Leave(std::move(first));
  EXPECT_EQ(weight(), 0U);
}

}  // namespace
}  // namespace rknnd::core
