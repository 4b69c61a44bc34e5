// Each program of this folder as a reader would run it, with a daemon of its
// own: it ends well, having compared its own answers.

#include <gtest/gtest.h>

#include "examples/example_run.h"

namespace rknnd::examples {
namespace {

constexpr char kDetector[] =
    RKNND_SOURCE_ROOT "/examples/detector/detector.onnx";
// The same for smaller pictures, with and without weights.
constexpr char kSmall[] = RKNND_EXAMPLE_MODELS "/detector_small.onnx";
constexpr char kFollower[] = RKNND_EXAMPLE_MODELS "/detector_follower.onnx";

TEST(MemoryExamplesTest, ExternalInputAndOutput) {
  EXPECT_TRUE(RunsWell("memory_external_io", {kDetector}));
}

TEST(MemoryExamplesTest, ExternalWeightsAndInternalMemory) {
  EXPECT_TRUE(RunsWell("memory_external_model_memory", {kDetector}));
}

TEST(MemoryExamplesTest, TwoModelsOnOneInternalMemory) {
  EXPECT_TRUE(RunsWell("memory_internal_reuse", {kDetector, kSmall}));
}

TEST(MemoryExamplesTest, TwoProcessesOnOneInternalMemory) {
  EXPECT_TRUE(RunsWell("memory_internal_reuse_processes", {kDetector, kSmall}));
}

TEST(MemoryExamplesTest, DuplicatedContextsInThreads) {
  EXPECT_TRUE(RunsWell("memory_dup_threads", {kDetector}));
}

TEST(MemoryExamplesTest, ModelTokenForAnotherProcess) {
  EXPECT_TRUE(RunsWell("memory_model_token", {kDetector}));
}

TEST(MemoryExamplesTest, WeightsSharedByTwoSizes) {
  EXPECT_TRUE(
      RunsWell("memory_shared_weights", {kDetector, kFollower, kSmall}));
}

TEST(MemoryExamplesTest, CameraFrame) {
  EXPECT_TRUE(RunsWell("memory_camera_frame", {kDetector}));
}

TEST(MemoryExamplesTest, Sram) {
  EXPECT_TRUE(RunsWell("memory_sram", {kDetector}));
}

}  // namespace
}  // namespace rknnd::examples
