#include "driver/rknnrt/versions.h"

#include <compare>
#include <cstdio>
#include <optional>

#include "absl/strings/str_cat.h"

namespace rknnd::rknnrt {
namespace {

struct Version {
  int major = 0, minor = 0, patch = 0;

  friend auto operator<=>(const Version&, const Version&) = default;
  [[nodiscard]] std::string text() const {
    return absl::StrCat(major, ".", minor, ".", patch);
  }
};
constexpr Version kNoMost = {1 << 20, 0, 0};
constexpr Version kOldestGoodDriver = {0, 9, 2};

std::optional<Version> Parse(const std::string& text) {
  Version version;
  const int fields = std::sscanf(text.c_str(), "%d.%d.%d", &version.major,
                                 &version.minor, &version.patch);
  if (fields < 2) return std::nullopt;
  return version;
}

// Of files from `model` on, up to the next row: which libraries run them.
struct Row {
  Version model, least, most;
};
constexpr Row kRows[] = {
    {{1, 2, 0}, {1, 2, 0}, {1, 5, 0}}, {{1, 3, 0}, {1, 3, 0}, {1, 5, 0}},
    {{1, 4, 0}, {1, 4, 0}, {1, 5, 0}}, {{1, 5, 0}, {1, 5, 0}, {1, 5, 0}},
    {{1, 5, 2}, {1, 5, 2}, kNoMost},   {{2, 0, 0}, {2, 0, 0}, kNoMost},
};

}  // namespace

std::string WhyFileMayNotFit(const std::string& model,
                             const std::string& library) {
  const std::optional<Version> made = Parse(model);
  const std::optional<Version> runs = Parse(library);
  if (!made.has_value() || !runs.has_value()) return "";
  const Row* row = nullptr;
  for (const Row& one : kRows) {
    if (one.model <= *made) row = &one;
  }
  if (row == nullptr || (row->least <= *runs && *runs <= row->most)) return "";
  return absl::StrCat("the file was made by toolkit ", made->text(),
                      ", which the vendor's library ", runs->text(),
                      " may not run: it takes ", row->least.text(),
                      row->most == kNoMost ? " or later"
                      : row->most == row->least
                          ? ""
                          : absl::StrCat(" to ", row->most.text()),
                      ". Convert the model again, or install that library");
}

std::string WhyDriverIsOld(const std::string& driver) {
  const std::optional<Version> version = Parse(driver);
  if (!version.has_value() || *version >= kOldestGoodDriver) return "";
  return absl::StrCat("the NPU's driver is ", version->text(),
                      ": the vendor asks for ", kOldestGoodDriver.text(),
                      " or later, which comes with newer firmware");
}

}  // namespace rknnd::rknnrt
