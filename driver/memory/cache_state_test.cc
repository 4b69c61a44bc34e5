// Tests of who is taken to have written memory last.

#include "driver/memory/cache_state.h"

#include <gtest/gtest.h>

namespace rknnd::driver {
namespace {

constexpr CacheState::Range kAll{0, 4096};

TEST(CacheStateTest, MemoryThatIsNoDmaBufNeedsNothing) {
  CacheState memfd(MemoryOrigin::kCachedHeap, /*is_dma_buf=*/false);
  EXPECT_TRUE(memfd.coherent());
  memfd.Written(kAll);
  memfd.Forget();
  EXPECT_TRUE(memfd.coherent());
}

TEST(CacheStateTest, MemoryOfAnUncachedHeapNeedsNothing) {
  const CacheState uncached(MemoryOrigin::kUncachedHeap, true);
  EXPECT_TRUE(uncached.coherent());
}

TEST(CacheStateTest, AMemfdThatAProgramBroughtNeedsNothing) {
  const CacheState brought(MemoryOrigin::kBrought, false);
  EXPECT_TRUE(brought.coherent());
}

TEST(CacheStateTest, NewMemoryIsSynchronisedForBothSides) {
  const CacheState memory(MemoryOrigin::kCachedHeap, true);
  EXPECT_TRUE(memory.MustSync(CpuAccess::kRead, false, kAll));
  EXPECT_TRUE(memory.MustSync(CpuAccess::kWrite, false, kAll));
}

TEST(CacheStateTest, WhatAJobWroteIsReadByTheNextWithoutASync) {
  CacheState memory(MemoryOrigin::kCachedHeap, true);
  memory.Written(kAll);
  EXPECT_EQ(memory.writer(), CacheState::Writer::kDevice);
  EXPECT_FALSE(memory.MustSync(CpuAccess::kRead, false, kAll));
}

TEST(CacheStateTest, WhatLiesBesideWhatAJobWroteIsOthers) {
  // A camera's picture and the answers in one piece of memory.
  CacheState memory(MemoryOrigin::kCachedHeap, true);
  memory.Written({1024, 2048});
  EXPECT_TRUE(memory.MustSync(CpuAccess::kRead, false, {0, 1024}));
  EXPECT_TRUE(memory.MustSync(CpuAccess::kRead, false, {1000, 2048}));
  EXPECT_TRUE(memory.MustSync(CpuAccess::kRead, false, {1024, 2049}));
  EXPECT_FALSE(memory.MustSync(CpuAccess::kRead, false, {1024, 2048}));
  EXPECT_FALSE(memory.MustSync(CpuAccess::kRead, false, {1500, 1600}));
}

TEST(CacheStateTest, RangesThatMeetAreOneAndOthersReplaceIt) {
  CacheState memory(MemoryOrigin::kCachedHeap, true);
  memory.Written({1024, 2048});
  memory.Written({2048, 3072});
  memory.Written({512, 1100});
  EXPECT_FALSE(memory.MustSync(CpuAccess::kRead, false, {512, 3072}));
  memory.Written({0, 100});
  EXPECT_FALSE(memory.MustSync(CpuAccess::kRead, false, {0, 100}));
  EXPECT_TRUE(memory.MustSync(CpuAccess::kRead, false, {512, 3072}));
  EXPECT_TRUE(memory.MustSync(CpuAccess::kRead, false, {0, 600}));
  memory.Written({300, 300});  // nothing
  EXPECT_FALSE(memory.MustSync(CpuAccess::kRead, false, {0, 100}));
}

TEST(CacheStateTest, WhatAJobWritesIsAlwaysMadeVisible) {
  // Whoever reads it next says nothing.
  CacheState memory(MemoryOrigin::kCachedHeap, true);
  memory.Written(kAll);
  EXPECT_TRUE(memory.MustSync(CpuAccess::kWrite, false, kAll));
}

TEST(CacheStateTest, ASyncOfTheProgramMeansThatSomebodyElseMayHaveWritten) {
  CacheState memory(MemoryOrigin::kCachedHeap, true);
  memory.Written(kAll);
  memory.Forget();
  EXPECT_TRUE(memory.MustSync(CpuAccess::kRead, false, kAll));
}

TEST(CacheStateTest, AProgramThatSyncsByItselfIsLeftTo) {
  const CacheState memory(MemoryOrigin::kCachedHeap, true);
  EXPECT_FALSE(memory.MustSync(CpuAccess::kRead, true, kAll));
  EXPECT_FALSE(memory.MustSync(CpuAccess::kWrite, true, kAll));
}

TEST(CacheStateTest, BroughtMemoryIsSynchronisedWhateverHappened) {
  // A camera goes on writing it, and no program says a word.
  CacheState memory(MemoryOrigin::kBrought, true);
  memory.Written(kAll);
  EXPECT_TRUE(memory.MustSync(CpuAccess::kRead, false, kAll));
  EXPECT_TRUE(memory.MustSync(CpuAccess::kRead, true, kAll));
  EXPECT_TRUE(memory.MustSync(CpuAccess::kWrite, true, kAll));
}

}  // namespace
}  // namespace rknnd::driver
