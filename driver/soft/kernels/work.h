// When the cores of a gang share a layer out. One rule for all kernels, by what
// the layer costs one core: a part must take longer than handing it over does.
// It looks at shapes only, never at a clock: equal inputs are computed in equal
// parts on every start.
//
// Thread: any.

#ifndef DRIVER_SOFT_KERNELS_WORK_H_
#define DRIVER_SOFT_KERNELS_WORK_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// What a layer costs one core.
struct Work {
  int64_t bytes = 0;       // read and written
  int64_t operations = 0;  // multiplications with an addition, and the like
};

// As many operations as a function of one number takes: e^x, a division.
inline constexpr int64_t kFunction = 32;

// All of these tensors read or written once, and so many operations for each
// element of the output.
Work WorkOf(const KernelRequest& request, int64_t operations = 1);

// Into how many parts that work is cut for so many cores, of which it has
// `pieces` to give; 1: one core does it.
inline uint32_t PartsOf(const Work& work, int64_t pieces, uint32_t cores) {
  // What any CPU with vectors does in a nanosecond at least, more or less.
  constexpr int64_t kBytesPerNs = 16, kOperationsPerNs = 32;
  // Handing a part to a core that looks for it, and waiting for its answer,
  // takes some 0.7 us; and two cores at once are each slower than one alone.
  constexpr int64_t kLeastNs = 2000;
  const int64_t ns =
      work.bytes / kBytesPerNs + work.operations / kOperationsPerNs;
  const int64_t parts = std::min({ns / kLeastNs, pieces, int64_t{cores}});
  return static_cast<uint32_t>(std::max<int64_t>(parts, 1));
}

// What a core computes between two looks at whether its job is still wanted
// (stop.h): some 30 ms of multiplications at the rate of its level.
int64_t MostOperations();
// The same of a loop that compilers make for any CPU.
inline constexpr int64_t kMostOfPlainLoops = 1 << 21;
// In how many stretches a part of that work is done, one of `parts` of it.
uint32_t StretchesOf(const Work& work, int64_t pieces, uint32_t parts);

// A part's share of `count` things in a row, cut between multiples of `unit`.
struct Range {
  int64_t begin = 0, end = 0;
  [[nodiscard]] int64_t size() const { return end - begin; }
};
Range ShareOf(Part part, int64_t count, int64_t unit = 1);

// Floats and bytes are cut where cache lines and the widest vectors begin, so
// that each element is computed by the same instructions in every part.
inline constexpr int64_t kElementUnit = 64;

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_WORK_H_
