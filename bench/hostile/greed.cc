// A program that does nothing wrong, without a pause.

#include <cstdlib>
#include <stdexcept>

#include "bench/hostile/attack.h"
#include "bench/hostile/frames.h"

namespace rknnd::bench {

void AttackByGreed(const Scene& scene) {
  setenv("RKNND_TARGET", scene.target().c_str(), /*overwrite=*/1);
  Frames frames;
  frames.Prepare(0);
  for (bool said = false;; said = true) {
    if (frames.Run() != RKNN_SUCC) throw std::runtime_error("a run failed");
    if (!said) Announce("1 context");
  }
}

}  // namespace rknnd::bench
