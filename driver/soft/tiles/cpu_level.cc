// See cpu_level.h.

#include "driver/soft/tiles/cpu_level.h"

#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#include <dnnl.hpp>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace rknnd::soft {
namespace {

#if defined(__x86_64__) || defined(__i386__)
// clang 14 has no name for it.
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// g++ 12 has no name for it.
bool HasAvxVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 4)) != 0;
}
#endif

std::vector<CpuLevel> FindLevels() {
  std::vector<CpuLevel> levels = {CpuLevel::kPortable};
#if defined(__x86_64__) || defined(__i386__)
  using dnnl::cpu_isa;
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  // oneDNN's levels are bits, each with those of what it includes.
  const auto add = [&](cpu_isa wanted, bool has, CpuLevel level) {
    const auto bits = static_cast<unsigned>(wanted);
    if (has && (isa & bits) == bits) levels.push_back(level);
  };
  add(cpu_isa::sse41, __builtin_cpu_supports("sse4.1") != 0, CpuLevel::kSse41);
  add(cpu_isa::avx, __builtin_cpu_supports("avx") != 0, CpuLevel::kAvx);
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 &&
                    __builtin_cpu_supports("fma") != 0 && HasF16c();
  add(cpu_isa::avx2, avx2, CpuLevel::kAvx2);
  // oneDNN's levels with AVX-512 leave the 256-bit instructions out.
  const bool above = (isa & static_cast<unsigned>(cpu_isa::avx512_core)) ==
                     static_cast<unsigned>(cpu_isa::avx512_core);
  add(above ? cpu_isa::avx2 : cpu_isa::avx2_vnni, avx2 && HasAvxVnni(),
      CpuLevel::kAvx2Vnni);
  const bool avx512 = __builtin_cpu_supports("avx512f") != 0 &&
                      __builtin_cpu_supports("avx512bw") != 0 &&
                      __builtin_cpu_supports("avx512dq") != 0 &&
                      __builtin_cpu_supports("avx512vl") != 0;
  add(cpu_isa::avx512_core, avx512, CpuLevel::kAvx512);
  add(cpu_isa::avx512_core_vnni,
      avx512 && __builtin_cpu_supports("avx512vnni") != 0,
      CpuLevel::kAvx512Vnni);
#elif defined(__aarch64__)
  levels.push_back(CpuLevel::kNeon);
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) {
    levels.push_back(CpuLevel::kNeonDot);
  }
#endif
  return levels;
}

const std::vector<CpuLevel>& Levels() {
  static const std::vector<CpuLevel> levels = FindLevels();
  return levels;
}

}  // namespace

CpuLevel CurrentCpuLevel() { return Levels().back(); }

int64_t OperationsPerNs() {
  switch (CurrentCpuLevel()) {
    case CpuLevel::kAvx512:
    case CpuLevel::kAvx512Vnni:
      return 32;
    case CpuLevel::kAvx2:
    case CpuLevel::kAvx2Vnni:
      return 16;
    default:
      return 8;
  }
}

std::span<const CpuLevel> UsableCpuLevels() { return Levels(); }

const char* CpuLevelName(CpuLevel level) {
  switch (level) {
    case CpuLevel::kPortable:
      return "portable";
    case CpuLevel::kSse41:
      return "sse41";
    case CpuLevel::kAvx:
      return "avx";
    case CpuLevel::kAvx2:
      return "avx2";
    case CpuLevel::kAvx2Vnni:
      return "avx2_vnni";
    case CpuLevel::kAvx512:
      return "avx512";
    case CpuLevel::kAvx512Vnni:
      return "avx512_vnni";
    case CpuLevel::kNeon:
      return "neon";
    case CpuLevel::kNeonDot:
      return "neon_dot";
  }
  return "unknown";
}

}  // namespace rknnd::soft
