// The kernels of a model that comes from its compiled form. Making them is most
// of what loading costs, and nobody has to wait for it but a job that is there
// already: each is made when somebody first needs it, usually the loader right
// after the model has been answered for.
//
//   weights in the file --Ready--> weights of our own
//     kernel: saved --MakeAll, or a job--> whole --MakeAll--> in pieces too,
//                                                 where a gang shares it out
//
// Thread: MakeAll: the loader; the rest any.

#ifndef DRIVER_SOFT_COMPILED_RESTORED_KERNELS_H_
#define DRIVER_SOFT_COMPILED_RESTORED_KERNELS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "driver/soft/compiled/saved_plan.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/plan/plan_parts.h"
#include "driver/soft/plan/program.h"
#include "driver/soft/plan/weights.h"

namespace rknnd::soft {

class RestoredKernel;

// One model's, for all its rows of shapes.
class RestoredKernels {
 public:
  // `pieces`: of the weights, in the bytes that `keeper` keeps.
  RestoredKernels(std::vector<std::span<const std::byte>> pieces,
                  std::shared_ptr<const void> keeper, ModelWeights* weights);
  ~RestoredKernels();

  // The parts of one row's plan. The graph is kept until all kernels are made.
  std::unique_ptr<PlanParts> PartsOf(std::unique_ptr<const Graph> graph,
                                     SavedPlan plan);

  // The plans are made, and jobs may come. What the programs read of the file
  // is read from the weight memory once that is there; they stay in place.
  void Serve(std::span<Program> programs);
  // Before each job: the weights are in memory of our own, by now or from now
  // on.
  absl::Status Ready() {
    if (ready_.load(std::memory_order_acquire)) return absl::OkStatus();
    return TakeWeights();
  }
  [[nodiscard]] bool has_weights() const {
    return ready_.load(std::memory_order_acquire);
  }

  // All of them. The first that cannot be made is the error, and jobs will
  // meet it too.
  absl::Status MakeAll();

 private:
  friend class RestoredKernel;
  class Parts;

  // What only making needs.
  struct Row {
    std::unique_ptr<const Graph> graph;
    SavedPlan plan;
    std::vector<RestoredKernel*> kernels;
  };

  absl::Status TakeWeights();
  // Where what lies there in the file lies now.
  [[nodiscard]] const std::byte* Moved(const std::byte* kept) const;

  std::vector<std::span<const std::byte>> pieces_;
  std::shared_ptr<const void> keeper_;
  ModelWeights* const weights_;
  std::vector<const std::byte*> places_;  // of the pieces, once taken
  std::vector<Operand*> kept_;            // that point at pieces
  absl::Status lost_;                     // under the lock
  std::atomic<bool> ready_{false};
  bool serving_ = false;  // set before any job
  // Held while one kernel is made: a job that needs it waits here for the
  // loader, or the other way round. A leaf but for what oneDNN takes.
  base::Mutex making_;
  std::list<Row> rows_;  // until all is made
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_COMPILED_RESTORED_KERNELS_H_
