#include "client/rknnrt/handle_table.h"

#include <gtest/gtest.h>

#include <set>

namespace rknnd::client {
namespace {

using Table = HandleTable<int>;

uint32_t Insert(Table& table, int value) {
  const uint32_t handle = table.Reserve();
  table.Fill(handle, std::make_shared<int>(value));
  return handle;
}

TEST(HandleTableTest, HandleLeadsToItsObject) {
  Table table;
  const uint32_t seven = Insert(table, 7);
  const uint32_t eight = Insert(table, 8);
  EXPECT_EQ(*table.Find(seven), 7);
  EXPECT_EQ(*table.Find(eight), 8);
}

TEST(HandleTableTest, ZeroIsNeverAHandle) {
  Table table;
  EXPECT_NE(Insert(table, 1), 0U);
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(table.Remove(0), nullptr);
}

TEST(HandleTableTest, RemovedHandleIsStaleThoughItsSlotIsUsedAgain) {
  Table table;
  const uint32_t first = Insert(table, 1);
  EXPECT_EQ(*table.Remove(first), 1);
  const uint32_t second = Insert(table, 2);
  EXPECT_NE(first, second);
  EXPECT_EQ(table.Find(first), nullptr);
  EXPECT_EQ(table.Remove(first), nullptr);
  EXPECT_EQ(*table.Find(second), 2);
}

TEST(HandleTableTest, ReservedHandleIsNotFoundBeforeItIsFilled) {
  Table table;
  EXPECT_EQ(table.Find(table.Reserve()), nullptr);
}

TEST(HandleTableTest, NumbersAbove32BitsAreNoHandles) {
  Table table;
  const uint64_t handle = Insert(table, 1);
  EXPECT_EQ(table.Find(handle | uint64_t{1} << 32), nullptr);
}

TEST(HandleTableTest, FullTableGivesNoHandle) {
  Table table;
  uint32_t last = 0;
  for (uint32_t i = 0; i < Table::kCapacity; ++i) last = table.Reserve();
  EXPECT_NE(last, 0U);
  EXPECT_EQ(table.Reserve(), 0U);
  table.Remove(last);
  EXPECT_NE(table.Reserve(), 0U);
}

TEST(HandleTableTest, ThousandsOfLivesOfOneSlotAllDiffer) {
  Table table;
  std::set<uint32_t> seen;
  constexpr size_t kLives = 10000;
  for (size_t i = 0; i < kLives; ++i) {
    const uint32_t handle = Insert(table, 1);
    seen.insert(handle);
    table.Remove(handle);
  }
  EXPECT_EQ(seen.size(), kLives);
}

TEST(HandleTableTest, TableThatContinuesAnotherKnowsNoneOfItsHandles) {
  Table parent;
  const uint32_t handle = Insert(parent, 1);
  Table child(handle >> Table::kIndexBits);
  EXPECT_NE(Insert(child, 2), handle);
  EXPECT_EQ(child.Find(handle), nullptr);
}

}  // namespace
}  // namespace rknnd::client
