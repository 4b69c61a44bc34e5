// The weights of a convolution as the loops of kernels.h read them. Kept from
// task to task as long as the bytes in memory are the same: the tasks of a node
// differ in the lines that they compute.

#ifndef DRIVER_RKNPU_EMULATOR_FAST_CONV_WEIGHTS_H_
#define DRIVER_RKNPU_EMULATOR_FAST_CONV_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/kernels/kernels.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu::fast {

class ConvWeights {
 public:
  // False: not for the fast engine.
  bool Pack(const ConvSpec& spec, const Kernels& kernels, const Access& access);
  // Of kernels block * kernels.block on.
  [[nodiscard]] const std::byte* Block(size_t block) const {
    return packed_.data() + block * block_bytes_;
  }

 private:
  void PackRuns(const ConvSpec& spec, const Kernels& kernels);

  std::vector<std::byte> stored_, packed_;
  uint32_t kernels_ = 0, channels_ = 0, taps_ = 0;
  const Kernels* loops_ = nullptr;
  size_t block_bytes_ = 0;
};

// Of a depthwise convolution: for each surface taps times 16, plus what `ow`
// adds to each channel's. False: not for the fast engine.
bool ReadDepthwiseWeights(const ConvSpec& spec, const Access& access,
                          std::vector<int32_t>& weights);

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_FAST_CONV_WEIGHTS_H_
