// See work.h.

#include "driver/soft/kernels/work.h"

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

Range ShareOf(Part part, int64_t count, int64_t unit) {
  const int64_t units = (count + unit - 1) / unit;
  const auto cut = [&](uint32_t index) {
    return std::min(units * index / part.count * unit, count);
  };
  return {cut(part.index), cut(part.index + 1)};
}

}  // namespace rknnd::soft
