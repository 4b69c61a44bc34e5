#include "driver/soft/soc.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "driver/device.h"

namespace rknnd::soft {
namespace {

using driver::kAnyCoreMask;
using driver::kNoCoreMask;
using driver::kNoDupContext;
using driver::kNoFloat32Outputs;
using driver::kNoLayerTimes;
using driver::kZeroCopyOnly;

constexpr uint32_t kSmallRuntime = kZeroCopyOnly | kNoFloat32Outputs |
                                   kNoLayerTimes | kNoDupContext | kNoCoreMask;
// Whose tables of outputs and of layer times leave it out: what they do not
// refuse is allowed.
constexpr uint32_t kRk2118Runtime = kZeroCopyOnly | kNoDupContext | kNoCoreMask;

// Rows fitted to nine networks of the vendor's benchmark table, which was
// measured at the highest clock.
constexpr TimingRow kRk3588Row = {0.95, 2.1, 8.0, 12.0, 10.0, 8000};
constexpr TimingRow kRk3576Row = {1.0, 0.0, 10.0, 11.6, 7.9, 6000};
constexpr TimingRow kRk3562Row = {0.46, 1.3, 6.0, 8.0, 4.8, 5000};
constexpr TimingRow kRk3568Row = {0.34, 2.9, 6.0, 5.0, 3.6, 16000};

// A guess for a SoC without published milliseconds: a whole row of the nearest
// with MACs and clock scaled, by which start-up gets longer. Bytes go with the
// clock too, as a core's port to memory does.
constexpr TimingRow Scaled(const TimingRow& row, double macs, double clock) {
  return {row.mac * macs * clock,           row.lut_outputs * macs * clock,
          row.plain_outputs * macs * clock, row.conv_bytes * clock,
          row.mover_bytes * clock,          row.layer_nanoseconds / clock};
}

// RV1103 and RV1106: 0.5 TOPS, 512 MAC/cycle like the RK3562, C2 like its, 420
// MHz. The B variants and the RK2118 have the C2 of the RK3568; MACs and clock
// are not published, so they are taken as those of the RV1103. All weak.
constexpr TimingRow kRv1103Row = Scaled(kRk3562Row, 1.0, 0.42);
constexpr TimingRow kRv1103bRow = Scaled(kRk3568Row, 1.0, 0.42 / 0.9);

// The vendor's DDR cycles: 0.7 of 64 bits at 2112 MHz for the RK3588, read off
// published tables to four digits; the guide's figure 8-6 for the RK3568, whose
// clock there is 900 MHz; else what all cores share.
//
// DDR for all cores: from published decoding rates of language models (RK3588,
// RK3576, RK3562). RK3566 and RK3568 have the RK3562's width; the RV110x half
// of it, on their package.
constexpr std::array<SocProfile, 11> kProfiles = {{
    {"rk3588", "rk3588", 3, 978944, 16, 8, 8, 16, 1000, 1024, kRk3588Row, 12.0,
     28.0, 23.654, 0, 0xff001000},
    {"rk3588s", "rk3588", 3, 978944, 16, 8, 8, 16, 1000, 1024, kRk3588Row, 12.0,
     28.0, 23.654, 0, 0xff001000},
    {"rk3576", "rk3576", 2, 0, 16, 8, 8, 16, 1000, 1024, kRk3576Row, 11.6, 14.8,
     14.8, 0},
    {"rk3568", "rk3568", 1, 0, 8, 4, 4, 8, 900, 512, kRk3568Row, 5.0, 8.8, 5.91,
     kAnyCoreMask},
    {"rk3566", "rk3568", 1, 0, 8, 4, 4, 8, 900, 512, kRk3568Row, 5.0, 8.8, 5.91,
     kAnyCoreMask},
    {"rk3562", "rk3562", 1, 0, 16, 8, 8, 16, 1000, 512, kRk3562Row, 8.0, 8.8,
     8.8, kAnyCoreMask},
    {"rv1103", "rv1103", 1, 0, 16, 8, 8, 16, 420, 512, kRv1103Row, 3.36, 4.4,
     4.4, kSmallRuntime},
    {"rv1106", "rv1103", 1, 0, 16, 8, 8, 16, 420, 512, kRv1103Row, 3.36, 4.4,
     4.4, kSmallRuntime},
    {"rv1103b", "rv1103b", 1, 0, 8, 4, 4, 8, 420, 512, kRv1103bRow, 2.33, 4.4,
     4.4, kSmallRuntime},
    {"rv1106b", "rv1103b", 1, 0, 8, 4, 4, 8, 420, 512, kRv1103bRow, 2.33, 4.4,
     4.4, kSmallRuntime},
    {"rk2118", "rk2118", 1, 0, 8, 4, 4, 8, 420, 512, kRv1103bRow, 2.33, 4.4,
     4.4, kRk2118Runtime},
}};

// SoCs with one NPU go by one name; what is no SoC goes by its own.
std::string FamilyOf(absl::string_view name) {
  for (const SocProfile& profile : kProfiles) {
    if (absl::EqualsIgnoreCase(profile.name, name)) return profile.family;
  }
  return absl::AsciiStrToLower(name);
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
