// Networks with a camera's input and little to compute behind it, so that what
// is measured is the way there.

#ifndef BENCH_REMOTE_NETWORKS_H_
#define BENCH_REMOTE_NETWORKS_H_

#include <cstddef>
#include <string>

namespace rknnd::bench {

// ONNX: input 'image' of 1x3x320x320 float32, 1.2 MB; its channels' means.
std::string FloatImageModel();
inline constexpr size_t kFloatImageBytes = size_t{3} * 320 * 320 * 4;

// ONNX: input 'image' as above, output 'same' of as many bytes.
std::string SameImageModel();

// ONNX: input 'image' of 1x3x640x640 uint8, 1.2 MB; its channels' means behind
// so many layers that cost the SoC 8 us each by its timing model.
std::string ByteImageModel(int layers);
inline constexpr size_t kByteImageBytes = size_t{3} * 640 * 640;

// ONNX: input 'image' as above; its channels' means as int32, which no datatype
// of the NPU stands for: what it writes is what the file says.
std::string IntegerImageModel();

// ONNX: one product with so many bytes of weights, which `seed` chooses: no two
// are one model.
std::string HeavyModel(size_t bytes, unsigned seed);

}  // namespace rknnd::bench

#endif  // BENCH_REMOTE_NETWORKS_H_
