// The SoCs the software NPU stands in for: what programs can tell apart.
// Source: the vendor's guides and the kernel driver's tables.

#ifndef DRIVER_SOFT_SOC_H_
#define DRIVER_SOFT_SOC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rknnd::soft {

struct SocProfile {
  const char* name;
  uint32_t cores;
  uint32_t half_block;  // C2 of NC1HWC2 for float16
};

// Case does not matter. NOT_FOUND listing the known ones.
absl::StatusOr<SocProfile> FindSoc(const std::string& name);

// That a model made for `target` ("" is any) runs on this SoC: it, or one with
// the same NPU. FAILED_PRECONDITION in the words users look for.
absl::Status CheckTarget(const std::string& target, const SocProfile& soc,
                         const std::string& model);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_SOC_H_
