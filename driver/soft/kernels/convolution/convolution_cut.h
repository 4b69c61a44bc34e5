// Where a convolution is cut, so that the cores of a gang share it out: between
// images, between rows, between output channels, or between pixels, wherever
// the pieces of input and output are runs of memory, or look so. A piece is a
// smaller convolution that reads the whole one's packed weights. One that takes
// long is cut as well for a single core, which looks between the pieces whether
// its job is still wanted (stop.h). Long is what oneDNN's kernels for blocks of
// channels take long for: one that multiplies whole matrices, as it does where
// weights come with each run, may be in one piece for some tenths of a second.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_CONVOLUTION_CONVOLUTION_CUT_H_
#define DRIVER_SOFT_KERNELS_CONVOLUTION_CONVOLUTION_CUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// What cutting has to know of a convolution.
struct ConvolutionForm {
  TensorSpec input, output;
  Shape kernel, strides, dilations, pads_begin, pads_end;
  int64_t groups = 1;
  // Between which output channels its packed weights can be cut; 0: nowhere.
  int64_t channel_unit = 0;
};

struct ConvolutionPiece {
  TensorSpec input, output;
  Shape strides, pads_begin, pads_end;
  int64_t groups = 1;
  Range channels;                      // of the output
  size_t input_at = 0, output_at = 0;  // bytes, from the whole tensor's first
};

// Piece `part` of the convolution; nullopt: it cannot be cut into so many.
std::optional<ConvolutionPiece> CutConvolution(const ConvolutionForm& form,
                                               Part part);

// A convolution and, for each size of a gang from two up, its pieces; or the
// pieces of one that takes long, which any number of cores share out.
class ConvolutionInPieces final : public Kernel {
 public:
  // Adds the pieces that `make` makes to `whole`, as far as they can be made:
  // it gives null for a piece that would not compute as the whole does. Their
  // added tensor is input `add_index`, which lies as the output does.
  // UNIMPLEMENTED, and `whole` is left alone: it takes long and cannot be cut.
  // `cores`: of the largest gang for which pieces give the whole's very bits.
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(
      std::unique_ptr<Kernel>& whole, const ConvolutionForm& form,
      uint32_t cores, size_t add_index,
      absl::FunctionRef<
          absl::StatusOr<std::unique_ptr<Kernel>>(const ConvolutionPiece&)>
          make);

  [[nodiscard]] size_t scratch_size() const override;
  [[nodiscard]] bool reads_constant(size_t i) const override {
    return whole_->reads_constant(i);
  }
  [[nodiscard]] std::string implementation() const override {
    return whole_->implementation();
  }
  [[nodiscard]] bool is_reference() const override {
    return whole_->is_reference();
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override;
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* scratch) const override;

 private:
  struct Piece {
    std::unique_ptr<Kernel> kernel;
    size_t input_at = 0, output_at = 0;
  };

  // Makes one of them; null: it would not compute as the whole does.
  using MakePiece = absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>(
      const ConvolutionPiece&)>;

  ConvolutionInPieces(std::unique_ptr<Kernel> whole, size_t add_index)
      : whole_(std::move(whole)), add_index_(add_index) {}

  // `count` pieces; none: it cannot be cut so.
  static absl::StatusOr<std::vector<Piece>> Cut(const ConvolutionForm& form,
                                                uint32_t count, MakePiece make);

  const std::unique_ptr<Kernel> whole_;
  const size_t add_index_;
  std::vector<Piece> brief_;  // for any cores; none: it does not take long
  std::vector<std::vector<Piece>> of_gangs_;  // of two cores, of three, ...
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_CONVOLUTION_CONVOLUTION_CUT_H_
