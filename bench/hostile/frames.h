// Frames of a well-behaved program, through the C API.

#ifndef BENCH_HOSTILE_FRAMES_H_
#define BENCH_HOSTILE_FRAMES_H_

#include <cstdint>

#include "client/include/rknn_api.h"

namespace rknnd::bench {

// Relu over a handful of numbers, which are others in each frame. Of the daemon
// that RKNND_TARGET names; ends the process where there is none.
class Frames {
 public:
  Frames();

  void Prepare(int frame);
  int Run() { return rknn_run(context_, nullptr); }
  [[nodiscard]] bool IsRight(int frame) const;

 private:
  rknn_tensor_mem* Bind(rknn_query_cmd which);

  rknn_context context_ = 0;
  rknn_tensor_mem *input_ = nullptr, *output_ = nullptr;
  uint32_t elements_ = 0;
};

}  // namespace rknnd::bench

#endif  // BENCH_HOSTILE_FRAMES_H_
