// Which cores a session's contexts may have: those of its share, one after the
// other where the client leaves the choice.

#ifndef DAEMON_CORE_SESSIONS_CORE_RIGHTS_H_
#define DAEMON_CORE_SESSIONS_CORE_RIGHTS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "daemon/core/accounts/share.h"
#include "daemon/core/accounts/tenant.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

// Thread: loop.
class CoreRights {
 public:
  // `device` outlives it.
  CoreRights(const driver::DeviceInfo& device, std::shared_ptr<Tenant> tenant,
             std::shared_ptr<const Share> share)
      : device_(device), tenant_(std::move(tenant)), share_(std::move(share)) {}

  // As bits.
  [[nodiscard]] uint32_t cores() const;
  // PERMISSION_DENIED, when the cores of `core_mask` are not all among them.
  [[nodiscard]] absl::Status Check(const CoreChoice& cores,
                                   uint32_t core_mask) const;
  // The mask to use in place of `core_mask`, which is one: that of a core of
  // these, where any was left to us and these are not all.
  [[nodiscard]] uint32_t TakeMask(uint32_t core_mask) const;

 private:
  const driver::DeviceInfo& device_;
  const std::shared_ptr<Tenant> tenant_;
  const std::shared_ptr<const Share> share_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_CORE_RIGHTS_H_
