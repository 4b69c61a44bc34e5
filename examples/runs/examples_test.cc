// Each program of this folder as a reader would run it, with a daemon of its
// own: it ends well, having compared its own answers.

#include <gtest/gtest.h>

#include "examples/example_run.h"

namespace rknnd::examples {
namespace {

constexpr char kDetector[] =
    RKNND_SOURCE_ROOT "/examples/detector/detector.onnx";

TEST(RunsExamplesTest, TenCamerasOnOneThread) {
  EXPECT_TRUE(RunsWell("event_loop", {kDetector, "20"}));
}

TEST(RunsExamplesTest, NewestFrameWins) {
  EXPECT_TRUE(RunsWell("latest_frame", {kDetector, "60"}));
}

TEST(RunsExamplesTest, ChainOfFences) {
  EXPECT_TRUE(RunsWell("fence_chain", {kDetector}));
}

}  // namespace
}  // namespace rknnd::examples
