#include "driver/soft/soc.h"

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
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

// SoCs with one NPU go by one name.
std::string FamilyOf(absl::string_view name) {
  std::string family = absl::AsciiStrToLower(name);
  for (const auto& [member, first] :
       {std::pair("rk3588s", "rk3588"), std::pair("rk3566", "rk3568"),
        std::pair("rv1106", "rv1103"), std::pair("rv1106b", "rv1103b")}) {
    if (family == member) return first;
  }
  return family;
}

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

absl::Status CheckTarget(const std::string& target, const SocProfile& soc,
                         const std::string& model) {
  if (target.empty() || FamilyOf(target) == FamilyOf(soc.name)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("model '", model, "' is for ", target, ", this NPU is ",
                   soc.name, "; convert with target_platform=", soc.name));
}

}  // namespace rknnd::soft
