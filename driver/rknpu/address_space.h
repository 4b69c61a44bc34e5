// The NPU's addresses: who has which. Ranges are handed out from the lowest
// free place that is large enough, in whole pages, so that a job that brings
// the same memory as the one before gets the same address for it. Thread: any.

#ifndef DRIVER_RKNPU_ADDRESS_SPACE_H_
#define DRIVER_RKNPU_ADDRESS_SPACE_H_

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "base/posix/mutex.h"

namespace rknnd::rknpu {

class AddressSpace {
 public:
  // RESOURCE_EXHAUSTED: there is no hole of that size.
  absl::StatusOr<uint64_t> Take(uint64_t bytes);
  // What Take() gave.
  void GiveBack(uint64_t address);

 private:
  base::Mutex mutex_;
  std::map<uint64_t, uint64_t> taken_ RKNND_GUARDED_BY(mutex_);  // to its end
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_ADDRESS_SPACE_H_
