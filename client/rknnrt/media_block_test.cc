// rknn_create_mem_from_mb_blk in a program that has a media process platform:
// this one, which exports a function of its name.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/posix/memfd.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/session/fake_daemon.h"

// A block is the address of its descriptor.
extern "C" __attribute__((visibility("default"))) int RK_MPI_MB_Handle2Fd(
    void* block) {
  return *static_cast<int*>(block);
}

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kSize = 8192;

FakeDaemon& Daemon() {
  static FakeDaemon& daemon =
      *new FakeDaemon(testing::TempDir() + "media_block_test." +
                      std::to_string(getpid()) + ".sock");
  return daemon;
}

class MediaBlockTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before the library is used
    setenv("RKNND_TARGET", ("unix:" + Daemon().path()).c_str(), 1);
  }
  static void TearDownTestSuite() { Daemon().Stop(); }

  void SetUp() override {
    char model[] = "network";
    ASSERT_EQ(rknn_init(&context_, model, sizeof model, 0, nullptr), RKNN_SUCC)
        << rknnd_last_error();
  }
  void TearDown() override { rknn_destroy(context_); }

  rknn_context context_ = 0;
  base::UniqueFd fd_ = *base::MakeMemfd("block", kSize);
  int block_ = fd_.get();
};

TEST_F(MediaBlockTest, BlockIsMemoryFromTheOffsetToItsEnd) {
  ASSERT_EQ(pwrite(fd_.get(), "block", 5, 4096), 5);
  rknn_tensor_mem* const memory =
      rknn_create_mem_from_mb_blk(context_, &block_, 4096);
  ASSERT_NE(memory, nullptr) << rknnd_last_error();
  EXPECT_EQ(memory->size, kSize - 4096);
  EXPECT_EQ(memory->offset, 4096);
  EXPECT_EQ(memory->fd, fd_.get());
  EXPECT_EQ(std::memcmp(static_cast<char*>(memory->virt_addr) + memory->offset,
                        "block", 5),
            0);
  EXPECT_EQ(rknn_destroy_mem(context_, memory), RKNN_SUCC);
  // The descriptor is the platform's.
  EXPECT_GE(fcntl(fd_.get(), F_GETFD), 0);
}

TEST_F(MediaBlockTest, OffsetOutsideTheBlockIsRefused) {
  for (const int offset : {-1, static_cast<int>(kSize)}) {
    EXPECT_EQ(rknn_create_mem_from_mb_blk(context_, &block_, offset), nullptr);
    EXPECT_THAT(rknnd_last_error(),
                HasSubstr("offset " + std::to_string(offset) +
                          " is not inside the block, which has 8192 bytes"));
  }
}

TEST_F(MediaBlockTest, WhatIsNoBlockIsRefused) {
  int nothing = -1;
  EXPECT_EQ(rknn_create_mem_from_mb_blk(context_, &nothing, 0), nullptr);
  EXPECT_THAT(rknnd_last_error(),
              HasSubstr("RK_MPI_MB_Handle2Fd gives fd -1 for mb_blk"));
  EXPECT_EQ(rknn_create_mem_from_mb_blk(context_, nullptr, 0), nullptr);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("mb_blk is NULL"));
}

}  // namespace
}  // namespace rknnd::client
