// See level.h.

#include "bench/peers/level.h"

#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <stdexcept>

#include "base/posix/child_process.h"
#include "bench/peers/cpu_level.h"

namespace rknnd::bench {
namespace {

// Behind the level of a process for which CPUID faults.
constexpr char kPretended[] = ", pretended";

CpuFeatures FeaturesOfThisProcess() {
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

// Whether this process runs under the preloaded library and that does its work.
bool CpuidFaults() {
#if defined(__x86_64__)
  constexpr int kGetCpuid = 0x1011;  // ARCH_GET_CPUID
  return syscall(SYS_arch_prctl, kGetCpuid, 0) == 0;
#else
  return false;
#endif
}

bool Has(const CpuFeatures& features, const CpuLevel& level) {
  return (features & level.features) == level.features;
}

Level Pretended(const CpuLevel& level) {
  const std::string name(level.name);
  return {name,
          {{"LD_PRELOAD", base::ProgramFolder() + "/../lib/rknnd-older-cpu.so"},
           {kOlderCpuVariable, name},
           {"ONEDNN_MAX_CPU_ISA", std::string(level.onednn)}}};
}

// What a process that is started so takes the CPU for; "" where CPUID does not
// fault for it.
std::string LevelUnder(const Level& level) {
  constexpr base::Nanoseconds kPatience = 10 * base::kSecond;
  base::ChildProcess::Options options;
  options.arguments = {"/proc/self/exe", kLevelArgument};
  options.environment = level.environment;
  options.error_file = "/dev/null";  // the loader's, of a missing library
  auto process = base::ChildProcess::Start(options);
  if (!process) return "";
  const auto line = process->ReadLine(kPatience);
  constexpr std::string_view kMark = kPretended;
  if (!line || !line->ends_with(kMark)) return "";
  return line->substr(0, line->size() - kMark.size());
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

std::string LevelOfThisProcess() {
  const CpuFeatures features = FeaturesOfThisProcess();
  std::string name = kNativeLevel;
  for (const CpuLevel& level : kCpuLevels) {
    if (Has(features, level)) name = level.name;
  }
  return name;
}

void SayLevelOfThisProcess() {
  std::printf("%s%s\n", LevelOfThisProcess().c_str(),
              CpuidFaults() ? kPretended : "");
}

std::vector<Level> FindLevels(const std::vector<std::string>& names) {
  CheckNames(names);
  const CpuFeatures features = FeaturesOfThisProcess();
  std::vector<Level> levels;
  if (!names.empty() && IsWanted(names, kNativeLevel)) {
    levels.push_back({kNativeLevel, {}});
  }
  bool pretends = true;
  for (auto level = std::rbegin(kCpuLevels); level != std::rend(kCpuLevels);
       ++level) {
    if (!IsWanted(names, level->name)) continue;
    if (!Has(features, *level)) {
      if (!names.empty()) {
        std::printf("%s: this CPU has not its features\n", level->name.data());
      }
      continue;
    }
    const Level pretended = Pretended(*level);
    if (LevelUnder(pretended) == level->name) {
      levels.push_back(pretended);
    } else {
      pretends = false;
    }
  }
  if (!pretends || (levels.empty() && names.empty())) {
    std::printf(
        "CPUID cannot be made to fault here: only the CPU as it is (%s)\n",
        LevelOfThisProcess().c_str());
    levels = {{kNativeLevel, {}}};
  }
  return levels;
}

}  // namespace rknnd::bench
