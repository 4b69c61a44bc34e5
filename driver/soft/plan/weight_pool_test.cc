// Weights of several models: what is alike is there once, stays as long as one
// of them is there, and not a page longer.

#include "driver/soft/plan/weight_pool.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver/soft/plan/weights.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

constexpr size_t kBig = size_t{64} << 10;  // whole pages

size_t PageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// What the kernel says this process holds of weight memory.
uint64_t ResidentWeights() {
  std::ifstream smaps("/proc/self/smaps");
  uint64_t sum = 0;
  bool ours = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find('-') < line.find(' ') &&
        line.find(':') != std::string::npos &&
        line.find(" kB") == std::string::npos) {
      ours = line.find(WeightChunk::kName) != std::string::npos;
    } else if (ours && line.rfind("Rss:", 0) == 0) {
      sum += std::stoull(line.substr(4)) << 10;
    }
  }
  return sum;
}

const std::byte* FillWeights(ModelWeights& weights, size_t size, int value) {
  auto stored = weights.Store(size, [&](std::byte* room) {
    std::fill_n(room, size, static_cast<std::byte>(value));
  });
  EXPECT_TRUE(stored.ok()) << stored.status();
  return stored.ok() ? *stored : nullptr;
}

// A model that has pieces of kBig bytes with these values.
std::unique_ptr<ModelWeights> Load(const std::shared_ptr<WeightPool>& pool,
                                   const std::vector<int>& values,
                                   bool shares = true) {
  auto weights =
      std::make_unique<ModelWeights>(values.size() * kBig, pool, shares);
  for (const int value : values) FillWeights(*weights, kBig, value);
  EXPECT_TRUE(weights->Seal().ok());
  return weights;
}

class WeightPoolTest : public ::testing::Test {
 protected:
  const std::shared_ptr<WeightPool> pool_ = std::make_shared<WeightPool>();
};

TEST_F(WeightPoolTest, EqualWeightsOfTwoModelsAreThereOnce) {
  const auto owner = Load(pool_, {1, 2});
  ModelWeights follower(2 * kBig, pool_);
  const std::byte* theirs = FillWeights(follower, kBig, 2);
  ASSERT_TRUE(follower.Seal().ok());

  EXPECT_EQ(static_cast<const void*>(theirs), owner->pieces()[1].data());
  EXPECT_EQ(pool_->held(), 2 * kBig);
  EXPECT_EQ(owner->held(), 2 * kBig);
  EXPECT_EQ(follower.held(), 0U);
  EXPECT_EQ(follower.size(), kBig);
}

TEST_F(WeightPoolTest, OnlyWhatDiffersIsAdded) {
  const auto owner = Load(pool_, {1, 2});
  const auto follower = Load(pool_, {1, 3});

  EXPECT_EQ(follower->held(), kBig);
  EXPECT_EQ(follower->size(), 2 * kBig);
  EXPECT_EQ(pool_->held(), 3 * kBig);
}

TEST_F(WeightPoolTest, WhatOthersUseStaysWhenItsOwnerGoes) {
  auto owner = Load(pool_, {1, 2});
  const auto follower = Load(pool_, {2});
  const auto third = Load(pool_, {2});

  owner = nullptr;

  EXPECT_EQ(pool_->held(), kBig);
  EXPECT_EQ(follower->held(), kBig);
  EXPECT_EQ(third->held(), 0U);
  EXPECT_EQ(follower->pieces()[0], std::string(kBig, '\2'));
}

TEST_F(WeightPoolTest, WhatIsLeftIsPaidForByThoseThatStay) {
  auto owner = Load(pool_, {1, 2, 3});
  auto first = Load(pool_, {1, 9});
  auto second = Load(pool_, {1, 3});

  owner = nullptr;
  EXPECT_EQ(first->held() + second->held(), pool_->held());
  EXPECT_EQ(pool_->held(), 3 * kBig);

  first = nullptr;
  EXPECT_EQ(second->held(), pool_->held());
  EXPECT_EQ(pool_->held(), 2 * kBig);

  second = nullptr;
  EXPECT_EQ(pool_->held(), 0U);
}

TEST_F(WeightPoolTest, TheKernelHoldsWhatThePoolSays) {
  const uint64_t before = ResidentWeights();
  auto owner = Load(pool_, {1, 2, 3, 4});
  const auto follower = Load(pool_, {2, 4, 5});
  EXPECT_EQ(ResidentWeights() - before, pool_->held());

  owner = nullptr;

  EXPECT_EQ(pool_->held(), 3 * kBig);
  EXPECT_EQ(ResidentWeights() - before, pool_->held());
}

TEST_F(WeightPoolTest, APageGoesWithTheLastPieceInIt) {
  const size_t half = PageSize() / 2;
  const auto load = [&](const std::vector<int>& values) {
    auto weights = std::make_unique<ModelWeights>(PageSize(), pool_);
    for (const int value : values) FillWeights(*weights, half, value);
    EXPECT_TRUE(weights->Seal().ok());
    return weights;
  };
  auto owner = load({1, 2, 3, 4});
  auto follower = load({2});
  EXPECT_EQ(pool_->held(), 2 * PageSize());

  owner = nullptr;
  EXPECT_EQ(pool_->held(), PageSize());
  follower = nullptr;
  EXPECT_EQ(pool_->held(), 0U);
}

TEST_F(WeightPoolTest, SmallPiecesAreNotShared) {
  ModelWeights one(PageSize(), pool_);
  ModelWeights two(PageSize(), pool_);
  const std::byte* first = FillWeights(one, WeightPool::kSmallestShared - 1, 1);
  ASSERT_TRUE(one.Seal().ok());
  EXPECT_NE(FillWeights(two, WeightPool::kSmallestShared - 1, 1), first);
}

TEST_F(WeightPoolTest, AModelThatDoesNotShareHasACopy) {
  const auto owner = Load(pool_, {1});
  const auto copy = Load(pool_, {1}, /*shares=*/false);

  EXPECT_EQ(copy->held(), kBig);
  EXPECT_NE(static_cast<const void*>(copy->pieces()[0].data()),
            owner->pieces()[0].data());
}

TEST_F(WeightPoolTest, ACopyIsFoundWhenTheFirstOneIsGone) {
  auto owner = Load(pool_, {1});
  const auto copy = Load(pool_, {1}, /*shares=*/false);
  owner = nullptr;
  // It is known to nobody: whoever comes now brings his own, and is found.
  const auto next = Load(pool_, {1});
  const auto last = Load(pool_, {1});

  EXPECT_EQ(next->held(), kBig);
  EXPECT_EQ(last->held(), 0U);
  EXPECT_EQ(static_cast<const void*>(last->pieces()[0].data()),
            next->pieces()[0].data());
}

TEST_F(WeightPoolTest, AModelThatFailsToLoadLeavesNothing) {
  const auto owner = Load(pool_, {1});
  {
    ModelWeights failed(4 * kBig, pool_);
    FillWeights(failed, kBig, 1);
    FillWeights(failed, kBig, 2);
  }

  EXPECT_EQ(pool_->held(), kBig);
  // Nor did anybody see what it brought.
  const auto next = Load(pool_, {2});
  EXPECT_EQ(next->held(), kBig);
}

TEST_F(WeightPoolTest, ModelsThatComeAndGoAtOnceLeaveNothing) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int round = 0; round < 50; ++round) {
        ModelWeights weights(PageSize(), pool_);
        std::vector<std::pair<const std::byte*, int>> pieces;
        for (int i = 0; i < 6; ++i) {
          const int value = (t + round * 3 + i * 5) % 8;
          pieces.emplace_back(
              FillWeights(weights, 300 + static_cast<size_t>(value) * 3000,
                          value),
              value);
        }
        if (round % 5 == 0) continue;  // failed
        ASSERT_TRUE(weights.Seal().ok());
        for (const auto& [piece, value] : pieces) {
          EXPECT_EQ(*piece, static_cast<std::byte>(value));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool_->held(), 0U);
}

TEST_F(WeightPoolTest, WhatIsSharedCannotBeWritten) {
  const auto owner = Load(pool_, {1});
  std::ifstream maps("/proc/self/maps");
  int seen = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(WeightChunk::kName) == std::string::npos) continue;
    ++seen;
    EXPECT_NE(line.find(" r--s "), std::string::npos) << line;
  }
  EXPECT_EQ(seen, 1);
}

TEST_F(WeightPoolTest, SizesAndOrderDoNotDependOnWhatIsShared) {
  const auto alone = Load(std::make_shared<WeightPool>(), {1, 2, 3});
  const auto owner = Load(pool_, {3, 2});
  const auto follower = Load(pool_, {1, 2, 3});

  EXPECT_EQ(follower->size(), alone->size());
  ASSERT_EQ(follower->pieces().size(), alone->pieces().size());
  EXPECT_TRUE(std::equal(alone->pieces().begin(), alone->pieces().end(),
                         follower->pieces().begin()));
}

}  // namespace
}  // namespace rknnd::soft
