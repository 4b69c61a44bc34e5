// What else a process does beside the C API: threads, fork, and going on when
// the daemon starts anew.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/rknnrt/api/api_fixture.h"

namespace rknnd::client {
namespace {

TEST_F(ApiTest, ContextsOfManyThreadsDoNotMeet) {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        const rknn_context context = Init();
        rknn_input input = {};
        input.buf = const_cast<uint8_t*>(bytes_);
        input.size = sizeof bytes_;
        input.type = RKNN_TENSOR_UINT8;
        input.fmt = RKNN_TENSOR_NHWC;
        rknn_output output = {};
        output.want_float = 1;
        if (rknn_inputs_set(context, 1, &input) == 0 &&
            rknn_run(context, nullptr) == 0 &&
            rknn_outputs_get(context, 1, &output, nullptr) == 0 &&
            static_cast<float*>(output.buf)[11] == 255.0F) {
          ++good;
        }
        rknn_outputs_release(context, 1, &output);
        rknn_destroy(context);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 80);
}

TEST_F(ApiTest, OneContextUsedByTwoThreadsAtOnceDoesNoHarm) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  const rknn_context context = Init();
  // One error for each call after the destruction.
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        if (i == 2 && round == 25) rknn_destroy(context);
        rknn_input input = {};
        input.buf = const_cast<uint8_t*>(bytes_);
        input.size = sizeof bytes_;
        input.type = round % 2 == 0 ? RKNN_TENSOR_UINT8 : RKNN_TENSOR_INT8;
        rknn_inputs_set(context, 1, &input);
        rknn_run(context, nullptr);
        rknn_output output = {};
        rknn_outputs_get(context, 1, &output, nullptr);
        rknn_outputs_release(context, 1, &output);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
}

TEST_F(ApiTest, RestartOfTheDaemonIsNotSeenByTheProgram) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
  Daemon().Stop();
  Daemon().Start();
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC) << rknnd_last_error();
}

// What a child process found, as its exit status: 0 is all as it should be.
template <class Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST_F(ApiTest, ChildOfAForkIsToldThatTheContextIsNotItsOwn) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  EXPECT_EQ(InChild([&] {
              if (rknn_run(context_, nullptr) != RKNN_ERR_CTX_INVALID) return 1;
              return strstr(rknnd_last_error(), "made before fork()") != nullptr
                         ? 0
                         : 2;
            }),
            0);
  EXPECT_EQ(rknn_run(context_, nullptr), RKNN_SUCC) << rknnd_last_error();
}

TEST_F(ApiTest, ChildOfAForkMayStartAnew) {
  EXPECT_EQ(InChild([&] {
              rknn_context context = 0;
              char model[] = "network";
              if (rknn_init(&context, model, sizeof model, 0, nullptr) != 0) {
                return 1;
              }
              if (context == context_) return 2;
              rknn_input input = {};
              input.buf = const_cast<uint8_t*>(bytes_);
              input.size = sizeof bytes_;
              input.type = RKNN_TENSOR_UINT8;
              if (rknn_inputs_set(context, 1, &input) != 0) return 3;
              return rknn_run(context, nullptr) == 0 ? 0 : 4;
            }),
            0);
}

// KiB of memory that this process alone has written.
long PrivateDirty() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string word;
  long total = 0;
  while (rollup >> word) {
    if (word == "Private_Dirty:") {
      long size = 0;
      rollup >> size;
      total += size;
    }
  }
  return total;
}

TEST_F(ApiTest, FirstContextCostsAProcessLittlePrivateMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have memory of their own";
#endif
  // A child starts with nothing of the library open.
  EXPECT_EQ(InChild([&] {
              constexpr long kLimit = 1024;
              const long before = PrivateDirty();
              rknn_context context = 0;
              char model[] = "network";
              if (rknn_init(&context, model, sizeof model, 0, nullptr) != 0) {
                return 1;
              }
              rknn_input input = {};
              input.buf = const_cast<uint8_t*>(bytes_);
              input.size = sizeof bytes_;
              input.type = RKNN_TENSOR_UINT8;
              if (rknn_inputs_set(context, 1, &input) != 0) return 2;
              if (rknn_run(context, nullptr) != 0) return 3;
              if (before == 0) return 4;
              return PrivateDirty() - before <= kLimit ? 0 : 5;
            }),
            0);
}

TEST_F(ApiTest, MemoryOfTheParentIsRefusedInAChild) {
  rknn_tensor_mem* const mem = rknn_create_mem(context_, 64);
  ASSERT_NE(mem, nullptr);
  EXPECT_EQ(InChild([&] {
              if (rknn_destroy_mem(0, mem) >= 0) return 1;
              return strstr(rknnd_last_error(), "before fork()") != nullptr ? 0
                                                                            : 2;
            }),
            0);
  EXPECT_EQ(rknn_destroy_mem(0, mem), RKNN_SUCC);
}

}  // namespace
}  // namespace rknnd::client
