// A walk over the bytes of an ONNX file before protobuf sees them. Protobuf
// makes an object of some hundred bytes out of a submessage of two: what a file
// may make us allocate is counted here first. Trusts nothing; allocates
// nothing.

#ifndef DRIVER_SOFT_IMPORT_WIRE_SCAN_H_
#define DRIVER_SOFT_IMPORT_WIRE_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace rknnd::soft {

// Submessages and strings of one model. The largest networks of this field
// have some ten thousand; a million cost protobuf a few hundred MiB.
inline constexpr uint32_t kMaxWireElements = 1U << 20;
// Graphs within graphs, and whatever else nests.
inline constexpr int kMaxWireDepth = 32;

struct WireScan {
  enum Verdict { kWhole, kTruncated, kTooMany, kTooDeep, kMalformed };
  Verdict verdict = kWhole;
  uint32_t elements = 0;
  // kTruncated: bytes the file would need for its last top-level field.
  uint64_t needed = 0;
};

WireScan ScanModel(std::span<const std::byte> bytes);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_WIRE_SCAN_H_
