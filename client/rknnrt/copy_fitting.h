// Structs that say how long they are: a program may be built against an older,
// shorter header or a newer, longer one.

#ifndef CLIENT_RKNNRT_COPY_FITTING_H_
#define CLIENT_RKNNRT_COPY_FITTING_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace rknnd::client {

// Into a program's struct of `size` bytes; what we do not know of it is zeroed.
template <class Struct>
void CopyFitting(const Struct& known, void* to, uint32_t size) {
  std::memset(to, 0, size);
  std::memcpy(to, &known, std::min<size_t>(size, sizeof known));
}

// Out of a program's struct of `size` bytes; what it does not know is zero.
template <class Struct>
Struct ReadFitting(const void* from, uint32_t size) {
  Struct known = {};
  std::memcpy(&known, from, std::min<size_t>(size, sizeof known));
  return known;
}

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_COPY_FITTING_H_
