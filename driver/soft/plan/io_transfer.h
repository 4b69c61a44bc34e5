// InputOperator and OutputOperator: the first and last layers of a program, and
// the only code of the software NPU that touches client memory. They convert
// between the client's element type and layout and the tensor inside.
//
// That memory is hostile: its contents may change while it is read, and pages
// may go away; the caller guards the access. Nothing read from it is used as a
// size or an index.
//
// Thread: worker. Allocates nothing and owns nothing: it may be abandoned at
// any instruction.

#ifndef DRIVER_SOFT_PLAN_IO_TRANSFER_H_
#define DRIVER_SOFT_PLAN_IO_TRANSFER_H_

#include <cstddef>

#include "driver/soft/kernels/operator.h"
#include "driver/soft/plan/io_port.h"

namespace rknnd::soft {

// Scratch that the functions below need for tensors of this layout.
size_t TransferScratch(const Shape& shape);

// `inside` is dense, or blocked where it is 4-D and float32 or 8-bit. Parts of
// one transfer may run at once, each with scratch of its own.
void ReadInput(const ClientLayout& layout, const std::byte* client,
               const TensorSpec& inside, std::byte* tensor, std::byte* scratch,
               const PortConversion& conversion = {}, Part part = {});
void WriteOutput(const ClientLayout& layout, std::byte* client,
                 const TensorSpec& inside, const std::byte* tensor,
                 std::byte* scratch, const PortConversion& conversion = {},
                 Part part = {});

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_IO_TRANSFER_H_
