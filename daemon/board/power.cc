// See the header. The files are the kernel's; none of them is there on most
// boards.

#include "daemon/board/power.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace rknnd {
namespace {

namespace fs = std::filesystem;

// Of the kernel's names for profiles, those that give speed away.
constexpr std::array<std::string_view, 3> kSavingProfiles = {"low-power",
                                                             "quiet", "cool"};

// The first line; "" when there is none.
std::string LineOf(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// A battery of the machine itself (a mouse has one, too) that is being used up.
bool OnBattery(const std::string& root) {
  std::error_code error;
  for (const fs::directory_entry& supply :
       fs::directory_iterator(root + "/sys/class/power_supply", error)) {
    if (LineOf(supply.path() / "type") == "Battery" &&
        LineOf(supply.path() / "scope") != "Device" &&
        LineOf(supply.path() / "status") == "Discharging") {
      return true;
    }
  }
  return false;
}

}  // namespace

bool SavesPower(const std::string& root) {
  const std::string profile =
      LineOf(root + "/sys/firmware/acpi/platform_profile");
  return std::find(kSavingProfiles.begin(), kSavingProfiles.end(), profile) !=
             kSavingProfiles.end() ||
         OnBattery(root);
}

base::Nanoseconds AutomaticSpin(const std::string& root) {
  return SavesPower(root) ? 0 : kDefaultSpin;
}

}  // namespace rknnd
