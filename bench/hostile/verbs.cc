// Contexts that cannot run, and all that may be asked of them.

#include <algorithm>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>

#include "base/values/sha256.h"
#include "bench/common/one_operator.h"
#include "bench/hostile/attack.h"
#include "bench/hostile/raw_peer.h"
#include "client/include/rknn_api.h"

namespace rknnd::bench {
namespace {

constexpr int kSessions = 4;
constexpr uint32_t kFirst = 1, kOther = 2;

void AskWithoutEnd(const Scene& scene) {
  RawPeer peer(scene.socket);
  const std::string model = OneOperatorModel();
  if (!peer.SayHello() || !peer.Load("relu.onnx", model, kFirst)) {
    throw std::runtime_error("no session for the verbs");
  }
  const base::Sha256Digest hash =
      base::Sha256Of(std::as_bytes(std::span(model.data(), model.size())));
  for (uint32_t cores = 1;; cores = cores % 7 + 1) {
    wire::CreateContext create{};
    create.context = kOther;
    create.flags = RKNN_FLAG_COLLECT_MODEL_INFO_ONLY;
    std::copy(hash.begin(), hash.end(), std::begin(create.model));
    (void)peer.Ask(wire::Verb::kCreateContext, create);
    (void)peer.Ask(wire::Verb::kSetCoreMask, wire::SetCoreMask{kOther, cores});
    wire::Submission run{};
    run.context = kOther;
    peer.Run(run);
    (void)peer.Ask(wire::Verb::kDestroyContext, wire::DestroyContext{kOther});
  }
}

}  // namespace

void AttackByVerbs(const Scene& scene) {
  InThreads(kSessions, [&scene](int) { AskWithoutEnd(scene); });
  Announce("4 sessions");
  WaitForDeath();
}

}  // namespace rknnd::bench
