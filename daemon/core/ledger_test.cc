// Tests of the accounting: exact sums, limits, and charges that move.

#include "daemon/core/ledger.h"

#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

TEST(LedgerTest, ChargeIsCountedByKindAndOwner) {
  auto ledger = Ledger::Create();
  auto account = ledger->Open("session 1");
  auto other = ledger->Open("session 2");

  auto io = account->TryCharge(MemoryKind::kIo, 100);
  auto weight = other->TryCharge(MemoryKind::kWeight, 7);

  ASSERT_TRUE(io.ok() && weight.ok());
  EXPECT_EQ(account->held().io, 100U);
  EXPECT_EQ(account->held().total(), 100U);
  EXPECT_EQ(other->held().weight, 7U);
  EXPECT_EQ(ledger->totals().total(), 107U);
}

TEST(LedgerTest, DestroyedChargeIsGivenBack) {
  auto ledger = Ledger::Create();
  auto account = ledger->Open("session 1");
  {
    auto charge = account->TryCharge(MemoryKind::kInternal, 4096);
    ASSERT_TRUE(charge.ok());
  }
  EXPECT_EQ(account->held().total(), 0U);
  EXPECT_EQ(ledger->totals().total(), 0U);
}

TEST(LedgerTest, MovedChargeIsCountedOnce) {
  auto ledger = Ledger::Create();
  auto account = ledger->Open("session 1");
  {
    auto first = account->TryCharge(MemoryKind::kIo, 10);
    ASSERT_TRUE(first.ok());
    Charge second = *std::move(first);
    EXPECT_EQ(account->held().io, 10U);
    Charge third;
    third = std::move(second);
    EXPECT_EQ(account->held().io, 10U);
  }
  EXPECT_EQ(account->held().io, 0U);
}

TEST(LedgerTest, ChargeBeyondTheLimitNamesLimitAndHolder) {
  auto ledger = Ledger::Create();
  auto account = ledger->Open("session 5 (pid 9 'cam')", "memory", 1000);
  auto held = account->TryCharge(MemoryKind::kIo, 600);
  ASSERT_TRUE(held.ok());

  auto refused = account->TryCharge(MemoryKind::kIo, 401);

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("pid 9 'cam'"), std::string::npos);
  EXPECT_NE(refused.status().message().find("'memory' of 1000"),
            std::string::npos);
  EXPECT_EQ(account->held().io, 600U);
}

TEST(LedgerTest, ChargeUpToTheLimitIsGranted) {
  auto account = Ledger::Create()->Open("session 1", "memory", 1000);
  EXPECT_TRUE(account->TryCharge(MemoryKind::kIo, 1000).ok());
}

TEST(LedgerTest, HugeChargeDoesNotWrapAround) {
  auto account = Ledger::Create()->Open("session 1", "memory", 1000);
  auto held = account->TryCharge(MemoryKind::kIo, 500);
  ASSERT_TRUE(held.ok());
  EXPECT_FALSE(account->TryCharge(MemoryKind::kIo, UINT64_MAX).ok());
  EXPECT_EQ(account->held().io, 500U);
}

TEST(LedgerTest, RefusedResizeLeavesTheChargeAsItWas) {
  auto account = Ledger::Create()->Open("session 1", "memory", 1000);
  auto charge = account->TryCharge(MemoryKind::kIo, 500);
  ASSERT_TRUE(charge.ok());
  EXPECT_FALSE(charge->Resize(1001).ok());
  EXPECT_EQ(charge->bytes(), 500U);
  EXPECT_TRUE(charge->Resize(1000).ok());
  EXPECT_EQ(account->held().io, 1000U);
}

TEST(LedgerTest, ChargesOfManyThreadsAddUpToZeroAfterwards) {
  auto ledger = Ledger::Create();
  auto account = ledger->Open("session 1", "memory", 1 << 20);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&account] {
      for (int i = 0; i < 1000; ++i) {
        auto charge = account->TryCharge(MemoryKind::kIo, 64);
        if (charge.ok()) (void)charge->Resize(32);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ledger->totals().total(), 0U);
}

}  // namespace
}  // namespace rknnd::core
