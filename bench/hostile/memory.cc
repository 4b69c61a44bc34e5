// Memory without contents, as much as may be had at once, and all that a user
// may hold of what is counted by pieces.

#include <sys/eventfd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "bench/hostile/attack.h"
#include "bench/hostile/raw_peer.h"

namespace rknnd::bench {
namespace {

constexpr uint64_t kLargest = uint64_t{4} << 30;

base::UniqueFd Memfd(uint64_t size) {
  auto memfd = base::MakeMemfd("hostile", size);
  if (!memfd) throw std::runtime_error(memfd.error().message);
  return *std::move(memfd);
}

bool Import(RawPeer& peer, uint32_t buffer, int fd) {
  wire::ImportBuffer import{};
  import.buffer = buffer;
  return peer.Ask(wire::Verb::kImportBuffer, import, fd).ok();
}

}  // namespace

void AttackByLargeMemory(const Scene& scene) {
  RawPeer peer(scene.socket);
  if (!peer.SayHello()) throw std::runtime_error("no session for the memory");
  bool told = false;
  for (uint64_t size = kLargest;;) {
    const bool taken = Import(peer, 1, Memfd(size).get());
    if (!taken && !told && size > 4096) {
      size /= 2;
      continue;
    }
    if (!told) Announce(std::to_string(size >> 20) + " MiB at once");
    told = true;
    if (taken)
      (void)peer.Ask(wire::Verb::kReleaseBuffer, wire::ReleaseBuffer{1});
  }
}

void AttackByHolding(const Scene& scene) {
  std::vector<RawPeer> peers;
  for (;;) {
    RawPeer peer(scene.socket);
    if (!peer.SayHello()) break;
    peers.push_back(std::move(peer));
  }
  if (peers.empty()) throw std::runtime_error("no session to hold");
  const base::UniqueFd memory = Memfd(4096);
  auto event = base::MakeEventFd();
  if (!event) throw std::runtime_error(event.error().message);
  uint32_t imports = 0, fences = 0;
  bool more = true;
  while (more) {
    more = false;
    const uint32_t before = imports + 1;
    for (RawPeer& peer : peers) {
      if (Import(peer, before, memory.get())) {
        ++imports;
        more = true;
      }
      wire::RegisterFence fence{};
      fence.fence = before;
      if (peer.Ask(wire::Verb::kRegisterFence, fence, event->get())) {
        ++fences;
        more = true;
      }
    }
  }
  Announce(std::to_string(peers.size()) + " sessions, " +
           std::to_string(imports) + " imports, " + std::to_string(fences) +
           " fences");
  WaitForDeath();
}

}  // namespace rknnd::bench
