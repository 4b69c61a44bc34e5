// A model in memory that the program brought for it
// (RKNN_FLAG_MODEL_BUFFER_ZERO_COPY): which bytes they are. Called under
// rknn_init with what the program filled in.

#ifndef CLIENT_RKNNRT_MODEL_BUFFER_H_
#define CLIENT_RKNNRT_MODEL_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/posix/mapping.h"
#include "base/values/expected.h"
#include "client/include/rknn_api.h"

namespace rknnd::client {

// Thread: any, one at a time.
class ModelBuffer {
 public:
  // `model`: where the program sees the memory, of `size` bytes; null: it is
  // mapped here from extend->model_buffer_fd, whole where `size` is 0. The
  // slice of `extend`, if it has one, lies inside or it is an error that says
  // so. `extend` may be null.
  static base::Expected<ModelBuffer> Open(const void* model, uint32_t size,
                                          const rknn_init_extend* extend);

  // The model. Valid as long as this.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // The memory it is in, as RKNN_QUERY_DEVICE_MEM_INFO tells it.
  [[nodiscard]] const rknn_tensor_mem& memory() const { return memory_; }

 private:
  ModelBuffer() = default;

  base::Mapping mapping_;  // where the program has none
  std::span<const std::byte> bytes_;
  rknn_tensor_mem memory_{};
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_MODEL_BUFFER_H_
