// What every frame passes lies together, and asking for it touches no more.

#include "base/posix/hot_path.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/posix/clock.h"

namespace rknnd::base {
namespace {

RKNND_HOT_PATH int Twice(int number) { return number * 2; }

bool IsHot(uintptr_t address) {
  return address >= reinterpret_cast<uintptr_t>(rknnd_hot_begin) &&
         address < reinterpret_cast<uintptr_t>(rknnd_hot_end);
}

TEST(HotPathTest, MarkedFunctionsLieInTheSection) {
  int (*volatile twice)(int) = Twice;
  EXPECT_EQ(twice(21), 42);
  EXPECT_TRUE(IsHot(reinterpret_cast<uintptr_t>(twice)));
  EXPECT_FALSE(IsHot(reinterpret_cast<uintptr_t>(&IsHot)));
}

TEST(HotPathTest, FetchingItChangesNothing) {
  FetchHotPath();
  EXPECT_EQ(Twice(1), 2);
}

// A section that holds everything would be no help: it is to fit many times
// into the cache that it is fetched into.
TEST(HotPathTest, SectionIsSmall) {
  EXPECT_LT(rknnd_hot_end - rknnd_hot_begin, 128 << 10);
}

}  // namespace
}  // namespace rknnd::base
