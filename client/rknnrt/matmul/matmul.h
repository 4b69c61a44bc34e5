// What a context of rknn_matmul_create is beside a context: which product, and
// scales. The target has it as a model with inputs A, B and, for products that
// are scaled, the scales (driver/matmul/matmul_spec.h), which lie in memory of
// the library's own.
//
//   rknn_matmul_create --> a Context of that model, with a Matmul
//   set_io_mem  A, B, C   bindings of the Context
//   set_quant_params      numbers kept here; before a run, into the scales
//   run                   the Context's
//
// A and B are read when a run begins, in the layout that was asked for: a
// program may fill them before rknn_matmul_set_io_mem, or after.

#ifndef CLIENT_RKNNRT_MATMUL_MATMUL_H_
#define CLIENT_RKNNRT_MATMUL_MATMUL_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/posix/mutex.h"
#include "base/values/expected.h"
#include "client/include/rknn_matmul_api.h"
#include "client/rknnrt/buffer.h"
#include "client/rknnrt/context/context.h"
#include "client/rknnrt/outcome.h"
#include "driver/matmul/matmul_layout.h"
#include "driver/matmul/matmul_spec.h"

namespace rknnd::client {

// What a program described; shapes are those of `shapes`. Numbers that are none
// of their enumerations are an error.
base::Expected<matmul::Spec> SpecOf(const rknn_matmul_info& info,
                                    std::span<const rknn_matmul_shape> shapes);

// Makes the context and describes its matrices, an entry for each shape. The
// first shape is current.
Outcome CreateMatmul(const rknn_matmul_info& info,
                     std::span<const rknn_matmul_shape> shapes,
                     rknn_matmul_ctx* context,
                     std::span<rknn_matmul_io_attr> attrs);

// Thread: any. The lock is held over calls to the context.
class Matmul {
 public:
  Matmul(matmul::Spec spec, const matmul::Blocks& blocks)
      : spec_(std::move(spec)), blocks_(blocks), shape_(spec_.shapes[0]) {}

  // `context` is the one that has this, in all of these.
  // Before all others, once.
  Outcome Begin(Context& context);
  Outcome SetShape(Context& context, const matmul::Shape& shape);
  Outcome Bind(Context& context, const Buffer& memory, std::string_view name);
  Outcome SetQuantParams(const rknn_quant_params& params);
  Outcome GetQuantParams(rknn_quant_params* params, float* factor);
  Outcome Run(Context& context);

 private:
  struct Matrix {
    const char* name;
    bool bound = false;
    std::vector<float> scales = {};   // empty: 1
    std::vector<int32_t> zeros = {};  // empty: 0
  };
  Matrix* Find(std::string_view name) RKNND_REQUIRES(mutex_);
  [[nodiscard]] int64_t ScalesOf(const Matrix& matrix) const
      RKNND_REQUIRES(mutex_);
  // Of the matrix, for the current shape.
  [[nodiscard]] rknn_tensor_attr AttrOf(std::string_view name) const
      RKNND_REQUIRES(mutex_);
  Outcome Choose(Context& context, const matmul::Shape& shape)
      RKNND_REQUIRES(mutex_);
  Outcome WriteScales() RKNND_REQUIRES(mutex_);

  const matmul::Spec spec_;
  const matmul::Blocks blocks_;
  base::Mutex mutex_;
  matmul::Shape shape_ RKNND_GUARDED_BY(mutex_);
  std::array<Matrix, 3> matrices_ RKNND_GUARDED_BY(mutex_) = {
      {{"A"}, {"B"}, {"C"}}};
  // Null: the product is not scaled.
  std::unique_ptr<Buffer> scales_ RKNND_GUARDED_BY(mutex_);
  bool scales_changed_ RKNND_GUARDED_BY(mutex_) = true;
  // What GetQuantParams gave last, where the program has no room.
  std::vector<float> given_scales_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_MATMUL_MATMUL_H_
