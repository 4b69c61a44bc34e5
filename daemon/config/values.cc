// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config/values.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd {
namespace {

// Beyond a frame's time a core that waits awake is simply lost.
constexpr uint32_t kMostSpinUs = 10'000;
// A day: nobody waits for a driver as long as that.
constexpr uint64_t kMostGiveUpMs = uint64_t{24} * 3600 * 1000;

// One of [[faults.preset]]. What its values may be is checked when the device
// is known.
absl::Status ReadFault(const toml::table& table, const std::string& path,
                       driver::Fault& fault) {
  const Setters setters = {
      {"kind",
       [&](const toml::node& node) -> absl::Status {
         std::string name;
         RKNND_RETURN_IF_ERROR(Text(name)(node));
         const auto kind = driver::FaultKindOf(name);
         if (!kind.ok()) return base::Annotate(kind.status(), "is wrong");
         fault.kind = *kind;
         return absl::OkStatus();
       }},
      {"core", Number(fault.core, 0)},
      {"model", Text(fault.model)},
      {"after", Number(fault.after, 0)},
      {"every", Number(fault.every, 1)},
      {"times", Number(fault.times, 0)},
      {"ms", Number(fault.ms, 0)},
      {"factor",
       [&fault](const toml::node& node) -> absl::Status {
         const auto value = node.value<double>();
         if (!value.has_value()) return WrongType("a number");
         fault.factor = *value;
         return absl::OkStatus();
       }},
      {"bytes", Number(fault.bytes, 0)},
      {"status", Number(fault.status, 0)},
  };
  Complaints complaints;
  complaints.Add(Apply(table, setters, "faults.preset.", path));
  if (!table.contains("kind")) {
    complaints.Add(AtTable(table, path, "faults.preset.kind", "is missing"));
  }
  return complaints.status();
}

// One of [[physical_memory]].
absl::Status ReadPhysical(const toml::table& table, const std::string& path,
                          driver::PhysicalWindow& window) {
  const Setters setters = {
      {"uid", Number(window.uid, 0)},
      {"begin", Number(window.begin, 0)},
      {"size", Number(window.size, 1)},
      {"device", Text(window.device)},
  };
  Complaints complaints;
  complaints.Add(Apply(table, setters, "physical_memory.", path));
  for (const char* key : {"uid", "begin", "size"}) {
    if (table.contains(key)) continue;
    complaints.Add(AtTable(table, path, absl::StrCat("physical_memory.", key),
                           "is missing"));
  }
  return complaints.status();
}

}  // namespace

Setter Isolation(bool& target) {
  return [&target](const toml::node& node) -> absl::Status {
    std::string word;
    RKNND_RETURN_IF_ERROR(Text(word)(node));
    if (word != "strict" && word != "off") {
      return absl::InvalidArgumentError(
          absl::StrCat("is '", word, "', must be \"strict\" or \"off\""));
    }
    target = word == "strict";
    return absl::OkStatus();
  };
}

Setter Spin(std::optional<base::Nanoseconds>& target) {
  return [&target](const toml::node& node) -> absl::Status {
    if (const auto* word = node.as_string(); word != nullptr) {
      if (word->get() == "auto") {
        target.reset();
      } else if (word->get() == "off") {
        target = 0;
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat("is '", word->get(),
                         "', must be \"auto\", \"off\" or microseconds"));
      }
      return absl::OkStatus();
    }
    if (node.as_integer() == nullptr) {
      return WrongType("\"auto\", \"off\" or microseconds");
    }
    uint32_t us = 0;
    RKNND_RETURN_IF_ERROR(Number(us, 0, kMostSpinUs)(node));
    target = us * base::kMicrosecond;
    return absl::OkStatus();
  };
}

Setter HeapOrder(std::vector<std::string>& target) {
  return [&target](const toml::node& node) -> absl::Status {
    const auto* list = node.as_array();
    if (list == nullptr) return WrongType("a list of texts in quotes");
    target.clear();
    for (const toml::node& entry : *list) {
      RKNND_RETURN_IF_ERROR(Text(target.emplace_back())(entry));
      const absl::Status named = driver::CheckHeapName(target.back());
      if (!named.ok()) return base::Annotate(named, "is wrong");
      if (std::count(target.begin(), target.end(), target.back()) > 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("names '", target.back(), "' twice"));
      }
    }
    return absl::OkStatus();
  };
}

Setter Windows(std::vector<driver::PhysicalWindow>& windows,
               const std::string& path) {
  return EachTable("[[physical_memory]]",
                   [&windows, path](const toml::table& window) {
                     return ReadPhysical(window, path, windows.emplace_back());
                   });
}

Setter FaultKeys(FaultConfig& faults, const std::string& path) {
  return Table(
      "faults",
      {
          {"enabled", Flag(faults.enabled)},
          {"give_up_ms",
           [&faults](const toml::node& node) -> absl::Status {
             uint64_t ms = 0;
             RKNND_RETURN_IF_ERROR(Number(ms, 0, kMostGiveUpMs, " ms")(node));
             faults.give_up =
                 static_cast<base::Nanoseconds>(ms) * base::kMillisecond;
             return absl::OkStatus();
           }},
          {"preset", EachTable("[[faults.preset]]",
                               [&faults, path](const auto& fault) {
                                 return ReadFault(fault, path,
                                                  faults.preset.emplace_back());
                               })},
      },
      path);
}

}  // namespace rknnd
