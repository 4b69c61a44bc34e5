// Which vector instructions this process computes with. Everything that picks a
// kernel, a block of channels or a layout asks here, so that one setting moves
// all of them: ONEDNN_MAX_CPU_ISA, oneDNN's own variable, lowers the level of a
// whole process on x86, for tests and for comparisons.
//
// Thread: any.

#ifndef DRIVER_SOFT_TILES_CPU_LEVEL_H_
#define DRIVER_SOFT_TILES_CPU_LEVEL_H_

#include <cstdint>
#include <span>

namespace rknnd::soft {

// Each x86 level includes those before it; VNNI is a CPU's dot product of
// bytes. A CPU with AVX-512 and VNNI need not have the one for 256 bits.
enum class CpuLevel : uint8_t {
  kPortable,    // what the compiler makes of plain loops
  kSse41,       // x86
  kAvx,         // 256 bits, floats only
  kAvx2,        // and integers
  kAvx2Vnni,    // and dot products of bytes
  kAvx512,      // 512 bits
  kAvx512Vnni,  // and dot products of bytes
  kNeon,        // arm64
  kNeonDot,     // and dot products of bytes
};

// The highest level that this process may use. Asked once; the same answer for
// as long as the process lives.
CpuLevel CurrentCpuLevel();

// Multiplications with an addition that one core of that level does in a
// nanosecond, in loops made for it: for how long work takes, within a factor of
// three or so.
int64_t OperationsPerNs();

// "avx2_vnni": as reports and benchmarks name it.
const char* CpuLevelName(CpuLevel level);

// All levels this process may use, the lowest first.
std::span<const CpuLevel> UsableCpuLevels();

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_CPU_LEVEL_H_
