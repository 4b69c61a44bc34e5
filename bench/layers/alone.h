// What oneDNN takes for one layer's convolution or product when nothing else
// runs: the primitive by itself, its tensors in whichever layouts it likes
// best, its weights packed before, again and again over the same memory. No
// plan of a whole network can be quicker with the same primitives.
//
// Thread: one.

#ifndef BENCH_LAYERS_ALONE_H_
#define BENCH_LAYERS_ALONE_H_

#include <cstdint>
#include <optional>

#include "driver/soft/graph/graph.h"

namespace rknnd::bench {

// Nanoseconds, the best of several runs. `node` is of a graph that all passes
// have seen. Bias is added, what was fused behind is not computed: the
// primitive alone is not made to do more than it must. Nothing for operators
// that are not one primitive with weights (Conv, ConvTranspose, MatMul, Gemm,
// and those of 8 bits), and where oneDNN has no kernel made for this CPU.
std::optional<int64_t> BestAlone(const soft::Graph& graph,
                                 const soft::Node& node);

}  // namespace rknnd::bench

#endif  // BENCH_LAYERS_ALONE_H_
