// Checks and texts of faults. Called with what an operator wrote, before
// anything is changed.

#include "driver/fault.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::driver {
namespace {

// Beyond a day or a thousandfold a unit was mistaken.
constexpr uint64_t kMaxMs = uint64_t{24} * 3600 * 1000;
constexpr double kMaxFactor = 1000;
// Names of models, as the wire has them.
constexpr size_t kMaxModelText = 255;

struct Kind {
  FaultKind kind;
  std::string_view name;
  // Which fields mean something for it.
  bool core, model, counts, ms, factor, bytes, status;
};

// clang-format off
constexpr std::array<Kind, 8> kKinds = {{
    //                                            core  model counts ms    factor bytes status
    {FaultKind::kSlow,        "slow",             true,  true,  true,  true,  true,  false, false},
    {FaultKind::kHang,        "hang",             true,  true,  true,  true,  false, false, false},
    {FaultKind::kWrongStatus, "wrong-status",     true,  true,  true,  false, false, false, true},
    {FaultKind::kOutOfMemory, "out-of-memory",    false, true,  true,  false, false, true,  false},
    {FaultKind::kDeadCore,    "dead-core",        true,  false, false, false, false, false, false},
    {FaultKind::kCrash,       "crash",            true,  true,  true,  true,  false, false, false},
    {FaultKind::kIncoherent,  "incoherent",       false, false, false, false, false, false, false},
    {FaultKind::kThrottle,    "throttle",         false, false, false, false, true,  false, false},
}};
// clang-format on

const Kind& KindOf(FaultKind kind) {
  for (const Kind& known : kKinds) {
    if (known.kind == kind) return known;
  }
  return kKinds.front();
}

absl::Status Wrong(const char* field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("'", field, "' ", what));
}

absl::Status CheckFactor(const Fault& fault) {
  if (std::isfinite(fault.factor) && fault.factor > 1 &&
      fault.factor <= kMaxFactor) {
    return absl::OkStatus();
  }
  return Wrong("factor", absl::StrCat("is ", fault.factor,
                                      ", must be above 1 and at most ",
                                      kMaxFactor, ": so many times as long"));
}

std::string Ordinal(uint64_t n) {
  const uint64_t tens = n % 100;
  const char* ending = "th";
  if (tens < 11 || tens > 13) {
    if (n % 10 == 1) ending = "st";
    if (n % 10 == 2) ending = "nd";
    if (n % 10 == 3) ending = "rd";
  }
  return absl::StrCat(n, ending);
}

}  // namespace

std::string_view NameOf(FaultKind kind) { return KindOf(kind).name; }

absl::StatusOr<FaultKind> FaultKindOf(std::string_view name) {
  std::string names;
  for (const Kind& known : kKinds) {
    if (known.name == name) return known.kind;
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(known.name));
  }
  return Wrong("kind", absl::StrCat("is '", std::string(name),
                                    "', must be one of ", names));
}

absl::Status CheckFault(const Fault& fault, uint32_t cores) {
  const Kind& kind = KindOf(fault.kind);
  const auto foreign = [&kind](const char* field) {
    return Wrong(field,
                 absl::StrCat("means nothing for '", std::string(kind.name),
                              "': leave it out"));
  };
  if (!kind.core && fault.core.has_value()) return foreign("core");
  if (!kind.model && !fault.model.empty()) return foreign("model");
  if (!kind.counts && fault.after != 0) return foreign("after");
  if (!kind.counts && fault.every != 1) return foreign("every");
  if (!kind.counts && fault.times != 0) return foreign("times");
  if (!kind.ms && fault.ms != 0) return foreign("ms");
  if (!kind.factor && fault.factor != 0) return foreign("factor");
  if (!kind.bytes && fault.bytes != 0) return foreign("bytes");
  if (!kind.status && fault.status.has_value()) return foreign("status");

  if (fault.core.has_value() && *fault.core >= cores) {
    return Wrong(
        "core", absl::StrCat("is ", *fault.core, ", the device has cores 0 to ",
                             cores - 1));
  }
  if (fault.model.size() > kMaxModelText) {
    return Wrong("model", absl::StrCat("has ", fault.model.size(),
                                       " characters, at most ", kMaxModelText,
                                       " are possible"));
  }
  if (fault.every == 0) {
    return Wrong("every", "is 0, must be at least 1: each job, each 2nd");
  }
  if (fault.ms > kMaxMs) {
    return Wrong("ms", absl::StrCat("is ", fault.ms,
                                    ", must be at most a day: ", kMaxMs));
  }
  if (fault.kind == FaultKind::kThrottle) return CheckFactor(fault);
  if (fault.kind == FaultKind::kSlow) {
    if ((fault.ms != 0) == (fault.factor != 0)) {
      return Wrong("ms", "or 'factor', one of the two, says how slow");
    }
    if (fault.factor != 0) return CheckFactor(fault);
  }
  return absl::OkStatus();
}

std::string Describe(const Fault& fault) {
  const Kind& kind = KindOf(fault.kind);
  std::string text(kind.name);
  if (kind.factor && fault.factor != 0) {
    absl::StrAppend(&text, ", ", fault.factor, " times as long");
  }
  if (fault.ms != 0) absl::StrAppend(&text, ", for ", fault.ms, " ms");
  if (fault.status.has_value()) {
    absl::StrAppend(&text, ", status ", *fault.status);
  }
  if (fault.bytes != 0) {
    absl::StrAppend(&text, ", above ", fault.bytes, " bytes");
  }
  if (fault.core.has_value()) absl::StrAppend(&text, ", core ", *fault.core);
  if (!fault.model.empty()) {
    absl::StrAppend(&text, ", model '", fault.model, "'");
  }
  if (fault.after != 0) absl::StrAppend(&text, ", after ", fault.after);
  if (fault.every != 1) {
    absl::StrAppend(&text, ", each ", Ordinal(fault.every));
  }
  if (fault.times != 0) {
    absl::StrAppend(&text, ", ", fault.times,
                    fault.times == 1 ? " time" : " times");
  }
  return text;
}

}  // namespace rknnd::driver
