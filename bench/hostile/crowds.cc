// Threads that wait for what never comes, each thousands of times, so that all
// that is sent there is sent past all of them.

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "base/posix/socket.h"
#include "bench/common/one_operator.h"
#include "bench/hostile/attack.h"
#include "bench/hostile/raw_peer.h"

namespace rknnd::bench {
namespace {

constexpr int kThreads = 32;
constexpr rlim_t kEach = 20'000;
constexpr uint32_t kContext = 1, kInput = 1, kOutput = 2, kFence = 1;

void CrowdAround(int fd) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const auto each = static_cast<size_t>(std::min(kEach, files.rlim_cur));
  InThreads(kThreads, [fd, each](int) {
    std::vector<pollfd> waits(each, {fd, 0, 0});
    while (poll(waits.data(), waits.size(), -1) <= 0) {
    }
    WaitForDeath();
  });
}

void ReadAll(int fd) {
  std::array<char, 4096> bytes{};
  while (read(fd, bytes.data(), bytes.size()) > 0) {
  }
}

}  // namespace

void AttackBySocketCrowd(const Scene& scene) {
  RawPeer peer(scene.socket);
  if (!peer.SayHello()) throw std::runtime_error("no session for the crowd");
  CrowdAround(peer.socket());
  for (bool told = false;; told = true) {
    if (!peer.Ask(wire::Verb::kReport, wire::ReportRequest{})) {
      throw std::runtime_error("the crowd's session has ended");
    }
    if (!told) Announce("32 threads");
  }
}

void AttackByFenceCrowd(const Scene& scene) {
  RawPeer peer(scene.socket);
  if (!peer.SayHello() ||
      !peer.Load("relu.onnx", OneOperatorModel(), kContext) ||
      !peer.BindNew(kContext, peer.info().native_inputs.at(0), false, kInput) ||
      !peer.BindNew(kContext, peer.info().native_outputs.at(0), true,
                    kOutput)) {
    throw std::runtime_error("no session for the crowd");
  }
  auto pair = base::BytePair();
  if (!pair) throw std::runtime_error(pair.error().message);
  wire::RegisterFence fence{};
  fence.fence = kFence;
  fence.out = true;
  if (auto known =
          peer.Ask(wire::Verb::kRegisterFence, fence, pair->second.get());
      !known) {
    throw std::runtime_error(known.error().message);
  }
  const int far = pair->first.get();
  CrowdAround(far);
  for (bool said = false;; said = true) {
    wire::Submission run{};
    run.context = kContext;
    run.fence_out = kFence;
    peer.Run(run);
    ReadAll(far);
    if (!said) Announce("32 threads");
  }
}

void AttackTheKernel(const Scene& /*scene*/) {
  auto pair = base::BytePair();
  if (!pair) throw std::runtime_error(pair.error().message);
  CrowdAround(pair->first.get());
  Announce("32 threads");
  for (const char byte = 0;;) {
    if (write(pair->second.get(), &byte, 1) != 1) break;
    ReadAll(pair->first.get());
  }
  WaitForDeath();
}

}  // namespace rknnd::bench
