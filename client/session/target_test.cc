// A session while its daemon lives: models, memory, runs and their errors.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/posix/memfd.h"
#include "base/values/sha256.h"
#include "client/session/fake_daemon.h"
#include "client/session/target_fixture.h"

namespace rknnd::client {
namespace {

using base::Code;
using ::testing::HasSubstr;

TEST_F(TargetTest, TellsWhoAnswered) {
  Open();
  const TargetInfo info = target_->info();
  EXPECT_EQ(info.soc, "rk3588");
  EXPECT_EQ(info.cores, 3U);
  EXPECT_EQ(info.driver_version, "0.9.8");
}

TEST_F(TargetTest, OpenFailsInTheWordsOfItsDialler) {
  daemon_.Stop();
  auto opened = Target::Open(Options());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().message, "nobody is there");
}

TEST_F(TargetTest, ModelIsUploadedOnlyWhenTheDaemonLacksIt) {
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  ASSERT_TRUE(Create(kContext + 1).ok());
  EXPECT_EQ(daemon_.seen().uploads, 1U);
  EXPECT_EQ(daemon_.seen().contexts.size(), 2U);
}

TEST_F(TargetTest, DaemonsReasonForRefusingAModelIsHandedOn) {
  Open();
  const auto context = Create(kContext, "bad model");
  ASSERT_FALSE(context.ok());
  EXPECT_EQ(context.error().code, Code::kInvalidArgument);
  EXPECT_EQ(context.error().message, "this is no model");
}

TEST_F(TargetTest, DuplicateNamesItsOriginal) {
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  ContextRequest request;
  request.number = kContext + 1;
  request.duplicate_of = kContext;
  ASSERT_TRUE(target_->CreateContext(request, nullptr).ok());
  EXPECT_EQ(daemon_.seen().last_duplicate_of, kContext);
  EXPECT_EQ(daemon_.seen().uploads, 1U);
}

TEST_F(TargetTest, RunReportsTheDaemonsTimes) {
  Open();
  MakeRunnable(kContext);
  const auto report = Run(kContext);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->run_ns, 5000U);
  EXPECT_EQ(report->core, 1U);
}

TEST_F(TargetTest, FailedRunCarriesItsText) {
  Open();
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kFail);
  const auto report = Run(kContext);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kInternal);
  EXPECT_EQ(report.error().message, "told to fail");
}

TEST_F(TargetTest, RunsOfManyThreadsAllEnd) {
  Open();
  constexpr int kThreads = 8;
  constexpr int kRuns = 200;
  MakeRunnable(kContext);
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int run = 0; run < kRuns; ++run) {
        if (Run(kContext).ok()) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kThreads * kRuns);
}

TEST_F(TargetTest, UnansweredRunEndsAtItsTimeout) {
  SessionOptions options = Options();
  options.run_grace = 10 * base::kMillisecond;
  Open(std::move(options));
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kIgnore);
  const auto report = Run(kContext, 20);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(daemon_.seen().last_timeout_ms, 20U);
}

TEST_F(TargetTest, LateAnswerOfAGivenUpRunDoesNotDisturbTheNext) {
  SessionOptions options = Options();
  options.run_grace = base::kMillisecond;
  Open(std::move(options));
  MakeRunnable(kContext);
  daemon_.set_runs(FakeDaemon::Runs::kIgnore);
  ASSERT_FALSE(Run(kContext, 1).ok());
  daemon_.set_runs(FakeDaemon::Runs::kAnswer);
  EXPECT_TRUE(Run(kContext).ok());
}

TEST_F(TargetTest, EverySlotIsUsedAgain) {
  Open();
  MakeRunnable(kContext);
  for (uint32_t i = 0; i < 3 * wire::kRingEntries; ++i) {
    ASSERT_TRUE(Run(kContext).ok());
  }
}

TEST_F(TargetTest, OlderDaemonIsNotAskedWhatComputesTheLayers) {
  daemon_.set_knows_kernels(false);
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  const auto kernels = target_->Kernels(kContext);
  ASSERT_TRUE(kernels.ok()) << kernels.error().message;
  EXPECT_TRUE(kernels->empty());
}

TEST_F(TargetTest, ProgramWithoutAFreeDescriptorKeepsItsSession) {
  Open();
  // The daemon, a thread of this process, has closed what it sent with Welcome.
  ASSERT_TRUE(target_->GetMemorySize(kContext).ok());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  ASSERT_GE(next, 0);
  close(next);
  const rlimit full = {static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &full), 0);
  const auto refused = target_->AllocateBuffer(4096, 0);
  const auto dump = target_->TakeDump(kContext);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("ulimit -n"));
  EXPECT_EQ(dump.error().code, Code::kResourceExhausted);
  EXPECT_TRUE(target_->AllocateBuffer(4096, 0).ok());
  EXPECT_EQ(daemon_.seen().hellos, 1U);
}

TEST_F(TargetTest, ModelBytesComeFromUsWhenTheDaemonKeepsNone) {
  daemon_.set_keeps_models(false);
  Open();
  MakeRunnable(kContext);
  daemon_.Stop(/*keep_models=*/false);
  daemon_.Start();
  EXPECT_TRUE(Run(kContext).ok());
  EXPECT_EQ(daemon_.seen().uploads, 2U);
}

TEST_F(TargetTest, ModelOfATokenIsAskedForAndNeverSent) {
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  const auto known = ModelSource::OfId(base::Sha256Of(DataOf("model")));
  const auto unknown = ModelSource::OfId(base::Sha256Of(DataOf("other")));
  ContextRequest request;
  request.number = kContext + 1;
  EXPECT_TRUE(target_->CreateContext(request, known).ok());
  request.number = kContext + 2;
  const auto refused = target_->CreateContext(request, unknown);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kNotFound);
  EXPECT_THAT(refused.error().message, HasSubstr("of this token"));
  EXPECT_EQ(daemon_.seen().uploads, 1U);
}

TEST_F(TargetTest, BufferThatIsGivenUpIsReleasedByItsNumber) {
  SessionOptions options = Options();
  options.buffer_timeout = base::kMillisecond;
  daemon_.set_silent_about_buffers(true);
  Open(std::move(options));
  auto memfd = base::MakeMemfd("frame", 4096);
  ASSERT_TRUE(memfd.ok());

  const auto made = target_->AllocateBuffer(64, 0);
  const auto imported = target_->ImportBuffer(memfd->get(), 4096);

  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kDeadlineExceeded);
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(imported.error().code, Code::kDeadlineExceeded);
  // A request that is answered comes after both releases.
  ASSERT_TRUE(Create(1).ok());
  EXPECT_EQ(daemon_.seen().allocations, 1U);
  EXPECT_EQ(daemon_.seen().imports, 1U);
  EXPECT_TRUE(daemon_.seen().buffers.empty());
}

TEST_F(TargetTest, ImportKeepsADescriptorOfItsOwn) {
  Open();
  auto memfd = base::MakeMemfd("test", 4096);
  ASSERT_TRUE(memfd.ok());
  auto imported = target_->ImportBuffer(memfd->get(), 4096);
  ASSERT_TRUE(imported.ok());
  EXPECT_NE(imported->fd, memfd->get());
  memfd->reset();
  daemon_.Stop();
  daemon_.Start();
  ASSERT_TRUE(target_->AllocateBuffer(64, 0).ok());
  EXPECT_EQ(daemon_.seen().imports, 2U);
}

TEST_F(TargetTest, DescriptorReusedByTheProgramIsNeitherSentNorClosed) {
  Open();
  auto buffer = target_->AllocateBuffer(64, 0);
  ASSERT_TRUE(buffer.ok());
  // The program closes what is not its own, and the number is given away.
  const base::UniqueFd other(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(dup3(other.get(), buffer->fd, O_CLOEXEC), buffer->fd);
  daemon_.Stop();
  daemon_.Start();
  ASSERT_TRUE(Create(kContext).ok());
  EXPECT_EQ(daemon_.seen().imports, 0U);
  target_->ReleaseBuffer(buffer->number);
  EXPECT_GE(fcntl(buffer->fd, F_GETFD), 0);
  close(buffer->fd);
}

TEST_F(TargetTest, DaemonsLogLinesArePrinted) {
  Open();
  daemon_.set_log_line("core 2 is hot");
  testing::internal::CaptureStderr();
  ASSERT_TRUE(Create(kContext).ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("rknnd: error: core 2 is hot"));
}

}  // namespace
}  // namespace rknnd::client
