// Memory of the C API: made, bound, synchronised, told by its key, and given
// for a model's weights and internal memory.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/posix/memfd.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/rknnrt/api/api_fixture.h"

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;

TEST_F(ApiTest, CreatedMemoryIsWhatProgramsExpect) {
  rknn_tensor_mem* const mem = rknn_create_mem(context_, 100);
  ASSERT_NE(mem, nullptr) << rknnd_last_error();
  EXPECT_EQ(mem->size, 100U);
  EXPECT_EQ(mem->offset, 0);
  EXPECT_GT(mem->fd, 0);
  std::memset(mem->virt_addr, 0x5a, mem->size);
  char seen = 0;
  EXPECT_EQ(pread(mem->fd, &seen, 1, 99), 1);
  EXPECT_EQ(seen, 0x5a);
  EXPECT_EQ(rknn_destroy_mem(context_, mem), RKNN_SUCC);
}

TEST_F(ApiTest, MemoryIsDestroyedOnceByAnyContext) {
  rknn_tensor_mem* const mem = rknn_create_mem(context_, 100);
  ASSERT_NE(mem, nullptr);
  EXPECT_EQ(rknn_destroy_mem(0, mem), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(0, mem), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_destroy_mem(context_, nullptr), RKNN_ERR_PARAM_INVALID);
}

TEST_F(ApiTest, MemoryNeedsNoContextWhenItsFlagSaysSo) {
  EXPECT_EQ(rknn_create_mem2(0, 64, 0), nullptr);
  rknn_tensor_mem* const mem =
      rknn_create_mem2(0, 64, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT);
  ASSERT_NE(mem, nullptr) << rknnd_last_error();
  EXPECT_EQ(rknn_mem_sync(0, mem, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(0, mem), RKNN_SUCC);
}

TEST_F(ApiTest, MemoryIsSynchronisedInThreeDirectionsWithOrWithoutContext) {
  rknn_tensor_mem* const mem = rknn_create_mem(context_, 100);
  ASSERT_NE(mem, nullptr);
  for (const rknn_context context : {context_, rknn_context{0}}) {
    for (const auto mode :
         {RKNN_MEMORY_SYNC_TO_DEVICE, RKNN_MEMORY_SYNC_FROM_DEVICE,
          RKNN_MEMORY_SYNC_BIDIRECTIONAL}) {
      EXPECT_EQ(rknn_mem_sync(context, mem, mode), RKNN_SUCC);
    }
  }
  EXPECT_EQ(rknn_destroy_mem(context_, mem), RKNN_SUCC);
}

// With any number, as C programs can; here it is undefined, and the sanitizer
// says so.
[[gnu::no_sanitize_undefined]] int SyncInMode(rknn_context context,
                                              rknn_tensor_mem* mem, int mode) {
  rknn_mem_sync_mode raw = RKNN_MEMORY_SYNC_TO_DEVICE;
  static_assert(sizeof raw == sizeof mode);
  std::memcpy(&raw, &mode, sizeof raw);
  return rknn_mem_sync(context, mem, raw);
}

TEST_F(ApiTest, WrongSyncsAreRefusedWithTheReason) {
  rknn_tensor_mem* const mem = rknn_create_mem(context_, 100);
  ASSERT_NE(mem, nullptr);
  for (const int mode : {0, 4, 7, -1}) {
    EXPECT_EQ(SyncInMode(context_, mem, mode), RKNN_ERR_PARAM_INVALID);
    EXPECT_NE(std::string(rknnd_last_error()).find("mode"), std::string::npos);
  }
  EXPECT_EQ(rknn_mem_sync(context_, nullptr, RKNN_MEMORY_SYNC_TO_DEVICE),
            RKNN_ERR_PARAM_INVALID);
  // Of nobody's making, though it looks like one.
  rknn_tensor_mem foreign = *mem;
  EXPECT_EQ(rknn_mem_sync(0, &foreign, RKNN_MEMORY_SYNC_TO_DEVICE),
            RKNN_ERR_PARAM_INVALID);
  const rknn_context dead = Init();
  ASSERT_EQ(rknn_destroy(dead), RKNN_SUCC);
  EXPECT_EQ(rknn_mem_sync(dead, mem, RKNN_MEMORY_SYNC_TO_DEVICE),
            RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(rknn_destroy_mem(context_, mem), RKNN_SUCC);
  EXPECT_EQ(rknn_mem_sync(0, mem, RKNN_MEMORY_SYNC_FROM_DEVICE),
            RKNN_ERR_PARAM_INVALID);
  EXPECT_NE(std::string(rknnd_last_error()).find("destroyed"),
            std::string::npos)
      << rknnd_last_error();
}

TEST_F(ApiTest, MemoryIsMadeWithEachFlagOfTheHeader) {
  for (const uint64_t flag :
       {RKNN_FLAG_MEMORY_FLAGS_DEFAULT, RKNN_FLAG_MEMORY_CACHEABLE,
        RKNN_FLAG_MEMORY_NON_CACHEABLE, RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM}) {
    rknn_tensor_mem* const memory = rknn_create_mem2(context_, 64, flag);
    ASSERT_NE(memory, nullptr) << flag << rknnd_last_error();
    EXPECT_EQ(rknn_destroy_mem(context_, memory), RKNN_SUCC);
  }
}

TEST_F(ApiTest, FlagsThatAreNoMemorysAreRefusedByNumber) {
  for (const int bit : {3, 16, 32, 58, 63}) {
    EXPECT_EQ(rknn_create_mem2(context_, 64, uint64_t{1} << bit), nullptr);
    EXPECT_NE(std::string(rknnd_last_error())
                  .find("bit " + std::to_string(bit) + ","),
              std::string::npos)
        << rknnd_last_error();
  }
  for (const uint64_t flags : {uint64_t{RKNN_FLAG_MEMORY_CACHEABLE},
                               uint64_t{RKNN_FLAG_MEMORY_NON_CACHEABLE},
                               uint64_t{RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM},
                               uint64_t{RKNN_MEM_FLAG_ALLOC_NO_CONTEXT},
                               RKNND_MEMORY_DMA32, RKNND_MEMORY_CONTIGUOUS}) {
    rknn_tensor_mem* const mem = rknn_create_mem2(context_, 64, flags);
    ASSERT_NE(mem, nullptr) << flags << ": " << rknnd_last_error();
    EXPECT_EQ(rknn_destroy_mem(context_, mem), RKNN_SUCC);
  }
}

TEST_F(ApiTest, ImpossibleMemoriesAreRefused) {
  EXPECT_EQ(rknn_create_mem(context_, 0), nullptr);
  EXPECT_EQ(rknn_create_mem2(context_, uint64_t{1} << 32, 0), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(context_, -1, nullptr, 64, 0), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(context_, 9999, nullptr, 64, 0), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(context_, 0, nullptr, 64, -4), nullptr);
  EXPECT_EQ(rknn_create_mem_from_phys(context_, 4096, nullptr, 64), nullptr);
  EXPECT_EQ(rknn_create_mem_from_mb_blk(context_, nullptr, 0), nullptr);
  int block = 0;
  EXPECT_EQ(rknn_create_mem_from_mb_blk(context_, &block, 0), nullptr);
  EXPECT_THAT(rknnd_last_error(),
              HasSubstr("this process has no media process platform"));
  EXPECT_THAT(rknnd_last_error(), HasSubstr("rknn_create_mem_from_fd"));
}

TEST_F(ApiTest, ZeroCopyRunReadsAndWritesTheProgramsMemory) {
  rknn_tensor_attr in_attr = Query(RKNN_QUERY_INPUT_ATTR);
  rknn_tensor_attr out_attr = Query(RKNN_QUERY_OUTPUT_ATTR);
  in_attr.type = RKNN_TENSOR_UINT8;
  out_attr.type = RKNN_TENSOR_FLOAT32;
  // The input lies behind an offset in memory the program brought.
  auto memfd = base::MakeMemfd("test", 8192);
  ASSERT_TRUE(memfd.ok());
  rknn_tensor_mem* const in =
      rknn_create_mem_from_fd(context_, memfd->get(), nullptr, 64, 4096);
  rknn_tensor_mem* const out = rknn_create_mem(context_, 64);
  ASSERT_TRUE(in != nullptr && out != nullptr) << rknnd_last_error();
  EXPECT_EQ(in->offset, 4096);
  std::memcpy(static_cast<char*>(in->virt_addr) + in->offset, bytes_,
              sizeof bytes_);
  ASSERT_EQ(rknn_set_io_mem(context_, in, &in_attr), RKNN_SUCC);
  ASSERT_EQ(rknn_set_io_mem(context_, out, &out_attr), RKNN_SUCC);
  ASSERT_EQ(rknn_mem_sync(context_, in, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC) << rknnd_last_error();
  EXPECT_EQ(static_cast<float*>(out->virt_addr)[11], 255.0F);
  rknnd_copy_counters copies;
  ASSERT_EQ(rknnd_query_copies(context_, &copies, sizeof copies), RKNN_SUCC);
  EXPECT_EQ(copies.to_device_inputs_set, 0U);
  EXPECT_EQ(copies.from_device_outputs_get, 0U);
  rknn_output output = {};
  EXPECT_EQ(rknn_outputs_get(context_, 1, &output, nullptr),
            RKNN_ERR_OUTPUT_INVALID);
  EXPECT_EQ(rknn_destroy_mem(context_, in), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(context_, out), RKNN_SUCC);
}

TEST_F(ApiTest, KeyOfAMemorySaysWhereItLiesInWhatTheKeyNames) {
  auto memfd = base::MakeMemfd("test", 8192);
  ASSERT_TRUE(memfd.ok());
  rknn_tensor_mem* const part =
      rknn_create_mem_from_fd(context_, memfd->get(), nullptr, 64, 4096);
  ASSERT_NE(part, nullptr) << rknnd_last_error();
  rknnd_buffer_key key;
  ASSERT_EQ(rknnd_query_buffer_key(context_, part, &key, sizeof key), RKNN_SUCC)
      << rknnd_last_error();
  const std::string text = key.text;
  EXPECT_EQ(text.size(), 32U);
  EXPECT_EQ(text.substr(0, 2), "a5");
  EXPECT_EQ(text.substr(30), "0f");
  EXPECT_EQ(key.offset, 4096U);
  EXPECT_EQ(key.size, 64U);
  // A program that knows less of the struct gets less.
  std::memset(&key, 0xff, sizeof key);
  ASSERT_EQ(rknnd_query_buffer_key(context_, part, &key, sizeof key.text),
            RKNN_SUCC);
  EXPECT_EQ(key.text, text);
  EXPECT_EQ(key.offset, UINT64_MAX);
  EXPECT_EQ(rknn_destroy_mem(context_, part), RKNN_SUCC);
}

TEST_F(ApiTest, KeyOfWhatIsNoMemoryIsRefused) {
  rknnd_buffer_key key;
  rknn_tensor_mem fake = {};
  rknn_tensor_mem* const memory = rknn_create_mem(context_, 64);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(rknnd_query_buffer_key(context_, &fake, &key, sizeof key),
            RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknnd_query_buffer_key(context_, nullptr, &key, sizeof key),
            RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknnd_query_buffer_key(context_, memory, nullptr, sizeof key),
            RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknnd_query_buffer_key(0, memory, &key, sizeof key),
            RKNN_ERR_CTX_INVALID);
  ASSERT_EQ(rknn_destroy_mem(context_, memory), RKNN_SUCC);
  EXPECT_EQ(rknnd_query_buffer_key(context_, memory, &key, sizeof key),
            RKNN_ERR_PARAM_INVALID);
}

TEST_F(ApiTest, BoundInputAndFetchedOutputMayBeMixed) {
  rknn_tensor_attr attr = Query(RKNN_QUERY_INPUT_ATTR);
  attr.type = RKNN_TENSOR_UINT8;
  rknn_tensor_mem* const in = rknn_create_mem(context_, 64);
  ASSERT_NE(in, nullptr);
  ASSERT_EQ(rknn_set_io_mem(context_, in, &attr), RKNN_SUCC);
  std::memcpy(in->virt_addr, bytes_, sizeof bytes_);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
  rknn_output output = {};
  output.want_float = 1;
  ASSERT_EQ(rknn_outputs_get(context_, 1, &output, nullptr), RKNN_SUCC);
  EXPECT_EQ(static_cast<float*>(output.buf)[11], 255.0F);
  rknn_outputs_release(context_, 1, &output);
  rknn_destroy_mem(context_, in);
}

TEST_F(ApiTest, CopiesAreCountedByDirection) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
  rknn_output output = {};
  output.want_float = 1;
  ASSERT_EQ(rknn_outputs_get(context_, 1, &output, nullptr), RKNN_SUCC);
  rknn_outputs_release(context_, 1, &output);
  rknnd_copy_counters copies;
  ASSERT_EQ(rknnd_query_copies(context_, &copies, sizeof copies), RKNN_SUCC);
  EXPECT_EQ(copies.to_device_inputs_set, kFakeElements);
  EXPECT_EQ(copies.from_device_outputs_get, kFakeElements * sizeof(float));
}

TEST_F(ApiTest, SetIoMemRefusesWhatIsNotAlive) {
  rknn_tensor_attr attr = Query(RKNN_QUERY_INPUT_ATTR);
  rknn_tensor_mem fake = {};
  EXPECT_EQ(rknn_set_io_mem(context_, &fake, &attr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_io_mem(context_, nullptr, &attr), RKNN_ERR_PARAM_INVALID);
}

TEST_F(ApiTest, InternalAndWeightMemoryAreRangesOfTheProgramsMemory) {
  rknn_tensor_mem* whole = rknn_create_mem(context_, 8192);
  ASSERT_NE(whole, nullptr);
  rknn_tensor_mem* part = rknn_create_mem_from_fd(context_, whole->fd,
                                                  whole->virt_addr, 1000, 4096);
  ASSERT_NE(part, nullptr);
  ASSERT_EQ(rknn_set_internal_mem(context_, part), RKNN_SUCC);
  ASSERT_EQ(rknn_set_weight_mem(context_, whole), RKNN_SUCC);
  const auto seen = Daemon().seen();
  const auto& internal = seen.internal.at(static_cast<uint32_t>(context_));
  EXPECT_EQ(internal.offset, 4096U);
  EXPECT_EQ(internal.size, 1000U);
  EXPECT_EQ(seen.last_weights.offset, 0U);
  EXPECT_EQ(seen.last_weights.size, 8192U);
  rknn_tensor_mem told;
  ASSERT_EQ(
      rknn_query(context_, RKNN_QUERY_DEVICE_MEM_INFO, &told, sizeof told),
      RKNN_SUCC);
  EXPECT_EQ(told.fd, whole->fd);
  rknn_tensor_mem fake = {};
  EXPECT_EQ(rknn_set_internal_mem(context_, &fake), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_internal_mem(context_, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_weight_mem(context_, &fake), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_weight_mem(context_, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_destroy_mem(context_, part), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(context_, whole), RKNN_SUCC);
}

TEST_F(ApiTest, WeightMemoryThatWasDestroyedIsToldOfNoMore) {
  rknn_tensor_mem* weights = rknn_create_mem(context_, 8192);
  ASSERT_NE(weights, nullptr);
  ASSERT_EQ(rknn_set_weight_mem(context_, weights), RKNN_SUCC);
  ASSERT_EQ(rknn_destroy_mem(context_, weights), RKNN_SUCC);
  rknn_tensor_mem told;
  ASSERT_EQ(
      rknn_query(context_, RKNN_QUERY_DEVICE_MEM_INFO, &told, sizeof told),
      RKNN_SUCC);
  EXPECT_EQ(told.fd, -1);
  EXPECT_EQ(told.virt_addr, nullptr);
}

}  // namespace
}  // namespace rknnd::client
