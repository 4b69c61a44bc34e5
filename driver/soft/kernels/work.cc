// See work.h.

#include "driver/soft/kernels/work.h"

#include <algorithm>

#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::soft {

Work WorkOf(const KernelRequest& request, int64_t operations) {
  Work work;
  for (const auto& specs : {request.inputs, request.outputs}) {
    for (const TensorSpec& spec : specs) {
      work.bytes += static_cast<int64_t>(spec.bytes());
    }
  }
  for (const TensorSpec& spec : request.outputs) {
    work.operations += spec.elements() * operations;
  }
  return work;
}

int64_t MostOperations() {
  constexpr int64_t kNs = int64_t{1} << 25;
  static const int64_t most = OperationsPerNs() * kNs;
  return most;
}

uint32_t StretchesOf(const Work& work, int64_t pieces, uint32_t parts) {
  // A plain loop does one operation, or a few bytes, where vectors do many.
  constexpr int64_t kPlain = 16;
  const int64_t wanted =
      std::max(work.operations, work.bytes) * kPlain / MostOperations();
  return static_cast<uint32_t>(
      std::clamp<int64_t>(std::min(wanted, pieces) / parts, 1, 1 << 16));
}

Range ShareOf(Part part, int64_t count, int64_t unit) {
  const int64_t units = (count + unit - 1) / unit;
  const auto cut = [&](uint32_t index) {
    return std::min(units * index / part.count * unit, count);
  };
  return {cut(part.index), cut(part.index + 1)};
}

}  // namespace rknnd::soft
