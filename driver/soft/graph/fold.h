// Running a node while the model is loaded, because all it reads is known.

#ifndef DRIVER_SOFT_GRAPH_FOLD_H_
#define DRIVER_SOFT_GRAPH_FOLD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// What is left of the bytes and the work of a model whose graph is compiled
// several times, for different shapes. Four, two times what one may have: each
// adds its answers to the model, and loads of others wait for all of them.
struct FoldPool {
  uint64_t bytes = uint64_t{1} << 30;
  uint64_t work = uint64_t{384} << 20;
};

// One for each graph: it keeps account of what folding costs.
// Thread: the loading thread.
class Folder {
 public:
  // `pool`: taken from, or null.
  explicit Folder(FoldPool* pool = nullptr) : pool_(pool) {}

  // Gives the outputs of `node` constants, if all inputs have them and the
  // answer is small enough to keep. False: left for the device to run.
  absl::StatusOr<bool> Fold(Graph& graph, const Node& node, const Operator& op);

 private:
  // A few words of the file can ask for any size; what stays unfolded costs
  // time at run, not memory. The tables that detectors fold have a MiB or so.
  static constexpr uint64_t kMaxOutput = uint64_t{64} << 20;
  static constexpr uint64_t kMaxTotal = uint64_t{256} << 20;
  // Elements read and written and products computed, over all nodes, each by
  // what it costs, a sum's element being 1: one or two seconds of the one
  // thread that loads everybody's models. A few thousand sums of one large
  // constant would keep it for minutes. The weights of large networks,
  // dequantised, fit in.
  static constexpr uint64_t kMaxWork = uint64_t{192} << 20;

  // Shapes: nodes are bounded, and these are needed to know the others.
  static constexpr uint64_t kSmallWork = 4096;

  FoldPool* const pool_;
  uint64_t total_ = 0;
  uint64_t work_ = 0;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_GRAPH_FOLD_H_
