// A program that does nothing wrong, without a pause.

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "bench/hostile/attack.h"
#include "bench/hostile/frames.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"

namespace rknnd::bench {

void AttackByGreed(const Scene& scene) {
  setenv("RKNND_TARGET", scene.target().c_str(), /*overwrite=*/1);
  Frames frames;
  frames.Prepare(0);
  for (bool said = false;; said = true) {
    const int code = frames.Run();
    if (code != RKNN_SUCC) {
      throw std::runtime_error("rknn_run: " + std::to_string(code) + " " +
                               rknnd_last_error());
    }
    if (!said) Announce("1 context");
  }
}

}  // namespace rknnd::bench
