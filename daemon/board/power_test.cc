#include "daemon/board/power.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rknnd {
namespace {

// A /sys of files that say what they are told to.
class PowerTest : public ::testing::Test {
 protected:
  PowerTest()
      : root_(::testing::TempDir() + "power_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~PowerTest() override { std::filesystem::remove_all(root_); }

  void Say(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/sys/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  const std::string root_;
};

TEST_F(PowerTest, BoardThatTellsNothingWaitsAwake) {
  EXPECT_FALSE(SavesPower(root_));
  EXPECT_EQ(AutomaticSpin(root_), kDefaultSpin);
}

TEST_F(PowerTest, DischargingBatterySaves) {
  Say("class/power_supply/BAT0/type", "Battery");
  Say("class/power_supply/BAT0/status", "Discharging");
  EXPECT_TRUE(SavesPower(root_));
  EXPECT_EQ(AutomaticSpin(root_), 0);
}

TEST_F(PowerTest, BatteryThatIsChargedDoesNotSave) {
  Say("class/power_supply/AC/type", "Mains");
  Say("class/power_supply/AC/online", "1");
  Say("class/power_supply/BAT0/type", "Battery");
  Say("class/power_supply/BAT0/status", "Charging");
  EXPECT_FALSE(SavesPower(root_));
}

TEST_F(PowerTest, MouseIsNotTheMachine) {
  Say("class/power_supply/hid-1/type", "Battery");
  Say("class/power_supply/hid-1/scope", "Device");
  Say("class/power_supply/hid-1/status", "Discharging");
  EXPECT_FALSE(SavesPower(root_));
}

TEST_F(PowerTest, ProfileDecides) {
  Say("firmware/acpi/platform_profile", "balanced");
  EXPECT_FALSE(SavesPower(root_));
  Say("firmware/acpi/platform_profile", "low-power");
  EXPECT_TRUE(SavesPower(root_));
}

}  // namespace
}  // namespace rknnd
