// oneDNN as the kernels use it: one engine, primitives whose arguments are
// bound per run, exceptions turned into a Status. Our side of Run allocates
// nothing.
//
// oneDNN uses as many threads as OpenMP says; the device says one, both when a
// primitive is made and when it runs.
//
// Thread: primitives are made by the loading thread and run by any worker.

#ifndef DRIVER_SOFT_KERNELS_ONEDNN_H_
#define DRIVER_SOFT_KERNELS_ONEDNN_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <dnnl.hpp>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

const dnnl::engine& CpuEngine();

// Any type oneDNN knows: float32, int32 and the 8-bit ones.
dnnl::memory::desc Describe(const TensorSpec& spec);
// Dense, for tensors that are not the graph's.
dnnl::memory::desc DescribeDense(std::span<const int64_t> dims);

// Runs `f`, which uses oneDNN; what it throws becomes INTERNAL with the node's
// name, or RESOURCE_EXHAUSTED where memory is short.
absl::Status DnnlError(const NodeView& node, const std::exception& error);
// That oneDNN finds memory for its code, whatever the kernel says.
absl::Status CheckCodeRoom(const NodeView& node);
template <class F>
absl::Status GuardDnnl(const NodeView& node, F&& f) {
  if (absl::Status room = CheckCodeRoom(node); !room.ok()) return room;
  try {
    return std::forward<F>(f)();
  } catch (const std::exception& error) {
    return DnnlError(node, error);
  }
}

// As Kernel::implementation names what `primitive` computes with.
std::string ImplementationOf(const dnnl::primitive_desc_base& primitive);

// Whether oneDNN makes the kernel of that name (impl_info_str) for this CPU, as
// it does "jit:avx2", "brgemm:..." and "x64:gemm:jit". The others ("ref:any",
// "simple_nchw:any", "gemm:ref") are loops that compilers made for any CPU:
// tens to hundreds of times slower.
bool IsGenerated(std::string_view implementation);

// One argument of a primitive.
struct DnnlArgument {
  int index = 0;  // DNNL_ARG_...
  dnnl::memory::desc desc;
  // Bound once, here; null: bound by Run.
  const void* fixed = nullptr;
};

// A primitive and what it is called with. A memory object that is bound anew
// cannot be shared by two runs, so there are kSets sets of them, one taken for
// each run; those bound once for all are shared.
// Construction may throw dnnl::error.
class DnnlCall {
 public:
  DnnlCall(const dnnl::primitive& primitive,
           const std::vector<DnnlArgument>& arguments);
  ~DnnlCall();
  DnnlCall(const DnnlCall&) = delete;
  DnnlCall& operator=(const DnnlCall&) = delete;

  // `data[i]` belongs to the i-th argument that is not fixed.
  absl::Status Run(std::span<void* const> data) const;

 private:
  // As many as any profile has cores.
  static constexpr uint32_t kSets = 4;
  struct Set {
    dnnl::stream stream;
    std::vector<dnnl::memory> memory;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  const dnnl::primitive primitive_;
  std::vector<dnnl::memory> fixed_;
  std::vector<size_t> bound_;  // positions of the arguments not fixed
  std::array<Set, kSets> sets_;
  mutable std::atomic<uint32_t> free_{(1U << kSets) - 1};
};

// Moves a tensor from one layout to another, now. May throw dnnl::error.
void ReorderNow(const dnnl::memory::desc& from_desc, const void* from,
                const dnnl::memory::desc& to_desc, void* to);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_ONEDNN_H_
