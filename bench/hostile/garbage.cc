// Noise, by each way in that a client has.

#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "bench/hostile/attack.h"
#include "bench/hostile/raw_peer.h"

namespace rknnd::bench {
namespace {

// More than a message may bring, as many as the kernel lets one have.
constexpr size_t kSurplus = 253;

RawPeer Welcomed(const Scene& scene) {
  RawPeer peer(scene.socket);
  if (!peer.SayHello()) throw std::runtime_error("no session for the noise");
  return peer;
}

// Entries that could be some, in a ring whose words are all overwritten.
void SpoilEntries(RawPeer& peer, std::minstd_rand& random,
                  const std::vector<std::byte>& noise) {
  wire::Ring& ring = peer.ring();
  std::memcpy(static_cast<void*>(&ring.submissions), noise.data(),
              sizeof ring.submissions);
  for (wire::Submission& entry : ring.submissions) {
    entry.slot = static_cast<uint32_t>(random() % wire::kRingEntries);
    if (random() % 2 == 0) entry.operation = 1 + random() % 2;
  }
  const uint32_t tail = ring.header.tail.load();
  ring.header.head.store(tail);
  ring.header.tail.store(tail + 1 +
                         static_cast<uint32_t>(random() % wire::kRingEntries));
  peer.Ring();
}

// Until the daemon has taken them: more than a ring has are the end of it.
bool Taken(RawPeer& peer) {
  pollfd end = {peer.socket(), 0, 0};
  while (peer.ring().header.head.load() != peer.ring().header.tail.load()) {
    if (poll(&end, 1, 0) > 0) return false;
  }
  return true;
}

void SpoilRings(const Scene& scene) {
  constexpr int kRounds = 1000;
  std::minstd_rand random(1);
  const std::vector<std::byte> noise = Noise(1, sizeof(wire::Ring));
  for (;;) {
    RawPeer peer(scene.socket);
    if (!peer.SayHello()) continue;
    for (int round = 0; round < kRounds; ++round) {
      SpoilEntries(peer, random, noise);
      if (!Taken(peer)) break;
    }
    // Far more than there are.
    peer.ring().header.tail.store(static_cast<uint32_t>(random()));
    peer.Ring();
  }
}

}  // namespace

void AttackByRingNoise(const Scene& scene) {
  InThreads(1, [&scene](int) {
    RawPeer peer = Welcomed(scene);
    const uint64_t one = 1;
    while (write(peer.doorbell(), &one, sizeof one) == sizeof one) {
    }
    WaitForDeath();
  });
  InThreads(1, [&scene](int) { SpoilRings(scene); });
  Announce("a doorbell and a ring");
  WaitForDeath();
}

void AttackByDatagrams(const Scene& scene) {
  constexpr int kThreads = 2;
  InThreads(kThreads, [&scene](int thread) {
    auto memfd = base::MakeMemfd("surplus", 4096);
    if (!memfd) throw std::runtime_error(memfd.error().message);
    const std::vector<int> fds(kSurplus, memfd->get());
    const auto noise = Noise(static_cast<uint64_t>(thread), 4096);
    wire::FrameHeader header{};
    header.verb = static_cast<uint16_t>(wire::Verb::kReport);
    const auto frame = std::as_bytes(std::span(&header, 1));
    for (uint64_t round = 0;; ++round) {
      RawPeer peer(scene.socket);
      if (round % 2 == 0 && !peer.SayHello()) continue;
      // Descriptors that nobody asked for, then too many, then nonsense.
      peer.SendBytes(frame, std::span(fds).first(8));
      peer.SendBytes(frame, fds);
      peer.SendBytes(noise, fds);
    }
  });
  Announce("2 threads");
  WaitForDeath();
}

void AttackBySilence(const Scene& scene) {
  constexpr size_t kHeld = 500;
  std::vector<RawPeer> silent;
  for (uint64_t round = 0;; ++round) {
    if (silent.size() < kHeld) {
      silent.emplace_back(scene.socket);
    } else {
      silent.at(round % kHeld) = RawPeer(scene.socket);
    }
    if (round == kHeld) Announce("500 connections at once");
  }
}

}  // namespace rknnd::bench
