// Descriptors that last: each is a connection whose end waits for a peer that
// does not read.

#include "base/posix/testing/lingering.h"

#include <array>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "bench/hostile/attack.h"
#include "bench/hostile/raw_peer.h"

namespace rknnd::bench {

void AttackByLingering(const Scene& scene) {
  // More would be the kernel's buffers that are measured: each pair fills some
  // MiB of them.
  constexpr size_t kPairs = 200;
  std::vector<base::UniqueFd> far(kPairs);
  const auto noise = Noise(1, 24);
  for (size_t i = 0;; ++i) {
    base::testing::Lingering pair;
    if (!pair.near.valid() || !pair.far.valid()) {
      throw std::runtime_error("no connection that lingers");
    }
    RawPeer peer(scene.socket);
    if (i % 2 == 0) peer.SayHello();
    const std::array<int, 1> near = {pair.near.get()};
    peer.SendBytes(noise, near);
    // Ours may be the last one, and then it is we who wait.
    std::thread([near_fd = std::move(pair.near)]() mutable {
      near_fd.reset();
    }).detach();
    // The one that is let go ends with a reset, and the daemon's close with it.
    far.at(i % kPairs) = std::move(pair.far);
    if (i == kPairs) Announce("200 descriptors at once");
  }
}

}  // namespace rknnd::bench
