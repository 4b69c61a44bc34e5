// Fences that are signalled by nobody but the test.

#ifndef DAEMON_CORE_TESTING_SILENT_FENCES_H_
#define DAEMON_CORE_TESTING_SILENT_FENCES_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core::testing {

class SilentFences final : public FenceWatcher {
 public:
  FenceState Look(const Fence& /*fence*/) override {
    return FenceState::kPending;
  }
  absl::Status Watch(uint64_t token,
                     const std::shared_ptr<Fence>& fence) override {
    watched[token] = fence;
    return absl::OkStatus();
  }
  void Unwatch(uint64_t token) override { watched.erase(token); }
  void Signal(const std::shared_ptr<Fence>& /*fence*/) override {}

  std::map<uint64_t, std::shared_ptr<Fence>> watched;
};

}  // namespace rknnd::core::testing

#endif  // DAEMON_CORE_TESTING_SILENT_FENCES_H_
