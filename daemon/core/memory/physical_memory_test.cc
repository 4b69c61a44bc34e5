// Physical memory through a session, on a file of tmpfs that stands for a
// device.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "daemon/core/testing/core_fixture.h"
#include "driver/memory/physical.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using driver::Direction;
using ::testing::HasSubstr;
using testing::TestSession;

constexpr uint64_t kBegin = 0x10000000;
constexpr uint64_t kSize = 0x10000;

class PhysicalMemoryTest : public testing::CoreTest {
 protected:
  PhysicalMemoryTest() {
    EXPECT_EQ(ftruncate(device_file_.get(), kBegin + kSize), 0);
    physical_ = *driver::PhysicalMemory::Open(
        {{1000, kBegin, kSize,
          "/proc/self/fd/" + std::to_string(device_file_.get())}});
    options.physical = &physical_;
    StartService();
    session_ = Open();
  }
  ~PhysicalMemoryTest() override {
    session_ = {};
    StopService();
  }

  absl::StatusOr<BufferInfo> Import(const TestSession& session, uint32_t number,
                                    uint64_t address, uint64_t size) {
    absl::StatusOr<BufferInfo> answer = absl::UnknownError("never answered");
    session->ImportPhysical(number, {address, size},
                            [&](auto info) { answer = std::move(info); });
    RunLoops();
    return answer;
  }

  base::UniqueFd device_file_{memfd_create("device", MFD_CLOEXEC)};
  driver::PhysicalMemory physical_;
  TestSession session_;
};

TEST_F(PhysicalMemoryTest, AllowedRangeIsMemoryAtItsAddress) {
  const auto info = Import(session_, 1, kBegin + 4096, 8192);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_FALSE(info->fd.valid());
  EXPECT_EQ(info->size, 8192U);
  EXPECT_EQ(info->heap, "physical");
  EXPECT_EQ(service->Buffers()[0].heap, "physical");
  EXPECT_TRUE(service->Buffers()[0].imported);

  constexpr char kModel[] = "bytes=4";
  Upload(session_, kModel);
  Create(session_, 1, kModel);
  ASSERT_TRUE(session_->Bind(BindTo(1, Direction::kInput, 0, 1, 4)).ok());
  BindRequest output = BindTo(1, Direction::kOutput, 0, 1, 4);
  output.offset = 4096;
  ASSERT_TRUE(session_->Bind(output).ok());
  ASSERT_EQ(pwrite(device_file_.get(), "abcd", 4, kBegin + 4096), 4);
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(session_.sink->last().status.ok())
      << session_.sink->last().status;
  std::string answer(4, ' ');
  ASSERT_EQ(pread(device_file_.get(), answer.data(), 4, kBegin + 8192), 4);
  EXPECT_EQ(answer, "bcde");
}

TEST_F(PhysicalMemoryTest, RangeThatIsNotAllowedIsRefusedAndCostsNothing) {
  const auto info = Import(session_, 1, kBegin + kSize - 4096, 8192);
  EXPECT_EQ(info.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(info.status().message()),
              HasSubstr("[[physical_memory]]"));
  EXPECT_EQ(memory().io, 0U);
  EXPECT_TRUE(service->Buffers().empty());
  EXPECT_EQ(Import(session_, 1, UINT64_MAX, 2).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(PhysicalMemoryTest, RangesThatOverlapAreTheSameMemory) {
  ASSERT_TRUE(Import(session_, 1, kBegin, 8192).ok());
  ASSERT_TRUE(Import(session_, 2, kBegin + 4096, 8192).ok());
  constexpr char kModel[] = "bytes=4096";
  Upload(session_, kModel);
  Create(session_, 1, kModel);
  BindRequest input = BindTo(1, Direction::kInput, 0, 1, 4096);
  input.offset = 4096;
  ASSERT_TRUE(session_->Bind(input).ok());
  ASSERT_TRUE(session_->Bind(BindTo(1, Direction::kOutput, 0, 2, 4096)).ok());
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  EXPECT_THAT(std::string(session_.sink->last().status.message()),
              HasSubstr("are in the same memory"));
  // The first page is apart.
  ASSERT_TRUE(session_->Bind(BindTo(1, Direction::kInput, 0, 1, 4096)).ok());
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  RunReady();
  EXPECT_TRUE(session_.sink->last().status.ok());
}

TEST_F(PhysicalMemoryTest, NoConfigurationMeansNone) {
  StopService();
  options.physical = nullptr;
  StartService();
  const TestSession session = Open();
  EXPECT_EQ(Import(session, 1, kBegin, 4096).status().code(),
            absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace rknnd::core
