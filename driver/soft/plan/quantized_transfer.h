// The I/O of quantised ports: what clients give and take as 8-bit or real
// numbers, the tensor inside being 8-bit. As io_transfer.h says: hostile
// memory, no allocation, may be abandoned at any instruction.
//
// Thread: worker.

#ifndef DRIVER_SOFT_PLAN_QUANTIZED_TRANSFER_H_
#define DRIVER_SOFT_PLAN_QUANTIZED_TRANSFER_H_

#include <cstddef>

#include "driver/soft/kernels/operator.h"
#include "driver/soft/plan/io_port.h"

namespace rknnd::soft {

// INT8 is the tensor itself (128 less where that is unsigned); UINT8 is an
// image and goes through the port's table; floats are quantised.
void ReadQuantizedPort(const ClientLayout& layout, const std::byte* client,
                       const TensorSpec& spec, std::byte* tensor, float* pixels,
                       const PortConversion& conversion, Part part);

// INT8, or floats dequantised.
void WriteQuantizedPort(const ClientLayout& layout, std::byte* client,
                        const TensorSpec& spec, const std::byte* tensor,
                        float* pixels, const Quantization& quantization,
                        Part part);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_QUANTIZED_TRANSFER_H_
