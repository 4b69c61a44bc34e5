// Room for the code that oneDNN generates, so that a mapping it cannot have is
// not its end: Debian's oneDNN writes through null then, or past what it has.
//
// It asks for a mapping with each kernel, many for a layer, most while a layer
// is made and some in the first job that computes it. Nothing may be thrown
// through it (it is told that mmap throws nothing), and jumping out of it would
// leave its locks taken. So mmap is ours in programs that have this code, and
// what oneDNN cannot get from the kernel comes from room that is mapped before
// a layer is made: the layer ends well, and the next one is refused.
//
//   layer is made: KeepCodeRoom ----no----> RESOURCE_EXHAUSTED, the load ends
//                       | 32 MiB, untouched
//                       v
//   oneDNN: mmap --kernel--> its mapping
//                --ENOMEM--> a piece of the room; its own from then on
//           munmap --ENOMEM--> done later (base::Unmap)
//
// A shared library that keeps its symbols to itself (rknnd-local) has it
// without effect: there it is the program whose memory is short.

#ifndef DRIVER_SOFT_KERNELS_CODE_ROOM_H_
#define DRIVER_SOFT_KERNELS_CODE_ROOM_H_

#include "base/values/expected.h"

namespace rknnd::soft {

// Before oneDNN makes anything: the room is there, in full. Thread: any.
base::Expected<void> KeepCodeRoom();

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_CODE_ROOM_H_
