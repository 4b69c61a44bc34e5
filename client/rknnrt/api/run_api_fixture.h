// A program with contexts, librknnrt.so itself under it, and a daemon that
// lives in the test and answers when it is told to. For the tests of runs.

#ifndef CLIENT_RKNNRT_API_RUN_API_FIXTURE_H_
#define CLIENT_RKNNRT_API_RUN_API_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/session/fake_daemon.h"

namespace rknnd::client {

using Runs = FakeDaemon::Runs;

// One process, one session: the daemon lives as long as the tests.
inline FakeDaemon& Daemon() {
  static FakeDaemon& daemon =
      *new FakeDaemon(testing::TempDir() + "run_api_test." +
                      std::to_string(getpid()) + ".sock");
  return daemon;
}

inline bool CanBeRead(int fd, int timeout_ms = 0) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1;
}
// For what must happen, on a machine that may be slow, busy and instrumented.
inline constexpr int kPatience = 60'000;

// It ends when all tests have.
class DaemonsEnd final : public testing::Environment {
 public:
  void TearDown() override { Daemon().Stop(); }
};
inline testing::Environment* const kDaemonsEnd =
    testing::AddGlobalTestEnvironment(new DaemonsEnd);

class RunApiFixture : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before the library is used
    setenv("RKNND_TARGET", ("unix:" + Daemon().path()).c_str(), 1);
  }

  void SetUp() override { Daemon().set_runs(Runs::kAnswer); }
  void TearDown() override {
    Daemon().set_runs(Runs::kAnswer);
    for (const rknn_context context : contexts_) rknn_destroy(context);
    if (queue_ != 0) rknnd_queue_destroy(queue_);
    Daemon().ClearReleases();
  }

  rknn_context Init(uint32_t flags = 0) {
    rknn_context context = 0;
    char model[] = "network";
    EXPECT_EQ(rknn_init(&context, model, sizeof model, flags, nullptr),
              RKNN_SUCC)
        << rknnd_last_error();
    contexts_.push_back(context);
    return context;
  }
  // Every element has that value.
  static int SetInput(rknn_context context, uint8_t value) {
    uint8_t bytes[kFakeElements];
    std::memset(bytes, value, sizeof bytes);
    rknn_input input = {};
    input.buf = bytes;
    input.size = sizeof bytes;
    input.type = RKNN_TENSOR_UINT8;
    input.fmt = RKNN_TENSOR_NHWC;
    return rknn_inputs_set(context, 1, &input);
  }
  // The value of the outputs, or -1.
  static float Output(rknn_context context, uint64_t* frame = nullptr) {
    rknn_output output = {};
    output.want_float = 1;
    rknn_output_extend extend = {};
    if (rknn_outputs_get(context, 1, &output, &extend) != RKNN_SUCC) return -1;
    const float value = static_cast<float*>(output.buf)[3];
    rknn_outputs_release(context, 1, &output);
    if (frame != nullptr) *frame = extend.frame_id;
    return value;
  }
  rknn_context Ready(uint32_t flags = 0) {
    const rknn_context context = Init(flags);
    EXPECT_EQ(SetInput(context, 1), RKNN_SUCC);
    return context;
  }
  // Waits until the daemon has seen so many runs since this was called with 0.
  void AwaitRuns(uint64_t count) {
    if (count == 0) base_ = Daemon().seen().runs;
    Daemon().AwaitRuns(base_ + count);
  }
  void Hold() {
    Daemon().set_runs(Runs::kHold);
    AwaitRuns(0);
  }
  rknnd_queue Queue() {
    if (queue_ == 0) {
      EXPECT_EQ(rknnd_queue_create(&queue_), RKNN_SUCC) << rknnd_last_error();
    }
    return queue_;
  }
  static rknnd_run_options Options() {
    rknnd_run_options options = {};
    options.size = sizeof options;
    return options;
  }
  rknnd_run_options Queued(void* user = nullptr) {
    rknnd_run_options options = Options();
    options.queue = Queue();
    options.user = user;
    return options;
  }
  // The next completion, waited for as an event loop does.
  testing::AssertionResult Next(rknnd_completion* completion) {
    for (;;) {
      const int code = rknnd_queue_next(queue_, completion, sizeof *completion);
      if (code == RKNN_SUCC) return testing::AssertionSuccess();
      if (code != RKNND_ERR_EMPTY) {
        return testing::AssertionFailure() << rknnd_last_error();
      }
      if (!CanBeRead(rknnd_queue_fd(queue_), kPatience)) {
        return testing::AssertionFailure() << "nothing came";
      }
    }
  }
  bool IsEmpty() {
    rknnd_completion completion;
    return rknnd_queue_next(queue_, &completion, sizeof completion) ==
           RKNND_ERR_EMPTY;
  }

  std::vector<rknn_context> contexts_;
  rknnd_queue queue_ = 0;
  uint64_t base_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_API_RUN_API_FIXTURE_H_
