// Steps in the history of x86 CPUs that choose other kernels, by the names that
// oneDNN gives them, and the bits of CPUID that tell one from the next. No code
// of its own: the module of Node.js (older_cpu.cc) has nothing but libc.

#ifndef BENCH_PEERS_CPU_LEVEL_H_
#define BENCH_PEERS_CPU_LEVEL_H_

#include <cstdint>
#include <string_view>

namespace rknnd::bench {

// What the module of Node.js is told by (older_cpu.cc): where it lies, the
// level that it pretends, and the marked library.
inline constexpr char kOlderModuleVariable[] = "RKNND_OLDER_MODULE";
inline constexpr char kOlderCpuVariable[] = "RKNND_OLDER_CPU";
inline constexpr char kOlderLibraryVariable[] = "RKNND_OLDER_LIBRARY";

// In the place of CPUID (marked_library.h): UD1, an instruction that is
// undefined for ever. Traps of g++ are UD2.
inline constexpr unsigned char kMark[] = {0x0f, 0xb9};

// Registers of CPUID's leaves, those with features of vector units.
struct CpuFeatures {
  uint32_t ecx_1 = 0;
  uint32_t ebx_7 = 0, ecx_7 = 0, edx_7 = 0;
  uint32_t eax_7_1 = 0, edx_7_1 = 0;

  constexpr friend CpuFeatures operator|(const CpuFeatures& a,
                                         const CpuFeatures& b) {
    return {a.ecx_1 | b.ecx_1, a.ebx_7 | b.ebx_7,     a.ecx_7 | b.ecx_7,
            a.edx_7 | b.edx_7, a.eax_7_1 | b.eax_7_1, a.edx_7_1 | b.edx_7_1};
  }
  constexpr friend CpuFeatures operator&(const CpuFeatures& a,
                                         const CpuFeatures& b) {
    return {a.ecx_1 & b.ecx_1, a.ebx_7 & b.ebx_7,     a.ecx_7 & b.ecx_7,
            a.edx_7 & b.edx_7, a.eax_7_1 & b.eax_7_1, a.edx_7_1 & b.edx_7_1};
  }
  constexpr CpuFeatures operator~() const {
    return {~ecx_1, ~ebx_7, ~ecx_7, ~edx_7, ~eax_7_1, ~edx_7_1};
  }
  constexpr bool operator==(const CpuFeatures&) const = default;
};

struct CpuLevel {
  std::string_view name;    // "avx2"
  std::string_view onednn;  // "AVX2", of ONEDNN_MAX_CPU_ISA
  CpuFeatures features;     // of all that are told apart, those it has
};

namespace cpu_level {

constexpr uint32_t Bit(int number) { return uint32_t{1} << number; }

// SSSE3, SSE4.1
inline constexpr CpuFeatures kSse41 = {.ecx_1 = Bit(9) | Bit(19)};
// SSE4.2, POPCNT, AVX
inline constexpr CpuFeatures kAvx =
    kSse41 | CpuFeatures{.ecx_1 = Bit(20) | Bit(23) | Bit(28)};
// FMA, MOVBE, F16C; BMI1, AVX2, BMI2
inline constexpr CpuFeatures kAvx2 =
    kAvx | CpuFeatures{.ecx_1 = Bit(12) | Bit(22) | Bit(29),
                       .ebx_7 = Bit(3) | Bit(5) | Bit(8)};
// AVX-VNNI
inline constexpr CpuFeatures kAvx2Vnni = kAvx2 | CpuFeatures{.eax_7_1 = Bit(4)};
// F, DQ, CD, BW, VL
inline constexpr CpuFeatures kAvx512 =
    kAvx2 |
    CpuFeatures{.ebx_7 = Bit(16) | Bit(17) | Bit(28) | Bit(30) | Bit(31)};
inline constexpr CpuFeatures kAvx512Vnni =
    kAvx512 | CpuFeatures{.ecx_7 = Bit(11)};
// What came later: IFMA, PF, ER; VBMI, VBMI2, BITALG, VPOPCNTDQ; 4VNNIW,
// 4FMAPS, VP2INTERSECT, AMX-BF16, FP16, AMX-TILE, AMX-INT8; BF16, AMX-FP16,
// AVX-IFMA; AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10.
inline constexpr CpuFeatures kLater = {
    .ebx_7 = Bit(21) | Bit(26) | Bit(27),
    .ecx_7 = Bit(1) | Bit(6) | Bit(12) | Bit(14),
    .edx_7 = Bit(2) | Bit(3) | Bit(8) | Bit(22) | Bit(23) | Bit(24) | Bit(25),
    .eax_7_1 = Bit(5) | Bit(21) | Bit(23),
    .edx_7_1 = Bit(4) | Bit(5) | Bit(8) | Bit(10) | Bit(19)};
inline constexpr CpuFeatures kAll = kAvx2Vnni | kAvx512Vnni | kLater;

}  // namespace cpu_level

// From the oldest.
inline constexpr CpuLevel kCpuLevels[] = {
    {"sse41", "SSE41", cpu_level::kSse41},
    {"avx", "AVX", cpu_level::kAvx},
    {"avx2", "AVX2", cpu_level::kAvx2},
    {"avx2_vnni", "AVX2_VNNI", cpu_level::kAvx2Vnni},
    {"avx512", "AVX512_CORE", cpu_level::kAvx512},
    {"avx512_vnni", "AVX512_CORE_VNNI", cpu_level::kAvx512Vnni},
};

constexpr const CpuLevel* FindCpuLevel(std::string_view name) {
  for (const CpuLevel& level : kCpuLevels) {
    if (level.name == name) return &level;
  }
  return nullptr;
}

// What a CPU of that level does not say of itself.
constexpr CpuFeatures HiddenFeatures(const CpuLevel& level) {
  return cpu_level::kAll & ~level.features;
}

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_CPU_LEVEL_H_
