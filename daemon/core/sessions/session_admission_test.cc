// Streams that sessions plan, and the room that is kept for them.

#include <string>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::HasSubstr;
using testing::TestSession;

constexpr char kTenMs[] = "modelled=10";

class SessionAdmissionTest : public testing::CoreTest {
 protected:
  static AdmissionRequest Ask(uint32_t context, uint64_t rate,
                              bool reserve = false) {
    AdmissionRequest request;
    request.context = context;
    request.rate_mhz = rate * 1000;
    request.reserve = reserve;
    return request;
  }
};

TEST_F(SessionAdmissionTest, UnmeasuredModelIsPlannedByItsTimingModel) {
  const TestSession session = Open();
  MakeReady(session, 1, kTenMs);
  const auto answer = session->Admit(Ask(1, 30));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->fits);
  EXPECT_FALSE(answer->measured);
  EXPECT_EQ(answer->run, 10 * base::kMillisecond);
  EXPECT_EQ(answer->rate_mhz, 90'000U);
}

TEST_F(SessionAdmissionTest, FirstRunMeasures) {
  const TestSession session = Open();
  MakeReady(session, 1, kTenMs);
  device.set_run_time(20 * base::kMillisecond);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  const auto answer = session->Admit(Ask(1, 30));
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->measured);
  EXPECT_EQ(answer->run, 20 * base::kMillisecond);
  EXPECT_EQ(answer->rate_mhz, 45'000U);
}

TEST_F(SessionAdmissionTest, UnknownTimeIsSaidAndNotGuessed) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  const auto answer = session->Admit(Ask(1, 1, /*reserve=*/true));
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->fits);
  EXPECT_EQ(answer->rate_mhz, 0U);
  EXPECT_THAT(answer->reason, HasSubstr("model 'm.onnx' has never run here"));
  EXPECT_EQ(service->Contexts()[0].rate_mhz, 0U);
}

TEST_F(SessionAdmissionTest, ReservedRoomIsShownAndCounted) {
  const TestSession first = Open(1);
  MakeReady(first, 1, kTenMs, 0, 1);
  ASSERT_TRUE(first->Admit(Ask(1, 60, true))->fits);
  EXPECT_EQ(service->Contexts()[0].rate_mhz, 60'000U);
  EXPECT_EQ(service->Status().admitted_ppm, 200'000U);
  const TestSession second = Open(2);
  MakeReady(second, 1, kTenMs, 0, 1);
  const auto answer = second->Admit(Ask(1, 40));
  EXPECT_FALSE(answer->fits);
  EXPECT_EQ(answer->rate_mhz, 30'000U);
  EXPECT_EQ(answer->load_ppm, 600'000U);
  EXPECT_THAT(answer->reason,
              HasSubstr("1 stream of model 'm.onnx' takes 60 % of core 0"));
}

TEST_F(SessionAdmissionTest, AskingAloneKeepsNoRoom) {
  const TestSession session = Open();
  MakeReady(session, 1, kTenMs);
  ASSERT_TRUE(session->Admit(Ask(1, 60))->fits);
  EXPECT_EQ(service->Status().admitted_ppm, 0U);
}

TEST_F(SessionAdmissionTest, SecondDeclarationReplacesTheFirst) {
  const TestSession session = Open();
  MakeReady(session, 1, kTenMs, 0, 1);
  ASSERT_TRUE(session->Admit(Ask(1, 60, true))->fits);
  // Its own frames are not in its way.
  EXPECT_TRUE(session->Admit(Ask(1, 90, true))->fits);
  EXPECT_EQ(service->Contexts()[0].rate_mhz, 90'000U);
  // One that does not fit leaves what there is.
  EXPECT_FALSE(session->Admit(Ask(1, 100, true))->fits);
  EXPECT_EQ(service->Contexts()[0].rate_mhz, 90'000U);
}

TEST_F(SessionAdmissionTest, RateZeroTakesItBack) {
  const TestSession session = Open();
  MakeReady(session, 1, kTenMs);
  ASSERT_TRUE(session->Admit(Ask(1, 60, true))->fits);
  ASSERT_TRUE(session->Admit(Ask(1, 0)).ok());
  EXPECT_EQ(service->Contexts()[0].rate_mhz, 0U);
  EXPECT_EQ(service->Status().admitted_ppm, 0U);
}

TEST_F(SessionAdmissionTest, RoomGoesWithItsContextAndItsSession) {
  const TestSession session = Open();
  MakeReady(session, 1, kTenMs);
  MakeReady(session, 2, kTenMs);
  ASSERT_TRUE(session->Admit(Ask(1, 60, true))->fits);
  ASSERT_TRUE(session->Admit(Ask(2, 60, true))->fits);
  ASSERT_TRUE(session->DestroyContext(1).ok());
  EXPECT_EQ(service->Status().admitted_ppm, 200'000U);
  // A later one of its number has none.
  MakeReady(session, 3, kTenMs);
  service->CloseSession(session->id());
  EXPECT_EQ(service->Status().admitted_ppm, 0U);
}

TEST_F(SessionAdmissionTest, RoomFollowsTheCoreMask) {
  const TestSession session = Open();
  MakeReady(session, 1, kTenMs, 0, 1);
  MakeReady(session, 2, kTenMs, 0, 1);
  ASSERT_TRUE(session->Admit(Ask(1, 90, true))->fits);
  EXPECT_FALSE(session->Admit(Ask(2, 10))->fits);
  ASSERT_TRUE(SetCoreMaskNow(session, 1, 2).ok());
  EXPECT_TRUE(session->Admit(Ask(2, 90))->fits);
}

TEST_F(SessionAdmissionTest, PriorityIsNoHigherThanTheCeiling) {
  const TestSession first = Open(1);
  MakeReady(first, 1, kTenMs, /*flags=*/0, 1);
  ASSERT_TRUE(first->Admit(Ask(1, 90, true))->fits);
  // It asks for HIGH, as all do, and gets MEDIUM: the room is taken.
  const TestSession second = Open(2);
  MakeReady(second, 1, kTenMs, /*flags=*/0, 1);
  AdmissionRequest request = Ask(1, 10);
  request.priority = Priority::kHigh;
  EXPECT_FALSE(second->Admit(request)->fits);
}

TEST_F(SessionAdmissionTest, ConfiguredUsersMayGoBeforeOthers) {
  StopService();
  options.scheduling.users[7] = {Priority::kHigh, 100};
  StartService();
  const TestSession first = Open(1, 1000);
  MakeReady(first, 1, kTenMs, 0, 1);
  ASSERT_TRUE(first->Admit(Ask(1, 90, true))->fits);
  const TestSession second = Open(2, 7);
  MakeReady(second, 1, kTenMs, 0, 1);
  AdmissionRequest request = Ask(1, 10);
  request.priority = Priority::kHigh;
  const auto answer = second->Admit(request);
  EXPECT_TRUE(answer->fits);
  EXPECT_THAT(answer->reason, HasSubstr("passed over"));
}

TEST_F(SessionAdmissionTest, ModelIsFoundByItsHash) {
  const TestSession session = Open();
  MakeReady(session, 1, kTenMs);
  AdmissionRequest request;
  request.model = Id(kTenMs);
  request.rate_mhz = 30'000;
  request.streams = 9;
  const auto answer = session->Admit(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->fits);
  EXPECT_EQ(answer->rate_mhz, 30'000U);
  request.model = Id("another");
  EXPECT_EQ(session->Admit(request).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(SessionAdmissionTest, ContextThatNeverRunsCanAskAndKeepsNothing) {
  const TestSession session = Open();
  ASSERT_EQ(Upload(session, kTenMs), absl::OkStatus());
  ASSERT_EQ(Create(session, 1, kTenMs, kInfoOnly), absl::OkStatus());
  EXPECT_TRUE(session->Admit(Ask(1, 30))->fits);
  EXPECT_EQ(session->Admit(Ask(1, 30, true)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(SessionAdmissionTest, WrongNumbersAreRefused) {
  const TestSession session = Open();
  MakeReady(session, 1, kTenMs);
  EXPECT_EQ(session->Admit(Ask(9, 1)).status().code(),
            absl::StatusCode::kNotFound);
  AdmissionRequest request = Ask(1, 1);
  request.streams = 0;
  EXPECT_EQ(session->Admit(request).status().code(),
            absl::StatusCode::kInvalidArgument);
  request.streams = 100'000;
  EXPECT_EQ(session->Admit(request).status().code(),
            absl::StatusCode::kInvalidArgument);
  request.streams = 2;
  request.reserve = true;
  EXPECT_EQ(session->Admit(request).status().code(),
            absl::StatusCode::kInvalidArgument);
  request = Ask(1, 1);
  request.core_mask = 77;
  EXPECT_EQ(session->Admit(request).status().code(),
            absl::StatusCode::kInvalidArgument);
  request = Ask(1, 1);
  request.rate_mhz = UINT64_MAX;
  EXPECT_FALSE(session->Admit(request)->fits);
}

TEST_F(SessionAdmissionTest, GangIsMeasuredAsOne) {
  const TestSession session = Open();
  MakeReady(session, 1, kTenMs, 0, 3);
  device.set_run_time(6 * base::kMillisecond);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  const auto answer = session->Admit(Ask(1, 30));
  EXPECT_TRUE(answer->measured);
  EXPECT_EQ(answer->run, 6 * base::kMillisecond);
  EXPECT_EQ(answer->rate_mhz, 150'000U);
}

}  // namespace
}  // namespace rknnd::core
