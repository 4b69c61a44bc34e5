// The arithmetic of shares: how many an NPU has, what they are called at the
// kubelet, and what some of them may hold at rknnd. No I/O. Used by the plugin
// on its loop; ids come from the kubelet and are checked here.
//
// The weight of all shares together is 1000, so that a share's weight is its
// part of the NPU in thousandths. A program without a share weighs 100
// (limits.user.weight).

#ifndef K8S_SHARES_H_
#define K8S_SHARES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/wire/codec.h"

namespace rknnd::k8s {

// Each allocated one may cost rknnd a listening socket, of which a connection
// may have 256.
inline constexpr uint32_t kMostShares = 256;

// What rknnd has to give.
struct Capacity {
  uint32_t cores = 0;
  uint64_t memory = 0;  // bytes for all sessions together; 0: not known
};

// Where nobody says how many: four a core. A detector such as yolov5n takes 12
// ms of an RK3588's core, so that a share is one camera at 20 frames a second.
uint32_t DefaultShares(uint32_t cores);

// "npu-share-007": by name in their order.
std::string ShareId(uint32_t share);
// Ascending; each below `count` and named once. INVALID_ARGUMENT else.
absl::StatusOr<std::vector<uint32_t>> ParseShareIds(
    const std::vector<std::string>& ids, uint32_t count);

// What `shares` of `count` come to: a share socket of this name.
wire::ShareSocket ShareSocketFor(const std::string& name, uint32_t shares,
                                 uint32_t count, const Capacity& capacity);

// "rknnd.io/npu-share": a domain, a slash and a name, as the kubelet wants it.
absl::Status CheckResourceName(const std::string& name);

}  // namespace rknnd::k8s

#endif  // K8S_SHARES_H_
