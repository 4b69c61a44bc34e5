// What a peer can do beyond protocol version 1: one bit each, told in Hello
// and answered in Welcome with those both ends know. A bit once given keeps
// its meaning; a feature that goes leaves its bit unused.

#ifndef PROTO_WIRE_FEATURES_H_
#define PROTO_WIRE_FEATURES_H_

#include <cstdint>

namespace rknnd::wire {

// The client reads kLogEvent frames that it did not ask for.
inline constexpr uint64_t kFeatureLogEvents = uint64_t{1} << 0;

// The daemon wants to be told of rknn_mem_sync (kSyncBuffer), where the kernel
// has no call for that memory.
inline constexpr uint64_t kFeatureMemorySync = uint64_t{1} << 1;

// Each end may wait awake for a moment (RingHeader::asleep, polled).
inline constexpr uint64_t kFeatureSpin = uint64_t{1} << 2;

// Cancel, deadlines, sets of bindings, fences, queues and admission.
inline constexpr uint64_t kFeatureScheduling = uint64_t{1} << 3;

// PERF_KERNELS: what computes each layer of a model.
inline constexpr uint64_t kFeatureKernels = uint64_t{1} << 4;

// The ring says which jobs were on a core (Completion::begun).
inline constexpr uint64_t kFeatureBegun = uint64_t{1} << 5;

// Bits of AllocateBuffer.flags beyond the vendor's rknn_mem_alloc_flags.
inline constexpr uint32_t kBufferDma32 = 0x100;
inline constexpr uint32_t kBufferContiguous = 0x200;

// All that this build knows.
inline constexpr uint64_t kKnownFeatures =
    kFeatureLogEvents | kFeatureMemorySync | kFeatureSpin | kFeatureScheduling |
    kFeatureKernels | kFeatureBegun;

}  // namespace rknnd::wire

#endif  // PROTO_WIRE_FEATURES_H_
