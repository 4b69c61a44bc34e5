// Tests of models in a program's own memory: slices, short and wrong fds.

#include "client/rknnrt/model_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/posix/unique_fd.h"
#include "gtest/gtest.h"

namespace rknnd::client {
namespace {

class ModelBufferTest : public ::testing::Test {
 protected:
  ModelBufferTest() : fd_(memfd_create("model", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_.get(), 100), 0);
    EXPECT_EQ(pwrite(fd_.get(), "model", 5, 20), 5);
    extend_.model_buffer_fd = fd_.get();
    extend_.model_buffer_flags = 1;
  }
  static std::string Text(const ModelBuffer& buffer) {
    return {reinterpret_cast<const char*>(buffer.bytes().data()),
            buffer.bytes().size()};
  }
  // What Open says of `size` bytes at `model`.
  std::string Refusal(const void* model, uint32_t size) {
    const auto opened = ModelBuffer::Open(model, size, &extend_);
    return opened.ok() ? "" : opened.error().message;
  }
  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  base::UniqueFd fd_;
  rknn_init_extend extend_{};
};

TEST_F(ModelBufferTest, FdAloneIsMapped) {
  extend_.real_model_offset = 20;
  extend_.real_model_size = 5;
  const auto opened = ModelBuffer::Open(nullptr, 0, &extend_);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(Text(*opened), "model");
  EXPECT_EQ(opened->memory().fd, fd_.get());
  EXPECT_EQ(opened->memory().size, 100U);
  EXPECT_EQ(opened->memory().virt_addr, nullptr);
}

TEST_F(ModelBufferTest, PointerIsTakenAsItIs) {
  const std::string bytes = "the model's bytes";
  const auto opened = ModelBuffer::Open(
      bytes.data(), static_cast<uint32_t>(bytes.size()), nullptr);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(Text(*opened), bytes);
  EXPECT_EQ(opened->memory().virt_addr, bytes.data());
  EXPECT_EQ(opened->memory().fd, -1);
}

TEST_F(ModelBufferTest, ShrunkMemoryIsRefusedWithBothSizes) {
  ASSERT_EQ(ftruncate(fd_.get(), 50), 0);
  const std::string refusal = Refusal(nullptr, 100);
  EXPECT_TRUE(Has(refusal, "has 50 bytes")) << refusal;
  EXPECT_TRUE(Has(refusal, "said to have 100")) << refusal;
  // Nor is what lies behind the pointer touched.
  EXPECT_TRUE(Has(Refusal(this, 100), "has 50 bytes"));
}

TEST_F(ModelBufferTest, SliceOutsideIsRefusedWithItsNumbers) {
  extend_.real_model_offset = 96;
  extend_.real_model_size = 5;
  EXPECT_TRUE(Has(Refusal(nullptr, 100), "5 at real_model_offset 96"));
  extend_.real_model_offset = -1;
  EXPECT_TRUE(Has(Refusal(nullptr, 100), "real_model_offset -1"));
  extend_.real_model_offset = 1;
  extend_.real_model_size = UINT32_MAX;
  EXPECT_TRUE(Has(Refusal(nullptr, 100), "not inside"));
}

TEST_F(ModelBufferTest, WrongFdsAreRefused) {
  extend_.model_buffer_fd = 9999;
  EXPECT_TRUE(Has(Refusal(nullptr, 100), "9999 is not an open descriptor"));
  const base::UniqueFd folder(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  extend_.model_buffer_fd = folder.get();
  EXPECT_TRUE(Has(Refusal(nullptr, 100), "no memory"));
  extend_.model_buffer_fd = 0;
  EXPECT_TRUE(Has(Refusal(nullptr, 0), "model is NULL"));
  EXPECT_FALSE(ModelBuffer::Open(nullptr, 0, nullptr).ok());
}

}  // namespace
}  // namespace rknnd::client
