// See frames.h.

#include "bench/hostile/frames.h"

#include <string>

#include "bench/common/failure.h"
#include "bench/common/one_operator.h"

namespace rknnd::bench {
namespace {

float* Values(const rknn_tensor_mem* mem) {
  return static_cast<float*>(mem->virt_addr);
}
float Number(int frame, uint32_t place) {
  return static_cast<float>((frame * 31 + static_cast<int>(place) * 7) % 23 -
                            11);
}

}  // namespace

Frames::Frames() {
  std::string model = OneOperatorModel();
  if (rknn_init(&context_, model.data(), static_cast<uint32_t>(model.size()), 0,
                nullptr) != RKNN_SUCC) {
    Fail("rknn_init");
  }
  input_ = Bind(RKNN_QUERY_INPUT_ATTR);
  output_ = Bind(RKNN_QUERY_OUTPUT_ATTR);
}

void Frames::Prepare(int frame) {
  for (uint32_t i = 0; i < elements_; ++i) {
    Values(input_)[i] = Number(frame, i);
    Values(output_)[i] = -1;
  }
}

bool Frames::IsRight(int frame) const {
  for (uint32_t i = 0; i < elements_; ++i) {
    const float number = Number(frame, i);
    if (Values(output_)[i] != (number < 0 ? 0 : number)) return false;
  }
  return true;
}

rknn_tensor_mem* Frames::Bind(rknn_query_cmd which) {
  rknn_tensor_attr attr{};
  if (rknn_query(context_, which, &attr, sizeof attr) != RKNN_SUCC) {
    Fail("rknn_query");
  }
  attr.type = RKNN_TENSOR_FLOAT32;
  elements_ = attr.n_elems;
  rknn_tensor_mem* const mem = rknn_create_mem(
      context_, elements_ * static_cast<uint32_t>(sizeof(float)));
  if (mem == nullptr || rknn_set_io_mem(context_, mem, &attr) != RKNN_SUCC) {
    Fail("rknn_set_io_mem");
  }
  return mem;
}

}  // namespace rknnd::bench
