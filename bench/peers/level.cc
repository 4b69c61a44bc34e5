// See level.h.

#include "bench/peers/level.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <stdexcept>

namespace rknnd::bench {
namespace {

CpuFeatures FeaturesOfThisCpu() {
  CpuFeatures features;
#if defined(__x86_64__)
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) features.ecx_1 = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    features.ebx_7 = b;
    features.ecx_7 = c;
    features.edx_7 = d;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) {
      features.eax_7_1 = a;
      features.edx_7_1 = d;
    }
  }
#endif
  return features;
}

bool Has(const CpuFeatures& features, const CpuLevel& level) {
  return (features & level.features) == level.features;
}

bool IsWanted(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() ||
         std::find(names.begin(), names.end(), name) != names.end();
}

void CheckNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name != kNativeLevel && FindCpuLevel(name) == nullptr) {
      throw std::runtime_error("no level '" + name + "'");
    }
  }
}

}  // namespace

std::vector<Level> FindLevels(const std::vector<std::string>& names) {
  CheckNames(names);
  const CpuFeatures features = FeaturesOfThisCpu();
  std::vector<Level> levels;
  if (!names.empty() && IsWanted(names, kNativeLevel)) {
    levels.push_back({kNativeLevel});
  }
  for (auto level = std::rbegin(kCpuLevels); level != std::rend(kCpuLevels);
       ++level) {
    if (!IsWanted(names, level->name)) continue;
    if (Has(features, *level)) {
      levels.push_back({std::string(level->name), &*level});
    } else if (!names.empty()) {
      std::printf("%s: this CPU has not its features\n", level->name.data());
    }
  }
  if (levels.empty()) levels = {{kNativeLevel}};
  return levels;
}

}  // namespace rknnd::bench
