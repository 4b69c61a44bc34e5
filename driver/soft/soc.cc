#include "driver/soft/soc.h"

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rknnd::soft {
namespace {

constexpr std::array<SocProfile, 10> kProfiles = {{
    {"rk3588", 3, 8},
    {"rk3588s", 3, 8},
    {"rk3576", 2, 8},
    {"rk3568", 1, 4},
    {"rk3566", 1, 4},
    {"rk3562", 1, 8},
    {"rv1103", 1, 8},
    {"rv1106", 1, 8},
    {"rv1103b", 1, 8},
    {"rv1106b", 1, 8},
}};

}  // namespace

absl::StatusOr<SocProfile> FindSoc(const std::string& name) {
  std::string known;
  for (const SocProfile& profile : kProfiles) {
    if (absl::EqualsIgnoreCase(profile.name, name)) return profile;
    absl::StrAppend(&known, known.empty() ? "" : ", ", profile.name);
  }
  return absl::NotFoundError(absl::StrCat(
      "SoC '", name, "' is unknown to the software NPU: use one of ", known));
}

}  // namespace rknnd::soft
