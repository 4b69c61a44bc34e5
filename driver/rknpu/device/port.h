// One input or output of a program: what programs are told of it, and its way
// between their memory and the NPU's, which is none where the NPU can work in
// memory of programs as it is. Element types, layouts, quantisation,
// means and deviations are converted as the software NPU does it
// (driver/soft/plan/io_port.h); this adds the NPU's own layout of the file.
//
// Memory of programs is hostile: its contents may change while it is read, and
// pages may go away. Thread: any; immutable.

#ifndef DRIVER_RKNPU_DEVICE_PORT_H_
#define DRIVER_RKNPU_DEVICE_PORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/device.h"
#include "driver/rknpu/device/native_tensor.h"
#include "driver/rknpu/file/program_file.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/plan/io_port.h"

namespace rknnd::rknpu {

class Port {
 public:
  // The i-th input or output of the file. Errors name it.
  static absl::StatusOr<Port> Make(const ProgramFile& file,
                                   driver::Direction direction, uint32_t i);

  [[nodiscard]] const driver::TensorAttr& attr() const { return attr_; }
  [[nodiscard]] const driver::TensorAttr& native() const {
    return native_attr_;
  }
  [[nodiscard]] const soft::IoPort& io() const { return *io_; }
  [[nodiscard]] uint32_t tensor() const { return tensor_; }

  // From now on tasks of the NPU may work in memory of programs, as they touch
  // `touched` bytes of the tensor and nothing else does.
  void AllowDirect(uint64_t touched);
  // What is bound, from its first slice on, if the NPU can work in it as it is;
  // empty: it has to be converted. `step` bytes lie between two slices.
  struct Direct {
    std::span<std::byte> bytes;
    uint64_t step = 0;
  };
  [[nodiscard]] Direct DirectOf(const driver::TensorBinding& binding) const;

  // All bytes that the port may touch of what is bound, directly or not; empty
  // of frames.
  [[nodiscard]] std::span<std::byte> RangeOf(
      const driver::TensorBinding& binding) const;

  // What Read and Write need of scratch.
  [[nodiscard]] size_t scratch_bytes() const;

  // Slice `slice` of what is bound, to the tensor at `native`. DATA_LOSS: the
  // program's memory went away meanwhile.
  absl::Status Read(const driver::TensorBinding& binding, uint32_t slice,
                    std::byte* native, std::byte* scratch) const;
  absl::Status Write(const std::byte* native,
                     const driver::TensorBinding& binding, uint32_t slice,
                     std::byte* scratch) const;
  // The same to and from the start of `scratch`: the tensor as dense numbers,
  // as the conversions have it (Unpack).
  absl::Status ReadDense(const driver::TensorBinding& binding, uint32_t slice,
                         std::byte* scratch) const;
  absl::Status WriteDense(const driver::TensorBinding& binding, uint32_t slice,
                          std::byte* scratch) const;
  // The tensor as dense numbers, as the conversions have it: int8, or float32.
  void Unpack(const std::byte* native, std::byte* dense,
              std::byte* scratch) const;

 private:
  // Of scratch: behind the dense numbers.
  std::byte* HalvesOf(std::byte* scratch) const;
  std::byte* RestOf(std::byte* scratch) const;
  void TakeNativeSizes(const Tensor& tensor, uint32_t batch);
  void Pack(const std::byte* dense, std::byte* native,
            std::byte* scratch) const;
  [[nodiscard]] soft::TensorSpec Dense() const;
  // The bound bytes of a slice, and how they are walked.
  absl::StatusOr<std::span<std::byte>> Bound(
      const driver::TensorBinding& binding, uint32_t slice,
      soft::ClientLayout& layout) const;

  driver::Direction direction_ = driver::Direction::kInput;
  uint32_t tensor_ = 0;
  NativeTensor native_;
  bool is_half_ = false;
  bool is_direct_ = false;
  uint64_t bytes_ = 0;  // of the tensor
  uint32_t slices_ = 1;
  std::optional<soft::IoPort> io_;
  driver::TensorAttr attr_, native_attr_;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_DEVICE_PORT_H_
