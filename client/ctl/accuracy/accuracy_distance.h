// How far two tensors are apart: the cosine of the angle between them and their
// Euclidean distance, both in double precision. Of arrays that came out of
// files, which are not trusted. Any thread; no state.

#ifndef CLIENT_CTL_ACCURACY_ACCURACY_DISTANCE_H_
#define CLIENT_CTL_ACCURACY_ACCURACY_DISTANCE_H_

#include <optional>

#include "client/image/npy.h"

namespace rknnd::client {

struct Distance {
  // 1 where both are all zeros, 0 where one is, NaN where one holds NaN or
  // infinities.
  double cos = 1;
  double euc = 0;
};

// Element by element, whatever their types; nothing where the shapes differ.
std::optional<Distance> DistanceOf(const Array& a, const Array& b);

// Whether it holds an infinity or NaN.
bool HasInf(const Array& array);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_ACCURACY_ACCURACY_DISTANCE_H_
