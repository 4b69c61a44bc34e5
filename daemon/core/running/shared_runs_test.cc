// Tests of one run for many readers, on a device whose runs are counted: which
// runs are one, whom that trusts, what it counts and holds.

#include "daemon/core/running/shared_runs.h"

#include <cstring>
#include <string>

#include "daemon/core/testing/shared_runs_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::kBytes;
using testing::kFrame;
using testing::kModel;
using testing::Reader;

class SharedRunsTest : public testing::SharedRunsFixture {};

TEST_F(SharedRunsTest, TwoReadersThatWaitGetOneRunAndTwoAnswers) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  EXPECT_EQ(RunsOf(a, b), 1U);
  EXPECT_EQ(a.answer(), 42);
  EXPECT_EQ(b.answer(), 42);
}

TEST_F(SharedRunsTest, ReaderThatComesWhileItRunsIsAnsweredWithIt) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  device.HoldJobs(true);
  Ask(a);
  RunReady();
  Ask(b);
  RunReady();
  EXPECT_EQ(device.held(), 1U);
  EXPECT_EQ(b.completions().size(), 0U);

  ASSERT_TRUE(device.Release());

  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(a.last(), absl::OkStatus());
  EXPECT_EQ(b.last(), absl::OkStatus());
  EXPECT_EQ(b.answer(), 42);
}

TEST_F(SharedRunsTest, ReaderThatWaitsForARunKeepsNoCore) {
  const Reader a = MakeReader(1), b = MakeReader(2), c = MakeReader(3);
  device.HoldJobs(true);
  Ask(a);
  RunReady();
  Ask(b);
  RunReady();
  // Two cores are left for two runs that nobody shares.
  Ask(c, Shared(kFrame + 1));
  Ask(c, Shared(kFrame + 2, 1));
  const Reader d = MakeReader(4);
  Ask(d, Shared(kFrame + 3));
  RunReady();
  EXPECT_EQ(device.held(), 3U);
  while (device.Release()) RunReady();
  EXPECT_EQ(b.last(), absl::OkStatus());
  EXPECT_EQ(service->Status().jobs_running, 0U);
}

TEST_F(SharedRunsTest, ReaderThatComesAMomentLaterIsAnsweredWithoutARun) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Ask(a);
  RunReady();
  clock.Advance(SharedRuns::kKept - 1);
  Ask(b);
  RunReady();
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(b.last(), absl::OkStatus());
  EXPECT_EQ(b.answer(), 42);
}

TEST_F(SharedRunsTest, ReaderThatComesTooLateHasARunOfItsOwn) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Ask(a);
  RunReady();
  clock.Advance(SharedRuns::kKept);
  Ask(b);
  RunReady();
  EXPECT_EQ(runs(), 2U);
  EXPECT_EQ(b.last(), absl::OkStatus());
}

TEST_F(SharedRunsTest, EachFrameOfAStreamIsRunOnce) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  for (uint64_t frame = 1; frame <= 20; ++frame) {
    frame_.data()[0] = static_cast<std::byte>(frame);
    // Either of them may be the first.
    Ask(frame % 2 == 0 ? a : b, Shared(frame));
    RunReady();
    Ask(frame % 2 == 0 ? b : a, Shared(frame));
    RunReady();
    EXPECT_EQ(a.answer(), static_cast<int>(frame) + 1);
    EXPECT_EQ(b.answer(), static_cast<int>(frame) + 1);
    clock.Advance(33 * base::kMillisecond);
  }
  EXPECT_EQ(runs(), 20U);
}

// ---- what is not the same ---------------------------------------------------

TEST_F(SharedRunsTest, OtherFramesAreOtherRuns) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  EXPECT_EQ(RunsOf(a, b, Shared(kFrame), Shared(kFrame + 1)), 2U);
}

TEST_F(SharedRunsTest, WhoDidNotAskForItHasARunOfItsOwn) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  JobSubmission alone = Shared();
  alone.shared = false;
  EXPECT_EQ(RunsOf(a, b, Shared(), alone), 2U);
}

TEST_F(SharedRunsTest, OtherMemoryWithTheSameBufferNumberIsAnotherRun) {
  const Reader a = MakeReader(1);
  const base::UniqueFd other = *base::MakeMemfd("camera", kBytes);
  const Reader b = MakeReader(2);
  ASSERT_TRUE(b.session->ReleaseBuffer(8).ok());
  Import(b, other);
  EXPECT_EQ(RunsOf(a, b), 2U);
  EXPECT_EQ(a.answer(), 42);
  EXPECT_EQ(b.answer(), 1);
}

TEST_F(SharedRunsTest, TheSameMemoryUnderAnotherNumberIsTheSame) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Import(b, camera_, 88);
  EXPECT_EQ(RunsOf(a, b), 1U);
}

TEST_F(SharedRunsTest, AnotherRangeOfTheMemoryIsAnotherRun) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Import(b, camera_, 88, 64);
  EXPECT_EQ(RunsOf(a, b), 2U);
}

TEST_F(SharedRunsTest, AnotherModelIsAnotherRun) {
  const Reader a = MakeReader(1), b = MakeReader(2, "bytes=8 weight=200");
  EXPECT_EQ(RunsOf(a, b), 2U);
}

TEST_F(SharedRunsTest, AnswersOfAnotherTypeAreAnotherRun) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  BindRequest request = BindTo(1, driver::Direction::kOutput, 0, 9, kBytes);
  request.format.type = driver::TensorType::kFloat32;
  ASSERT_TRUE(b.session->Bind(request).ok());
  EXPECT_EQ(RunsOf(a, b), 2U);
}

TEST_F(SharedRunsTest, InputsReadInAnotherFormAreAnotherRun) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  BindRequest request = BindTo(1, driver::Direction::kInput, 0, 8, kBytes);
  request.format.w_stride = 16;
  ASSERT_TRUE(b.session->Bind(request).ok());
  EXPECT_EQ(RunsOf(a, b), 2U);
}

TEST_F(SharedRunsTest, OneSessionsRunsAreItsOwn) {
  const Reader a = MakeReader(1);
  Ask(a);
  RunReady();
  Ask(a);
  RunReady();
  EXPECT_EQ(runs(), 2U);
}

TEST_F(SharedRunsTest, WhoMeasuresLayersHasRunsOfItsOwn) {
  constexpr uint32_t kCollectPerf = 0x8;
  const Reader a = MakeReader(1), b = MakeReader(2, kModel, 1000, kCollectPerf);
  EXPECT_EQ(RunsOf(a, b), 2U);
}

TEST_F(SharedRunsTest, SharedRunWithoutAFrameNumberIsRefused) {
  const Reader a = MakeReader(1);
  Ask(a, Shared(0));
  RunReady();
  EXPECT_EQ(a.last().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(a.last().message().find("frame"), std::string::npos) << a.last();
  EXPECT_EQ(runs(), 0U);
}

// ---- whom it trusts ---------------------------------------------------------

TEST_F(SharedRunsTest, OtherUsersShareARunThatBeginsAfterBothAsked) {
  const Reader a = MakeReader(1), b = MakeReader(2, kModel, 2000);
  EXPECT_EQ(RunsOf(a, b), 1U);
}

TEST_F(SharedRunsTest, RunThatBeganEarlierAnswersNoOtherUser) {
  const Reader liar = MakeReader(1, kModel, 2000);
  const Reader b = MakeReader(2);
  Ask(liar);
  RunReady();
  // Only now is that frame there.
  frame_.data()[0] = std::byte{99};
  clock.Advance(1);
  Ask(b);
  RunReady();
  EXPECT_EQ(runs(), 2U);
  EXPECT_EQ(b.answer(), 100);
}

TEST_F(SharedRunsTest, WhatAReaderWritesIntoItsAnswerIsNobodyElses) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Ask(a);
  RunReady();
  std::memset(a.output.data(), 0x66, kBytes);
  Ask(b);
  RunReady();
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(b.answer(), 42);
}

// ---- order, counts, memory --------------------------------------------------

TEST_F(SharedRunsTest, ReaderIsNotAnsweredBeforeItsOlderFrames) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  device.HoldJobs(true);
  JobSubmission older = Shared(kFrame - 1, 1);
  older.shared = false;
  Ask(b, older);
  RunReady();
  Ask(a);
  Ask(b);
  RunReady();
  ASSERT_EQ(device.held(), 2U);
  // The shared run ends first, by a device that is not in order.
  const Reader c = MakeReader(3);
  ASSERT_TRUE(device.Release());
  RunReady();
  ASSERT_TRUE(device.Release());
  RunReady();
  while (device.Release()) RunReady();
  ASSERT_EQ(b.completions().size(), 2U);
  EXPECT_EQ(b.completions()[0].frame, kFrame - 1);
  EXPECT_EQ(b.completions()[1].frame, kFrame);
}

TEST_F(SharedRunsTest, NpuTimeIsTheRunnersAndAnswersAreCounted) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  device.HoldJobs(true);
  Ask(a);
  Ask(b);
  RunReady();
  clock.Advance(5 * base::kMillisecond);
  ASSERT_TRUE(device.Release());
  SessionReport ran, read;
  for (const SessionReport& session : service->Sessions()) {
    (session.peer.pid == 1 ? ran : read) = session;
  }
  EXPECT_EQ(ran.npu_us, 5000U);
  EXPECT_EQ(ran.shared, 0U);
  EXPECT_EQ(read.npu_us, 0U);
  EXPECT_EQ(read.shared, 1U);
  EXPECT_EQ(read.jobs, 1U);
  EXPECT_EQ(service->Status().jobs_shared, 1U);
  EXPECT_EQ(service->Status().jobs_done, 2U);
}

TEST_F(SharedRunsTest, TimesOfAnAnswerAreThoseItWaited) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Ask(a);
  RunReady();
  clock.Advance(3 * base::kMillisecond);
  Ask(b);
  clock.Advance(2 * base::kMillisecond);
  RunReady();
  const JobCompletion answer = b.completions().at(0);
  EXPECT_EQ(answer.queue, 2 * base::kMillisecond);
  EXPECT_EQ(answer.run, 0);
  EXPECT_EQ(answer.total, 2 * base::kMillisecond);
}

TEST_F(SharedRunsTest, CopiesAreCountedForEveryReader) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  EXPECT_EQ(RunsOf(a, b), 1U);
  for (const ContextReport& context : service->Contexts()) {
    EXPECT_EQ(context.copied.from_device_conversion, 8U);
    EXPECT_EQ(context.jobs, 1U);
  }
}

TEST_F(SharedRunsTest, RunsThatAreNotSharedCopyAndHoldNothing) {
  const Reader a = MakeReader(1);
  JobSubmission alone = Shared();
  alone.shared = false;
  Ask(a, alone);
  RunReady();
  EXPECT_EQ(a.answer(), 42);
  EXPECT_EQ(service->Contexts().at(0).copied.from_device_conversion, 0U);
  EXPECT_EQ(room(), 0U);
}

TEST_F(SharedRunsTest, RoomIsChargedAndGoesWhenNobodySharesAnyMore) {
  const Reader a = MakeReader(1);
  Ask(a);
  RunReady();
  EXPECT_EQ(room(), 4096U);
  RunLoops();
  Advance(SharedRuns::kRoomKept);
  EXPECT_EQ(room(), 0U);
  EXPECT_EQ(timers.waiting(), 0U);
}

TEST_F(SharedRunsTest, RoomIsUsedAgainForTheNextFrames) {
  const Reader a = MakeReader(1);
  for (uint64_t frame = 1; frame <= 100; ++frame) {
    Ask(a, Shared(frame));
    RunReady();
    clock.Advance(33 * base::kMillisecond);
  }
  // As many as there are frames while one is kept.
  EXPECT_LE(room(), 8 * 4096U);
}

TEST_F(SharedRunsTest, RoomsAreBounded) {
  const Reader a = MakeReader(1);
  for (uint64_t frame = 1; frame <= 500; ++frame) {
    Ask(a, Shared(frame));
    RunReady();
  }
  EXPECT_LE(room(), SharedRuns::kMostRooms * 4096U);
  EXPECT_EQ(a.completions().size(), 500U);
}

TEST_F(SharedRunsTest, RoomIsGivenBackWhenMemoryIsLacking) {
  options.address_space = uint64_t{1} << 20;
  StartService();
  const Reader a = MakeReader(1);
  Ask(a);
  RunReady();
  ASSERT_EQ(room(), 4096U);
  const uint64_t left = FreePages();
  EXPECT_EQ(AllocateNow(a.session, 77, left + 4096, 0).status(),
            absl::OkStatus());
  EXPECT_EQ(room(), 0U);
}

TEST_F(SharedRunsTest, WithoutRoomEachReaderHasARunOfItsOwn) {
  options.address_space = uint64_t{1} << 20;
  StartService();
  const Reader a = MakeReader(1), b = MakeReader(2);
  const uint64_t left = FreePages();
  ASSERT_EQ(AllocateNow(a.session, 77, left, 0).status(), absl::OkStatus());
  EXPECT_EQ(RunsOf(a, b), 2U);
  EXPECT_EQ(a.answer(), 42);
  EXPECT_EQ(b.answer(), 42);
}

TEST_F(SharedRunsTest, KeptAnswersKeepNoModelAlive) {
  {
    const Reader a = MakeReader(1);
    Ask(a);
    RunReady();
    service->CloseSession(a.session->id());
  }
  Advance(options.model_grace);
  EXPECT_EQ(device.models(), 0U);
}

}  // namespace
}  // namespace rknnd::core
