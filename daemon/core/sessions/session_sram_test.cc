// The SRAM over the lives of sessions' contexts and buffers.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/service.h"
#include "daemon/core/sessions/session.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using testing::TestSession;

constexpr uint32_t kShare = kEnableSram | kShareSram;
constexpr uint32_t kTrySram = 4;  // of rknn_mem_alloc_flags

class SessionSramTest : public testing::CoreTest {
 protected:
  void SetUp() override {
    total_ = service->Status().sram_free;
    ASSERT_GT(total_, 0U);
  }

  uint64_t Free() { return service->Status().sram_free; }
  // A context, and a model of that name that can use so much SRAM.
  absl::Status CreateUsing(const TestSession& session, uint32_t number,
                           uint64_t bytes, uint32_t flags,
                           uint32_t core_mask = 0) {
    const std::string model = "sram=" + std::to_string(bytes);
    Upload(session, model);
    return Create(session, number, model, flags, core_mask)
        .value_or(absl::UnknownError("never answered"));
  }

  uint64_t total_ = 0;
};

TEST_F(SessionSramTest, SharedSramWithoutSramIsRefused) {
  const TestSession session = Open();
  const absl::Status refused = CreateUsing(session, 1, 8192, kShareSram);

  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("RKNN_FLAG_ENABLE_SRAM"));
  EXPECT_EQ(Free(), total_);
}

TEST_F(SessionSramTest, ContextThatGetsAllIsToldSo) {
  const TestSession session = Open();
  ASSERT_EQ(CreateUsing(session, 1, 8192, kEnableSram), absl::OkStatus());

  EXPECT_THAT(session.log->lines,
              Contains("3 context 1 has 8 KiB of SRAM, of 8 KiB that its model "
                       "can use"));
}

TEST_F(SessionSramTest, ExhaustedSramIsNoErrorAndNamesItsHolder) {
  const TestSession first = Open(100);
  const TestSession second = Open(200);
  ASSERT_EQ(CreateUsing(first, 1, total_, kEnableSram), absl::OkStatus());

  ASSERT_EQ(CreateUsing(second, 1, 8192, kEnableSram), absl::OkStatus());

  ASSERT_THAT(second.log->lines, SizeIs(1));
  EXPECT_THAT(second.log->lines[0],
              HasSubstr("2 context 1 has 0 KiB of SRAM, of 8 KiB that its "
                        "model can use: of the rest 1024 KiB are held by "
                        "context 1 of session 1 (pid 100"));
  EXPECT_EQ(Free(), 0U);
}

TEST_F(SessionSramTest, ContextsThatShareTakeTurnsInTheWindowOfTheirCore) {
  const TestSession first = Open(100);
  const TestSession second = Open(200);
  ASSERT_EQ(CreateUsing(first, 1, 600 << 10, kShare), absl::OkStatus());
  ASSERT_EQ(CreateUsing(first, 2, 500 << 10, kShare), absl::OkStatus());
  ASSERT_EQ(CreateUsing(second, 1, 700 << 10, kShare), absl::OkStatus());
  ASSERT_TRUE(SetCoreMaskNow(first, 1, 1).ok());
  ASSERT_TRUE(SetCoreMaskNow(first, 2, 1).ok());
  ASSERT_TRUE(SetCoreMaskNow(second, 1, 1).ok());

  EXPECT_EQ(Free(), total_ - (700 << 10));
  const SramReport report = service->Sram();
  ASSERT_THAT(report.windows, SizeIs(1));
  EXPECT_EQ(report.windows[0].holder, "shared, core 0");
  EXPECT_EQ(report.windows[0].contexts, 3U);
  EXPECT_EQ(report.windows[0].core_mask, 1U);
  // The fake device's models save two bytes for each that they have.
  EXPECT_EQ(report.windows[0].saved, 2 * uint64_t{700 << 10});
}

TEST_F(SessionSramTest, ContextOfAnyCoreHasAWindowOnEach) {
  const TestSession session = Open();
  ASSERT_EQ(CreateUsing(session, 1, total_, kShare), absl::OkStatus());

  const auto windows = service->Sram().windows;
  ASSERT_THAT(windows, SizeIs(3));
  const uint64_t third = total_ / 3 / 4096 * 4096;
  for (const auto& window : windows) {
    EXPECT_EQ(window.size, third);
    EXPECT_EQ(window.saved, 2 * third);
  }
}

TEST_F(SessionSramTest, GangHasTheWindowOfItsLowestCore) {
  const TestSession session = Open();
  ASSERT_EQ(CreateUsing(session, 1, 8192, kShare, 7), absl::OkStatus());

  const auto windows = service->Sram().windows;
  ASSERT_THAT(windows, SizeIs(1));
  EXPECT_EQ(windows[0].core_mask, 1U);
}

TEST_F(SessionSramTest, DestroyedSharerMakesTheWindowSmaller) {
  const TestSession session = Open();
  ASSERT_EQ(CreateUsing(session, 1, 8192, kShare, 1), absl::OkStatus());
  ASSERT_EQ(CreateUsing(session, 2, 40960, kShare, 1), absl::OkStatus());
  EXPECT_EQ(Free(), total_ - 40960);

  ASSERT_TRUE(session->DestroyContext(2).ok());
  EXPECT_EQ(Free(), total_ - 8192);
  ASSERT_TRUE(session->DestroyContext(1).ok());
  EXPECT_EQ(Free(), total_);
}

TEST_F(SessionSramTest, ClosedSessionLeavesNothing) {
  const TestSession session = Open();
  ASSERT_EQ(CreateUsing(session, 1, 8192, kShare), absl::OkStatus());
  ASSERT_EQ(CreateUsing(session, 2, 8192, kEnableSram), absl::OkStatus());
  EXPECT_LT(Free(), total_);

  service->CloseSession(session->id());

  EXPECT_EQ(Free(), total_);
  EXPECT_THAT(service->Sram().windows, IsEmpty());
}

TEST_F(SessionSramTest, VendorSharingSharesNoSram) {
  StopService();
  options.vendor_sharing = true;
  StartService();
  const TestSession session = Open();
  ASSERT_EQ(CreateUsing(session, 1, 8192, kShare, 1), absl::OkStatus());
  ASSERT_EQ(CreateUsing(session, 2, 8192, kShare, 1), absl::OkStatus());

  EXPECT_EQ(Free(), total_ - 2 * 8192);
  EXPECT_THAT(service->Sram().windows, SizeIs(2));
}

TEST_F(SessionSramTest, ContextTakesNoMoreThanItsBound) {
  const TestSession session = Open();
  const std::string model = "sram=40960";
  Upload(session, model);
  ContextRequest request;
  request.number = 1;
  request.model = Id(model);
  request.flags = kEnableSram;
  request.sram_limit = 10 << 10;
  session->CreateContext(
      request, [](const absl::StatusOr<const driver::ModelInfo*>& made) {
        EXPECT_TRUE(made.ok());
      });
  RunLoops();

  EXPECT_EQ(Free(), total_ - 8192);
}

TEST_F(SessionSramTest, ContextForInfoTakesNone) {
  const TestSession session = Open();
  ASSERT_EQ(CreateUsing(session, 1, 8192, kEnableSram | 0x100),
            absl::OkStatus());
  EXPECT_EQ(Free(), total_);
}

TEST_F(SessionSramTest, ReportNamesWhoHasWhat) {
  const TestSession session = Open(42);
  ASSERT_EQ(CreateUsing(session, 3, 8192, kEnableSram), absl::OkStatus());

  const SramReport report = service->Sram();
  EXPECT_EQ(report.total, total_);
  ASSERT_THAT(report.windows, SizeIs(1));
  EXPECT_THAT(report.windows[0].holder,
              HasSubstr("context 3 of session 1 (pid 42"));
  EXPECT_EQ(report.windows[0].saved, 2 * 8192U);
}

TEST_F(SessionSramTest, BufferTakesWholePagesWhereAllOfItFits) {
  const TestSession session = Open();
  const auto made = AllocateNow(session, 1, 5000, kTrySram);
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(made->heap, EndsWith(", sram"));
  EXPECT_THAT(service->Buffers()[0].heap, EndsWith(", sram"));
  EXPECT_EQ(Free(), total_ - 8192);
  EXPECT_THAT(service->Sram().windows[0].holder,
              HasSubstr("buffer 1 of session 1"));

  ASSERT_TRUE(session->ReleaseBuffer(1).ok());
  EXPECT_EQ(Free(), total_);
}

TEST_F(SessionSramTest, BufferThatDoesNotFitIsDramAndTheLogSaysSo) {
  const TestSession session = Open();
  const auto made = AllocateNow(session, 1, total_ + 1, kTrySram);
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(made->heap, Not(HasSubstr("sram")));
  EXPECT_EQ(Free(), total_);
  EXPECT_THAT(session.log->lines,
              Contains(HasSubstr("bytes of SRAM are not free in one piece")));
}

TEST_F(SessionSramTest, BufferOfAClosedSessionGivesItsPagesBack) {
  const TestSession session = Open();
  ASSERT_TRUE(AllocateNow(session, 1, 5000, kTrySram).ok());
  // Large: made by the pager.
  ASSERT_TRUE(AllocateNow(session, 2, total_ - 8192, kTrySram).ok());
  EXPECT_EQ(Free(), 0U);

  service->CloseSession(session->id());
  RunLoops();

  EXPECT_EQ(Free(), total_);
}

TEST_F(SessionSramTest, BufferMadeWithoutTheFlagTakesNone) {
  const TestSession session = Open();
  ASSERT_TRUE(AllocateNow(session, 1, 5000, 0).ok());
  EXPECT_EQ(Free(), total_);
}

TEST_F(SessionSramTest, ContextWithInternalMemoryOfItsOwnTakesNone) {
  const TestSession session = Open();
  ASSERT_EQ(CreateUsing(session, 1, 8192, kEnableSram | 0x200),
            absl::OkStatus());
  EXPECT_EQ(Free(), total_);
}

TEST_F(SessionSramTest, TenThousandContextsLeaveTheBitmapEmpty) {
  const TestSession session = Open();
  ASSERT_EQ(CreateUsing(session, 1, 8192, 0), absl::OkStatus());
  for (int i = 0; i < 10000; ++i) {
    const uint32_t flags = i % 3 == 0 ? kShare : kEnableSram;
    ASSERT_EQ(Create(session, 2, "sram=8192", flags), absl::OkStatus());
    ASSERT_TRUE(session->DestroyContext(2).ok());
  }
  EXPECT_EQ(Free(), total_);
  EXPECT_THAT(service->Sram().windows, IsEmpty());
}

}  // namespace
}  // namespace rknnd::core
