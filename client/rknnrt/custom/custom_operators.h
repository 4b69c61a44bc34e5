// The operators of one context that the program computes itself
// (rknn_register_custom_ops). They cut the model into parts, each of them a
// context of the target's; a run is one part after the other, with the
// program's callbacks in between, on the thread that called rknn_run. The NPU
// is free meanwhile: what a callback does, or how long it takes, is its own
// program's matter.
//
//   inputs -> part 0 -> operator 0 -> part 1 -> operator 1 -> ... -> outputs
//
// Tensors in between lie in memory that program and device share.

#ifndef CLIENT_RKNNRT_CUSTOM_CUSTOM_OPERATORS_H_
#define CLIENT_RKNNRT_CUSTOM_CUSTOM_OPERATORS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/posix/mutex.h"
#include "base/values/expected.h"
#include "client/include/rknn_custom_op.h"
#include "client/rknnrt/buffer.h"
#include "client/rknnrt/context/context.h"
#include "client/rknnrt/outcome.h"
#include "client/session/target.h"
#include "driver/custom/custom_model.h"

namespace rknnd::client {

// As the model names it; all of op_type where it does not end.
std::string_view TypeOf(const rknn_custom_op& op);
// Null: there is none.
const rknn_custom_op* FindOperator(const std::vector<rknn_custom_op>& ops,
                                   std::string_view type);

// This thread is inside a callback of one of the context's operators.
bool IsInCallback(const Context& context);

// The attribute of the operator that `op_context` is of, or n_elems 0.
Outcome GetOperatorAttribute(const rknn_custom_op_context& op_context,
                             const char* name, rknn_custom_op_attr* attr);

// Thread: any; one run at a time.
class CustomOperators {
 public:
  // `model`: of a context of `target` with the flags `flags`, whose parts come
  // from `source`.
  static base::Expected<std::shared_ptr<CustomOperators>> Make(
      const std::shared_ptr<Target>& target, uint32_t flags,
      const std::shared_ptr<ModelSource>& source, custom::Model model,
      std::vector<rknn_custom_op> ops);
  ~CustomOperators();

  [[nodiscard]] const std::vector<rknn_custom_op>& ops() const { return ops_; }
  // The types of which an init callback has said that the device shall compute
  // them.
  [[nodiscard]] const std::vector<std::string>& declined() const {
    return declined_;
  }
  // Calls the init callbacks. Once.
  base::Expected<void> Begin();
  // Not from inside a callback.
  base::Expected<RunReport> Run(const RunRequest& request,
                                const RunBindings& bindings);
  base::Expected<void> SetCoreMask(uint32_t mask);
  // The layers of each part, and between them what each operator's callbacks
  // took in the last run.
  base::Expected<std::string> PerfText();
  // Calls the destroy callbacks and gives the parts back. Waits for a run.
  void End();
  // This thread is inside one of its callbacks.
  [[nodiscard]] bool IsCalling() const {
    return calling_.load() == std::this_thread::get_id();
  }

 private:
  struct Node;
  struct Part;
  enum class Callback : uint8_t { kInit, kPrepare, kCompute };

  CustomOperators(std::shared_ptr<Target> target, custom::Model model,
                  std::shared_ptr<ModelSource> source,
                  std::vector<rknn_custom_op> ops);
  base::Expected<void> MakeTensors();
  base::Expected<void> MakeParts(uint32_t flags);
  void MakeNodes();
  [[nodiscard]] rknn_custom_op_tensor TensorOf(uint32_t number,
                                               uint32_t index) const;
  static base::Expected<void> BuildKernel(Node& node);
  base::Expected<void> Compute(Node& node);
  int Call(Node& node, Callback callback);
  base::Expected<void> BindPart(Part& part, const RunBindings& bindings);

  const std::shared_ptr<Target> target_;
  const custom::Model model_;
  const std::shared_ptr<ModelSource> source_;
  const std::vector<rknn_custom_op> ops_;
  std::vector<std::string> declined_;
  std::vector<std::unique_ptr<Buffer>> tensors_;  // by number
  base::Mutex mutex_;                             // over a run
  std::vector<Part> parts_ RKNND_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Node>> nodes_ RKNND_GUARDED_BY(mutex_);
  bool ended_ RKNND_GUARDED_BY(mutex_) = false;
  std::atomic<std::thread::id> calling_{};
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CUSTOM_CUSTOM_OPERATORS_H_
