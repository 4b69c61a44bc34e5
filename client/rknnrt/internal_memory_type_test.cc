#include "client/rknnrt/internal_memory_type.h"

#include <gtest/gtest.h>

namespace rknnd::client {
namespace {

TEST(InternalMemoryTypeTest, SramIsAsMuchAsThereIs) {
  EXPECT_EQ(ParseInternalMemoryType("sram"), 0U);
}

TEST(InternalMemoryTypeTest, SramWithANumberIsABoundInKib) {
  EXPECT_EQ(ParseInternalMemoryType("sram#256"), 256U);
  EXPECT_EQ(ParseInternalMemoryType("sram#0"), std::nullopt);
}

TEST(InternalMemoryTypeTest, AnythingElseAsksForNone) {
  for (const char* text : {"", "ddr", "SRAM", "sram#", "sram#-1", "sram#1k",
                           "sram#99999999999999", "sram256"}) {
    EXPECT_EQ(ParseInternalMemoryType(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace rknnd::client
