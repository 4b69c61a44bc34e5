// Each program of this folder as a reader would run it, with a daemon of its
// own: it ends well, having compared its own answers.

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"

namespace rknnd::examples {
namespace {

constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

constexpr char kDetector[] =
    RKNND_SOURCE_ROOT "/examples/detector/detector.onnx";
// The same for smaller pictures, with and without weights.
constexpr char kSmall[] = RKNND_EXAMPLE_MODELS "/detector_small.onnx";
constexpr char kFollower[] = RKNND_EXAMPLE_MODELS "/detector_follower.onnx";

base::ChildProcess Start(
    std::vector<std::string> arguments,
    std::vector<std::pair<std::string, std::string>> environment = {}) {
  base::ChildProcess::Options options;
  options.arguments = std::move(arguments);
  options.environment = std::move(environment);
  options.dies_with_parent = true;
  auto child = base::ChildProcess::Start(options);
  EXPECT_TRUE(child.ok()) << child.error().message;
  return child.ok() ? *std::move(child) : base::ChildProcess();
}

// Whether the program ends with 0; what it said otherwise.
testing::AssertionResult RunsWell(const std::string& program,
                                  std::vector<std::string> models) {
  auto folder = base::TemporaryFolder::Make();
  if (!folder) return testing::AssertionFailure() << folder.error().message;
  const std::string socket = folder->path() + "/session.sock";
  base::ChildProcess daemon =
      Start({RKNND_BINARY_ROOT "/bin/rknnd", "--socket", socket, "--device",
             "soft", "--cache-dir", "", "--log-level", "1"});
  if (!base::WaitForServer(socket, daemon, kPatience)) {
    return testing::AssertionFailure() << "the daemon did not start";
  }
  models.insert(models.begin(),
                RKNND_BINARY_ROOT "/bin/examples/memory_" + program);
  base::ChildProcess example =
      Start(std::move(models), {{"RKNND_TARGET", "unix:" + socket}});
  const auto said = example.ReadAll(kPatience);
  const auto code = example.Wait(kPatience);
  // Instrumented, its exit code is the verdict on what it was made to do.
  daemon.Signal(SIGTERM);
  const auto daemons = daemon.Wait(kPatience);
  if (!daemons.ok() || *daemons != 0) {
    return testing::AssertionFailure() << "the daemon did not end well";
  }
  if (code.ok() && *code == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << program << " ended with " << (code.ok() ? *code : -1) << ": "
         << (said.ok() ? *said : said.error().message);
}

TEST(MemoryExamplesTest, ExternalInputAndOutput) {
  EXPECT_TRUE(RunsWell("external_io", {kDetector}));
}

TEST(MemoryExamplesTest, ExternalWeightsAndInternalMemory) {
  EXPECT_TRUE(RunsWell("external_model_memory", {kDetector}));
}

TEST(MemoryExamplesTest, TwoModelsOnOneInternalMemory) {
  EXPECT_TRUE(RunsWell("internal_reuse", {kDetector, kSmall}));
}

TEST(MemoryExamplesTest, TwoProcessesOnOneInternalMemory) {
  EXPECT_TRUE(RunsWell("internal_reuse_processes", {kDetector, kSmall}));
}

TEST(MemoryExamplesTest, DuplicatedContextsInThreads) {
  EXPECT_TRUE(RunsWell("dup_threads", {kDetector}));
}

TEST(MemoryExamplesTest, ModelTokenForAnotherProcess) {
  EXPECT_TRUE(RunsWell("model_token", {kDetector}));
}

TEST(MemoryExamplesTest, WeightsSharedByTwoSizes) {
  EXPECT_TRUE(RunsWell("shared_weights", {kDetector, kFollower, kSmall}));
}

TEST(MemoryExamplesTest, CameraFrame) {
  EXPECT_TRUE(RunsWell("camera_frame", {kDetector}));
}

TEST(MemoryExamplesTest, Sram) { EXPECT_TRUE(RunsWell("sram", {kDetector})); }

}  // namespace
}  // namespace rknnd::examples
