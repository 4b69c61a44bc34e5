// What many of the core's tests say: times, sizes, flags of contexts, clients.
// One header, as tests of this folder are compiled together.

#ifndef DAEMON_CORE_TESTING_WORDS_H_
#define DAEMON_CORE_TESTING_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

inline constexpr base::Nanoseconds kMs = base::kMillisecond;
inline constexpr uint64_t kPage = 4096;

// Of rknn_api.h, as numbers.
inline constexpr uint32_t kInfoOnly = 0x100;
inline constexpr uint32_t kInternalOutside = 0x200;
inline constexpr uint32_t kEnableSram = 0x800;
inline constexpr uint32_t kShareSram = 0x1000;

// Cores 0 and 1.
inline constexpr uint32_t kGang01 = 3;

inline std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline SessionPeer Peer(uint32_t uid, std::vector<uint32_t> groups = {}) {
  SessionPeer peer;
  peer.pid = 10;
  peer.uid = uid;
  peer.groups = std::move(groups);
  peer.comm = "cam";
  return peer;
}

}  // namespace rknnd::core

#endif  // DAEMON_CORE_TESTING_WORDS_H_
