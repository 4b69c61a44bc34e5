#include "daemon/transport/grpc/relay/inbound_memory.h"

#include <gtest/gtest.h>

#include <optional>

namespace rknnd::transport {
namespace {

using Account = InboundMemory::Account;
constexpr uint64_t kOwn = InboundMemory::kOwnBytes;

TEST(InboundMemoryTest, WhoAsksForLittleHasRoomWhateverOthersHold) {
  InboundMemory memory(1000);
  Account greedy(&memory, "a"), modest(&memory, "b");
  EXPECT_TRUE(greedy.Take(kOwn + 1000));
  EXPECT_FALSE(greedy.Take(1));
  EXPECT_TRUE(modest.Take(kOwn));
  EXPECT_FALSE(modest.Take(1));
  greedy.GiveBack(1);
  EXPECT_TRUE(modest.Take(1));
  EXPECT_EQ(memory.used(), 1000U);
}

TEST(InboundMemoryTest, OneThatEndsLeavesNothing) {
  InboundMemory memory(1000);
  {
    Account account(&memory, "a");
    EXPECT_TRUE(account.Take(kOwn + 700));
    EXPECT_EQ(memory.used(), 700U);
  }
  EXPECT_EQ(memory.used(), 0U);
  EXPECT_EQ(memory.Greatest(), nullptr);
}

TEST(InboundMemoryTest, TheGreatestIsOfTheHostThatHoldsMost) {
  InboundMemory memory(1000);
  Account one(&memory, "a"), two(&memory, "a"), lonely(&memory, "b");
  EXPECT_TRUE(lonely.Take(kOwn + 400));
  EXPECT_EQ(memory.Greatest(), &lonely);
  EXPECT_TRUE(one.Take(kOwn + 200));
  EXPECT_TRUE(two.Take(kOwn + 300));
  EXPECT_EQ(memory.Greatest(), &two);
  two.GiveBack(300);
  EXPECT_EQ(memory.Greatest(), &lonely);
}

}  // namespace
}  // namespace rknnd::transport
