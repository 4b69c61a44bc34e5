// Matrices of floats turned: channels that lie together in a pixel to a row of
// pixels each, and back.
//
// Thread: any.

#ifndef DRIVER_SOFT_TILES_TURN_FLOATS_H_
#define DRIVER_SOFT_TILES_TURN_FLOATS_H_

#include <cstdint>

namespace rknnd::soft {

// to[column * to_step + row] = from[row * from_step + column]
void TurnFloats(const float* from, int64_t from_step, int64_t rows,
                int64_t columns, float* to, int64_t to_step);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_TURN_FLOATS_H_
