// The smallest network that is one: Relu over sixteen floats, so that what is
// measured is the way to the core and back. And a context of it, bound.

#ifndef BENCH_COMMON_ONE_OPERATOR_H_
#define BENCH_COMMON_ONE_OPERATOR_H_

#include <string>

#include "client/include/rknn_api.h"

namespace rknnd::bench {

std::string OneOperatorModel();

class OneOperatorContext {
 public:
  // `interrupted`: two of them with an operator of the program's in between,
  // which does nothing.
  explicit OneOperatorContext(bool interrupted = false);
  ~OneOperatorContext();
  OneOperatorContext(const OneOperatorContext&) = delete;
  OneOperatorContext& operator=(const OneOperatorContext&) = delete;

  [[nodiscard]] rknn_context get() const { return context_; }

 private:
  rknn_tensor_mem* Bind(rknn_query_cmd which);

  rknn_context context_ = 0;
  rknn_tensor_mem* input_ = nullptr;
  rknn_tensor_mem* output_ = nullptr;
};

}  // namespace rknnd::bench

#endif  // BENCH_COMMON_ONE_OPERATOR_H_
