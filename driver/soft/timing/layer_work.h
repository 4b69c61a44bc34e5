// A layer as the timing model sees it: counts, no contents. Made from a node of
// the graph when a model is loaded, or by hand (bench/timing).
//
// Thread: any. Dims come from model files; products saturate.

#ifndef DRIVER_SOFT_TIMING_LAYER_WORK_H_
#define DRIVER_SOFT_TIMING_LAYER_WORK_H_

#include <cstdint>
#include <span>

#include "driver/soft/graph/graph.h"
#include "driver/soft/soc.h"

namespace rknnd::soft {

enum class LayerKind : uint8_t {
  kHost,       // the CPU's: inputs and outputs as the application sees them
  kConv,       // also matrix products: one tap, a row is a pixel
  kDepthwise,  // each channel by itself
  kMover,      // bytes in, bytes out: Concat, Add, Split, Transpose, ...
  kResize,
  kPool,
};

struct LayerWork {
  LayerKind kind = LayerKind::kMover;
  // Ends in a function the NPU looks up in a table: Swish, Sigmoid, Tanh, ...
  bool lut = false;
  // The cores of a gang share it out.
  bool splits = false;
  uint32_t element_bytes = 1;
  uint64_t images = 1;
  uint64_t pixels = 0;   // of one image: where the kernel is put down
  uint64_t outputs = 0;  // pixels of one image of the output
  uint64_t groups = 1;
  uint64_t in_channels = 0, out_channels = 0;  // of one group
  uint64_t taps = 1;                           // kernel height x width
  // Bytes as they lie in memory, channels padded.
  uint64_t read = 0, written = 0, weights = 0;
};

struct ConvShape {
  uint64_t images = 1;
  uint64_t in_height = 0, in_width = 0, in_channels = 0;
  uint64_t out_height = 0, out_width = 0, out_channels = 0;
  uint64_t groups = 1, taps = 1;
  uint32_t element_bytes = 1;
  bool transposed = false;
  bool image_input = false;  // 1, 3 or 4 channels that lie side by side
};

// A convolution with its bytes. No fused activation yet.
LayerWork ConvWork(const ConvShape& shape, const SocProfile& soc);

// Channels as they lie in memory: whole blocks. Fewer than one block take two,
// as the published tables show of the last layers of detectors.
uint64_t PaddedChannels(uint64_t channels, uint32_t element_bytes,
                        const SocProfile& soc);

// Products that stay at the largest number instead of wrapping.
uint64_t Times(uint64_t a, uint64_t b);
uint64_t Plus(uint64_t a, uint64_t b);

// What the SoC would do for a layer: one node or several in a row that it does
// at once, shapes known. Never fails: what is strange is moved bytes.
LayerWork WorkOf(const Graph& graph, std::span<const Node* const> nodes,
                 const SocProfile& soc);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TIMING_LAYER_WORK_H_
