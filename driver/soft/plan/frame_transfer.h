// A camera's frame on its way into an image input: taken out of its planes,
// turned into red, green and blue, scaled to the input's size. What comes out
// is a picture of bytes, which then goes the way of every UINT8 input.
//
// What it computes, to the bit: each pixel becomes RGB by itself (one colour
// sample of NV12 serves its square of 2x2 pixels; BT.601, limited range), and
// that is scaled bilinearly with the centres of pixels at halves, weights in
// 1/2048, and nothing beyond the crop's border but its outermost pixels.
//
// The planes are a client's memory, hostile as io_transfer.h says. It is read
// row by row, guarded, into memory of our own.

#ifndef DRIVER_SOFT_PLAN_FRAME_TRANSFER_H_
#define DRIVER_SOFT_PLAN_FRAME_TRANSFER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "driver/frame.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/plan/io_port.h"

namespace rknnd::soft {

// What each plane must hold, or which number cannot be. An accepted frame
// allocates nothing.
absl::StatusOr<driver::FrameSizes> CheckFrame(const IoPort& port,
                                              const driver::FrameFormat& frame);

// Scratch that an input of this shape needs for frames, 0 where it takes none.
size_t FrameScratch(const Shape& shape);

// From the first byte of each plane; as many as CheckFrame asked for are there.
using FramePlanes = std::array<std::span<const std::byte>, driver::kMaxPlanes>;

// Makes the picture that `shape` takes, in `scratch`, where it stays: pixels
// side by side, rows without gaps. Nothing, and the number of a plane in
// `*gone`, when the memory of that went away. Thread: worker. Allocates
// nothing.
std::optional<std::span<const std::byte>> ConvertFrame(
    const driver::FrameFormat& frame, const FramePlanes& planes,
    const Shape& shape, std::byte* scratch, size_t* gone);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_FRAME_TRANSFER_H_
