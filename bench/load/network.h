// A detector of 15 MB, as ONNX: the proportions of a small YOLOv5 (stem, four
// stages of split and joined bottlenecks, pooling pyramid, two ways of joining
// scales, three heads), with weights that mean nothing.

#ifndef BENCH_LOAD_NETWORK_H_
#define BENCH_LOAD_NETWORK_H_

#include <cstdint>
#include <string>

namespace rknnd::bench {

// For pictures of so many pixels a side, a multiple of 32. Equal every time.
std::string DetectorOf15Megabytes(int64_t image);

}  // namespace rknnd::bench

#endif  // BENCH_LOAD_NETWORK_H_
