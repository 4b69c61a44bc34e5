// Tests of the accounting: exact sums, limits, and charges that move.

#include "daemon/core/accounts/ledger.h"

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

TEST(LedgerTest, ChargeIsPaidByAccountGroupAndBudgetOrByNone) {
  auto ledger = Ledger::Create(1000, "address_space");
  auto user = ledger->Open("user 7", "limits.user.memory", 600);
  auto session = ledger->Open("session 1", "memory", 500, user);
  auto held = session->TryCharge(MemoryKind::kIo, 400);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(user->held().io, 400U);
  auto twin = ledger->Open("session 2", "memory", 500, user);
  EXPECT_FALSE(twin->TryCharge(MemoryKind::kIo, 201).ok());
  auto model = ledger->Open("model 'x'");
  EXPECT_FALSE(model->TryCharge(MemoryKind::kWeight, 601).ok());
  EXPECT_EQ(ledger->totals().total(), 400U);
  EXPECT_EQ(twin->held().total(), 0U);
  EXPECT_TRUE(model->TryCharge(MemoryKind::kWeight, 600).ok());
}

TEST(LedgerTest, WhatTheNpuDoesNotReachTakesNoneOfItsAddressSpace) {
  auto ledger = Ledger::Create(1000, "address_space");
  auto session = ledger->Open("session 1");
  auto upload = session->TryCharge(MemoryKind::kOther, 5000);
  ASSERT_TRUE(upload.ok());
  EXPECT_TRUE(session->TryCharge(MemoryKind::kIo, 1000).ok());
  EXPECT_FALSE(session->TryCharge(MemoryKind::kIo, 1001).ok());
  EXPECT_EQ(ledger->totals().other, 5000U);
}

TEST(LedgerTest, ReclaimIsAskedAsLongAsItHelps) {
  auto ledger = Ledger::Create(1000, "address_space");
  auto models = ledger->Open("models");
  std::vector<Charge> unused;
  for (int i = 0; i < 3; ++i) {
    unused.push_back(*models->TryCharge(MemoryKind::kWeight, 300));
  }
  ledger->set_reclaim([&unused] {
    if (unused.empty()) return false;
    unused.pop_back();
    return true;
  });
  auto session = ledger->Open("session 1", "memory", 900);
  auto taken = session->TryCharge(MemoryKind::kIo, 700);
  EXPECT_TRUE(taken.ok());
  EXPECT_EQ(unused.size(), 1U);
  // Nothing of others' helps against a limit of its own.
  EXPECT_FALSE(session->TryCharge(MemoryKind::kIo, 300).ok());
  EXPECT_EQ(unused.size(), 1U);
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
