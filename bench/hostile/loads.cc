// Models that take the loader long, and are new each time.

#include <atomic>
#include <cstdint>
#include <random>
#include <stdexcept>

#include "bench/hostile/attack.h"
#include "bench/hostile/models.h"
#include "bench/hostile/raw_peer.h"

namespace rknnd::bench {

void AttackByLoads(const Scene& scene) {
  constexpr int kSessions = 5;
  // Another attacker's must not be in the daemon already.
  const uint64_t first = std::random_device()();
  InThreads(kSessions, [&scene, first](int session) {
    RawPeer peer(scene.socket);
    if (!peer.SayHello()) throw std::runtime_error("no session for the loads");
    for (uint64_t i = 0;; ++i) {
      const uint64_t number =
          (first << 32) + i * kSessions + static_cast<uint64_t>(session);
      const auto loaded = peer.Load("slow.onnx", SlowToLoadModel(number), 1);
      if (!loaded) throw std::runtime_error(loaded.error().message);
      (void)peer.Ask(wire::Verb::kDestroyContext, wire::DestroyContext{1});
    }
  });
  Announce("5 sessions");
  WaitForDeath();
}

}  // namespace rknnd::bench
