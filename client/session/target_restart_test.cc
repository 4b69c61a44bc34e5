// A session whose daemon dies and comes back, late or not at all: what is asked
// and told again, and what the program sees of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "client/include/rknn_api.h"
#include "client/session/fake_daemon.h"
#include "client/session/target_fixture.h"

namespace rknnd::client {
namespace {

using base::Code;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TargetTest, RestartedDaemonGetsEverythingAgain) {
  Open();
  MakeRunnable(kContext);
  ASSERT_TRUE(target_->SetCoreMask(kContext, RKNN_NPU_CORE_2).ok());
  InputShape shape{};
  shape.dims_count = 1;
  shape.dims[0] = 99;
  ASSERT_TRUE(target_->SetShapes(kContext, {shape}).ok());
  const auto before = daemon_.seen();
  daemon_.Stop();
  daemon_.Start();
  const auto report = Run(kContext);
  ASSERT_TRUE(report.ok()) << report.error().message;
  const auto after = daemon_.seen();
  EXPECT_EQ(after.contexts, before.contexts);
  EXPECT_EQ(after.buffers, before.buffers);
  EXPECT_EQ(after.core_masks.at(kContext), RKNN_NPU_CORE_2);
  EXPECT_EQ(after.shapes.at(kContext), 99U);
}

TEST_F(TargetTest, ARefusedShapeIsNotAskedForAgain) {
  Open();
  MakeRunnable(kContext);
  EXPECT_FALSE(target_->SetShapes(kContext, {}).ok());
  daemon_.Stop();
  daemon_.Start();

  EXPECT_TRUE(Run(kContext).ok());
}

TEST_F(TargetTest, RunInFlightRunsAgainAfterARestart) {
  Open();
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kIgnore);
  bool good = false;
  std::thread runner([&] { good = Run(kContext).ok(); });
  daemon_.AwaitRuns(1);
  daemon_.Stop();
  daemon_.set_runs(FakeDaemon::Runs::kAnswer);
  daemon_.Start();
  runner.join();
  EXPECT_TRUE(good);
  EXPECT_EQ(daemon_.seen().runs, 2U);
}

TEST_F(TargetTest, RunRefusedByADaemonThatGoesRunsOnTheNext) {
  Open();
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kDrain);
  bool good = false;
  std::thread runner([&] { good = Run(kContext).ok(); });
  daemon_.AwaitRuns(2);
  daemon_.Stop();
  daemon_.set_runs(FakeDaemon::Runs::kAnswer);
  daemon_.Start();
  runner.join();
  EXPECT_TRUE(good);
}

TEST_F(TargetTest, RunRefusedForTooLongIsAnError) {
  SessionOptions options = Options();
  options.rebuild_bound = 40 * base::kMillisecond;
  Open(std::move(options));
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kDrain);
  const auto report = Run(kContext);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kUnavailable);
  EXPECT_EQ(report.error().message, "takes no new jobs");
}

TEST_F(TargetTest, RunThatNobodyAnswersTellsWhoHasTheCores) {
  SessionOptions options = Options();
  options.longest_run = 30 * base::kMillisecond;
  Open(std::move(options));
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kIgnore);
  wire::Report report;
  report.jobs_queued = 2;
  report.core_reports.resize(2);
  wire::CoreReport& busy = report.core_reports[1];
  busy.running_ns = 118 * uint64_t{base::kSecond};
  wire::SetText(busy.holder, "session 4 (pid 12 'cam')");
  wire::SetText(busy.model, "long.onnx");
  daemon_.set_report(report);
  const auto run = Run(kContext);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(run.error().message,
              HasSubstr("core 1 is held for 118 s by session 4 (pid 12 'cam') "
                        "with 'long.onnx', and 2 wait"));
  EXPECT_THAT(run.error().message, Not(HasSubstr("hangs")));
}

TEST_F(TargetTest, RunThatWaitsWhileNoCoreIsHeldIsToldSo) {
  SessionOptions options = Options();
  options.longest_run = 30 * base::kMillisecond;
  Open(std::move(options));
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kIgnore);
  daemon_.set_report({});
  const auto run = Run(kContext);
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().message, HasSubstr("has no job on a core"));
}

TEST_F(TargetTest, RunOfADaemonThatSaysNothingBlamesIt) {
  SessionOptions options = Options();
  options.longest_run = 30 * base::kMillisecond;
  Open(std::move(options));
  MakeRunnable(kContext);
  daemon_.set_report({});
  daemon_.set_reads_rings(false);
  const auto run = Run(kContext);
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().message, HasSubstr("rknnd hangs, or is stopped"));
}

TEST_F(TargetTest, RunIsNotBlamedForDeathsBeforeItHadACore) {
  daemon_.set_begun(FakeDaemon::Begun::kNone);
  Open();
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kIgnore);
  base::Expected<RunReport> run = base::Error{};
  std::thread runner([&] { run = Run(kContext); });
  for (uint64_t deaths = 1; deaths <= 8; ++deaths) {
    daemon_.AwaitRuns(deaths);
    daemon_.Stop();
    if (deaths == 8) daemon_.set_runs(FakeDaemon::Runs::kAnswer);
    daemon_.Start();
  }
  runner.join();
  EXPECT_TRUE(run.ok()) << run.error().message;
}

TEST_F(TargetTest, RunThatEndsEveryDaemonOnceItHasACoreIsGivenUp) {
  daemon_.set_begun(FakeDaemon::Begun::kAll);
  Open();
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kIgnore);
  base::Expected<RunReport> run = base::Error{};
  std::thread runner([&] { run = Run(kContext); });
  for (uint64_t deaths = 1; deaths <= 5; ++deaths) {
    daemon_.AwaitRuns(deaths);
    daemon_.Stop();
    daemon_.Start();
  }
  runner.join();
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, Code::kUnavailable);
  EXPECT_THAT(
      run.error().message,
      HasSubstr("went away 5 times during this call, which may be why"));
  EXPECT_EQ(daemon_.seen().runs, 5U);
}

TEST_F(TargetTest, AllThreadsWaitForOneRebuild) {
  Open();
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kIgnore);
  constexpr uint64_t kThreads = 6;
  std::atomic<uint64_t> good{0};
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      if (Run(kContext).ok()) ++good;
    });
  }
  daemon_.AwaitRuns(kThreads);
  daemon_.Stop();
  daemon_.set_runs(FakeDaemon::Runs::kAnswer);
  daemon_.Start();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kThreads);
  EXPECT_EQ(daemon_.seen().hellos, 2U);
}

TEST_F(TargetTest, DaemonThatKeepsClosingTheSessionIsQuoted) {
  Open();
  daemon_.set_last_words("disconnected: no number is free");
  const auto buffer = target_->AllocateBuffer(4096, 0);
  daemon_.set_last_words("");
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.error().code, Code::kUnavailable);
  EXPECT_THAT(buffer.error().message, HasSubstr("went away 5 times"));
  EXPECT_THAT(buffer.error().message, HasSubstr("no number is free"));
  EXPECT_TRUE(target_->AllocateBuffer(4096, 0).ok());
}

TEST_F(TargetTest, KeyOfABufferIsToBeHadAfterARestart) {
  Open();
  const auto buffer = target_->AllocateBuffer(64, 0);
  ASSERT_TRUE(buffer.ok());
  ASSERT_TRUE(target_->GetBufferKey(buffer->number).ok());
  daemon_.Stop();
  daemon_.Start();
  const auto key = target_->GetBufferKey(buffer->number);
  ASSERT_TRUE(key.ok()) << key.error().message;
  EXPECT_EQ(key->key[1], buffer->number);
  target_->ReleaseBuffer(buffer->number);
  EXPECT_FALSE(target_->GetBufferKey(buffer->number).ok());
}

TEST_F(TargetTest, ContentsOfBuffersSurviveARestart) {
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  auto in = target_->AllocateBuffer(64, 0);
  auto out = target_->AllocateBuffer(64, 0);
  ASSERT_TRUE(in.ok() && out.ok());
  Binding binding;
  binding.size = 64;
  binding.type = RKNN_TENSOR_FLOAT32;
  binding.buffer = in->number;
  ASSERT_TRUE(target_->Bind(kContext, Direction::kInput, 0, binding).ok());
  binding.buffer = out->number;
  ASSERT_TRUE(target_->Bind(kContext, Direction::kOutput, 0, binding).ok());
  const float value = 2.5F;
  ASSERT_EQ(pwrite(in->fd, &value, sizeof value, 0), sizeof value);
  daemon_.Stop();
  daemon_.Start();
  ASSERT_TRUE(Run(kContext).ok());
  float result = 0;
  ASSERT_EQ(pread(out->fd, &result, sizeof result, 0), sizeof result);
  EXPECT_EQ(result, value);
}

TEST_F(TargetTest, ModelBytesComeFromUsWhenTheDaemonLostThem) {
  Open();
  MakeRunnable(kContext);
  daemon_.Stop(/*keep_models=*/false);
  daemon_.Start();
  EXPECT_TRUE(Run(kContext).ok());
  EXPECT_EQ(daemon_.seen().uploads, 2U);
}

TEST_F(TargetTest, ModelThatOnlyAnotherClientHasIsWaitedFor) {
  Open();
  MakeRunnable(kContext);
  const std::shared_ptr<Target> first = std::move(target_);
  Open();
  MakeRunnable(kContext);
  EXPECT_EQ(daemon_.seen().uploads, 1U);
  daemon_.Stop(/*keep_models=*/false);
  daemon_.Start();
  std::thread run([&] { EXPECT_TRUE(Run(kContext).ok()); });
  EXPECT_TRUE(first->AllocateBuffer(64, 0).ok());
  run.join();
}

TEST_F(TargetTest, LostModelIsNamedAndOthersGoOn) {
  // Who has the bytes, and goes.
  Open();
  MakeRunnable(kContext);
  Open();
  MakeRunnable(kContext);
  daemon_.Stop(/*keep_models=*/false);
  daemon_.Start();
  const auto report = Run(kContext);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("rknnd was restarted"));
  EXPECT_THAT(report.error().message, HasSubstr("given as bytes"));
  EXPECT_TRUE(Create(kContext + 1).ok());
}

TEST_F(TargetTest, RequestIsRepeatedOnTheNewDaemon) {
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  daemon_.Stop();
  daemon_.Start();
  EXPECT_TRUE(target_->AllocateBuffer(64, 0).ok());
  EXPECT_TRUE(daemon_.seen().contexts.contains(kContext));
}

TEST_F(TargetTest, DaemonThatStaysAwayIsAnErrorAfterTheBound) {
  SessionOptions options = Options();
  options.rebuild_bound = 40 * base::kMillisecond;
  Open(std::move(options));
  MakeRunnable(kContext);
  daemon_.Stop();
  const auto report = Run(kContext);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kUnavailable);
  EXPECT_THAT(report.error().message, HasSubstr("nobody is there"));
}

TEST_F(TargetTest, DaemonThatComesLateIsUsedAgain) {
  SessionOptions options = Options();
  options.rebuild_bound = 20 * base::kMillisecond;
  Open(std::move(options));
  MakeRunnable(kContext);
  daemon_.Stop();
  ASSERT_FALSE(Run(kContext).ok());
  daemon_.Start();
  EXPECT_TRUE(Run(kContext).ok());
}

TEST_F(TargetTest, RunsOwnTimeoutHoldsOverTheRebuild) {
  SessionOptions options = Options();
  options.run_grace = 0;
  Open(std::move(options));
  MakeRunnable(kContext);
  daemon_.Stop();
  const auto report = Run(kContext, 30);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kDeadlineExceeded);
}

TEST_F(TargetTest, SessionInThisProcessIsNotRebuilt) {
  SessionOptions options = Options();
  options.rebuild = false;
  Open(std::move(options));
  MakeRunnable(kContext);
  daemon_.Stop();
  daemon_.Start();
  const auto report = Run(kContext);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().message.find("the test's daemon has stopped"), 0U);
}

TEST_F(TargetTest, DestroyWithoutADaemonDoesNotWaitForOne) {
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  auto buffer = target_->AllocateBuffer(64, 0);
  ASSERT_TRUE(buffer.ok());
  daemon_.Stop();
  // Would take the whole bound of 30 s otherwise, and the test with it.
  target_->ReleaseBuffer(buffer->number);
  EXPECT_TRUE(target_->DestroyContext(kContext).ok());
  daemon_.Start();
  ASSERT_TRUE(Create(kContext + 1).ok());
  EXPECT_FALSE(daemon_.seen().contexts.contains(kContext));
}

TEST_F(TargetTest, BufferDestroyedWhileBoundDoesNotStopARebuild) {
  Open();
  MakeRunnable(kContext);
  target_->ReleaseBuffer(1);
  daemon_.Stop();
  daemon_.Start();
  auto buffer = target_->AllocateBuffer(64, 0);
  ASSERT_TRUE(buffer.ok());
  Binding binding;
  binding.buffer = buffer->number;
  binding.size = 64;
  ASSERT_TRUE(target_->Bind(kContext, Direction::kInput, 0, binding).ok());
  EXPECT_TRUE(Run(kContext).ok());
}

TEST_F(TargetTest, ClosedDescriptorOfBoundMemoryCostsThatMemoryAlone) {
  Open();
  MakeRunnable(kContext);
  auto buffer = target_->AllocateBuffer(64, 0);
  ASSERT_TRUE(buffer.ok());
  Binding binding;
  binding.buffer = buffer->number;
  binding.size = 64;
  binding.type = RKNN_TENSOR_FLOAT32;
  ASSERT_TRUE(target_->Bind(kContext, Direction::kInput, 0, binding).ok());
  // Closed, and its number something else's to the end: not one of the threads'
  // here, which would race with those who look whose it is.
  ASSERT_EQ(dup2(STDERR_FILENO, buffer->fd), buffer->fd);
  daemon_.Stop();
  daemon_.Start();
  EXPECT_FALSE(Run(kContext).ok());
  // The context is there, and other memory mends it.
  auto other = target_->AllocateBuffer(64, 0);
  ASSERT_TRUE(other.ok());
  binding.buffer = other->number;
  EXPECT_TRUE(target_->Bind(kContext, Direction::kInput, 0, binding).ok());
  EXPECT_TRUE(Run(kContext).ok());
}

TEST_F(TargetTest, ContextThatIsLostHalfwayIsNotLeftInTheDaemon) {
  Open();
  MakeRunnable(kContext);
  daemon_.Stop();
  daemon_.set_refuses_binds(true);
  daemon_.Start();
  const auto report = Run(kContext);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("rknnd was restarted"));
  EXPECT_THAT(report.error().message, HasSubstr("no binds today"));
  // Any answer comes after what was sent before it.
  ASSERT_TRUE(Create(kContext + 1).ok());
  EXPECT_THAT(daemon_.seen().contexts, ElementsAre(kContext + 1));
}

TEST_F(TargetTest, InternalMemoryIsSetAgainAfterARestart) {
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  ASSERT_TRUE(Create(kContext + 1).ok());
  auto buffer = target_->AllocateBuffer(4096, 0);
  ASSERT_TRUE(buffer.ok());
  const MemoryRange range{buffer->number, 64, 1000};
  ASSERT_TRUE(target_->SetInternalMemory(kContext, range).ok());
  ASSERT_TRUE(target_->SetWeightMemory(kContext, range).ok());
  daemon_.Stop();
  daemon_.Start();
  EXPECT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  const auto seen = daemon_.seen();
  ASSERT_EQ(seen.internal.size(), 1U);
  EXPECT_EQ(seen.internal.at(kContext).buffer, buffer->number);
  EXPECT_EQ(seen.internal.at(kContext).offset, 64U);
  EXPECT_EQ(seen.internal.at(kContext).size, 1000U);
}

TEST_F(TargetTest, InternalMemoryThatWasDestroyedDoesNotStopARebuild) {
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  auto buffer = target_->AllocateBuffer(4096, 0);
  ASSERT_TRUE(buffer.ok());
  ASSERT_TRUE(
      target_->SetInternalMemory(kContext, {buffer->number, 0, 4096}).ok());
  target_->ReleaseBuffer(buffer->number);
  daemon_.Stop();
  daemon_.Start();
  EXPECT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  EXPECT_TRUE(daemon_.seen().internal.empty());
}

}  // namespace
}  // namespace rknnd::client
