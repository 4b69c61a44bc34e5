// Structs of rknnd.h that programs fill and that begin with their size: a
// program's may be an older, shorter one or a newer, longer one. Used by the
// functions that take them, on the program's threads.

#ifndef CLIENT_RKNNRT_SIZED_STRUCT_H_
#define CLIENT_RKNNRT_SIZED_STRUCT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "client/rknnrt/context/context.h"
#include "client/rknnrt/copy_fitting.h"

namespace rknnd::client {

// No program means more by its size.
inline constexpr uint32_t kLargestStruct = 4096;

// Reads as much of `from` as its size says into `known`, whose other fields
// stay 0. What this library does not know must be 0: it would be ignored.
template <class Struct>
Outcome ReadStruct(const Struct& from, const char* name, Struct* known) {
  const auto wrong = [name](const std::string& what) -> Outcome {
    return Failure{{base::Code::kInvalidArgument, std::string(name) + what},
                   Subject::kNone};
  };
  const uint32_t size = from.size;
  if (size < 2 * sizeof size || size > kLargestStruct) {
    return wrong(": size is " + std::to_string(size) + ", not sizeof(" + name +
                 "): zero the struct, then set size");
  }
  *known = ReadFitting<Struct>(&from, size);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&from);
  const auto is_zero = [](unsigned char byte) { return byte == 0; };
  if (size > sizeof *known &&
      !std::all_of(bytes + sizeof *known, bytes + size, is_zero)) {
    return wrong(" is that of a newer rknnd.h and uses what this library (" +
                 std::to_string(sizeof *known) + " bytes of it) does not know");
  }
  if (!std::all_of(std::begin(known->reserved), std::end(known->reserved),
                   [](auto word) { return word == 0; })) {
    return wrong(": reserved is not 0: zero the struct first");
  }
  return {};
}

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_SIZED_STRUCT_H_
