#include "driver/memory/physical.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::driver {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBegin = 0x10000000;
constexpr uint64_t kSize = 0x1000000;

class PhysicalTest : public ::testing::Test {
 protected:
  PhysicalTest()
      : memory_(*PhysicalMemory::Open({{1000, kBegin, kSize, "/dev/zero"},
                                       {1001, 0, 4096, "/dev/zero"}})) {}

  std::string Refused(uint32_t uid, uint64_t address, uint64_t size,
                      absl::StatusCode code) {
    const auto place = memory_.Find(uid, address, size);
    EXPECT_EQ(place.status().code(), code);
    return std::string(place.status().message());
  }

  PhysicalMemory memory_;
};

TEST_F(PhysicalTest, WholeWindowIsItsUsers) {
  const auto place = memory_.Find(1000, kBegin, kSize);
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_GE(place->fd, 0);
  EXPECT_TRUE(memory_.Find(1000, kBegin + kSize - 1, 1).ok());
  // One node, one name for its memory.
  EXPECT_EQ(place->identity, memory_.Find(1001, 0, 1)->identity);
}

TEST_F(PhysicalTest, OtherUsersAreToldWhatToSet) {
  EXPECT_THAT(Refused(1002, kBegin, 16, absl::StatusCode::kPermissionDenied),
              HasSubstr("16 bytes of physical memory at 0x10000000 are not "
                        "allowed to uid 1002: the daemon's configuration "
                        "allows them by [[physical_memory]] with 'uid'"));
}

TEST_F(PhysicalTest, BytesBesideTheWindowAreRefusedWithTheWindow) {
  for (const auto& [address, size] :
       std::vector<std::pair<uint64_t, uint64_t>>{{kBegin - 1, 2},
                                                  {kBegin, kSize + 1},
                                                  {kBegin + kSize, 1},
                                                  {0, kBegin + kSize},
                                                  {0, 4096}}) {
    EXPECT_THAT(
        Refused(1000, address, size, absl::StatusCode::kPermissionDenied),
        HasSubstr("which may have 0x1000000 bytes at 0x10000000"));
  }
}

TEST_F(PhysicalTest, RangesThatOverflowOrAreEmptyAreRefused) {
  EXPECT_THAT(
      Refused(1000, UINT64_MAX - 3, 5, absl::StatusCode::kInvalidArgument),
      HasSubstr("at 0xfffffffffffffffc end beyond all addresses"));
  Refused(1000, kBegin, 0, absl::StatusCode::kInvalidArgument);
}

TEST(PhysicalOpenTest, DeviceThatIsNotThereIsNamed) {
  const auto memory = PhysicalMemory::Open({{0, 0, 4096, "/dev/no_such_node"}});
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(memory.status().message()),
              HasSubstr("'/dev/no_such_node'"));
}

TEST(PhysicalOpenTest, WindowsThatCannotBeAreRefused) {
  EXPECT_FALSE(CheckWindow({0, 0, 0, "/dev/mem"}).ok());
  EXPECT_FALSE(CheckWindow({0, UINT64_MAX, 2, "/dev/mem"}).ok());
  EXPECT_FALSE(CheckWindow({0, 0, 1, "mem"}).ok());
  EXPECT_TRUE(CheckWindow({0, 0, 1, "/dev/mem"}).ok());
}

}  // namespace
}  // namespace rknnd::driver
