// Which tensors of internal memory would lie in SRAM: those whose traffic to
// DDR it saves most, in the room there is. The software NPU's bytes stay where
// they are; what programs and people ask of SRAM (sizes, who holds it, the
// forecast of saved traffic) is answered from this.
//
// Thread: any. Deterministic: equal inputs, equal plan.

#ifndef DRIVER_SOFT_PLAN_SRAM_PLAN_H_
#define DRIVER_SOFT_PLAN_SRAM_PLAN_H_

#include <cstdint>
#include <span>

#include "driver/device.h"

namespace rknnd::soft {

// `bytes`: what there is, in whole pages of driver::kSramPage. Tensors of one
// storage stay together. A tensor may reach over the end of SRAM, where DDR
// follows it in the NPU's addresses: its first bytes are saved then.
// Of so many programs each takes its share of the time.
driver::SramPlan PlanSram(std::span<const driver::TensorPlace> tensors,
                          uint64_t bytes, uint32_t programs = 1);

// The same, better: takes milliseconds where the above takes a tenth of one.
driver::SramPlan SearchSram(std::span<const driver::TensorPlace> tensors,
                            uint64_t bytes);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_SRAM_PLAN_H_
