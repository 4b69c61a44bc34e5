// A program with one context, librknnrt.so itself under it, and a daemon that
// lives in the test and answers at once.

#ifndef CLIENT_RKNNRT_API_API_FIXTURE_H_
#define CLIENT_RKNNRT_API_API_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/session/fake_daemon.h"

namespace rknnd::client {

// One process, one session: the daemon lives as long as the tests.
inline FakeDaemon& Daemon() {
  static FakeDaemon& daemon = *new FakeDaemon(
      testing::TempDir() + "api_test." + std::to_string(getpid()) + ".sock");
  return daemon;
}

class ApiTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before the library is used
    setenv("RKNND_TARGET", ("unix:" + Daemon().path()).c_str(), 1);
  }
  static void TearDownTestSuite() { Daemon().Stop(); }

  void SetUp() override { context_ = Init(); }
  void TearDown() override {
    Daemon().set_runs(FakeDaemon::Runs::kAnswer);
    if (context_ != 0) rknn_destroy(context_);
  }

  static rknn_context Init(uint32_t flags = 0) {
    rknn_context context = 0;
    char model[] = "network";
    EXPECT_EQ(rknn_init(&context, model, sizeof model, flags, nullptr),
              RKNN_SUCC)
        << rknnd_last_error();
    return context;
  }

  int SetInput(const void* data, uint32_t size, rknn_tensor_type type) {
    rknn_input input = {};
    input.buf = const_cast<void*>(data);
    input.size = size;
    input.type = type;
    input.fmt = RKNN_TENSOR_NHWC;
    return rknn_inputs_set(context_, 1, &input);
  }

  int SetBytes() { return SetInput(bytes_, sizeof bytes_, RKNN_TENSOR_UINT8); }

  rknn_tensor_attr Query(rknn_query_cmd command) {
    rknn_tensor_attr attr = {};
    EXPECT_EQ(rknn_query(context_, command, &attr, sizeof attr), RKNN_SUCC)
        << rknnd_last_error();
    return attr;
  }

  rknn_context context_ = 0;
  const uint8_t bytes_[kFakeElements] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255};
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_API_API_FIXTURE_H_
