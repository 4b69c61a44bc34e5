// A whole compiled model, written by hand, for tests that need one to run and
// have no published file: the program that a compiler would make of
//
//   x (1x3x4x5, int8 pixels) -> Relu                -> y   (1x3x4x5)
//                            -> + `added` -> Reshape -> sum (1x60)
//
// Both are convolutions of 1x1 on pixels of three channels; the Reshape is left
// to the CPU. One step of every tensor is 1, so that answers are whole numbers
// from -128 to 127.

#ifndef DRIVER_RKNPU_TESTING_SMALL_NETWORK_H_
#define DRIVER_RKNPU_TESTING_SMALL_NETWORK_H_

#include <cstdint>
#include <string>

#include "driver/rknpu/file/testing/program_builder.h"

namespace rknnd::rknpu::testing {

// `slices`: of rknn_batch_size; 1: none.
ProgramSpec SmallNetwork(int8_t added = 1, uint32_t slices = 1);

}  // namespace rknnd::rknpu::testing

#endif  // DRIVER_RKNPU_TESTING_SMALL_NETWORK_H_
