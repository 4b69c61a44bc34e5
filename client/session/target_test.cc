// A session against a daemon that lives in the test, dies and comes back.

#include "client/session/target.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/values/sha256.h"
#include "client/include/rknn_api.h"
#include "client/session/fake_daemon.h"

namespace rknnd::client {
namespace {

using base::Code;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kContext = 0x4001;

std::string TestSocket() {
  return testing::TempDir() + "session_target_test." +
         std::to_string(getpid()) + ".sock";
}

std::span<const std::byte> DataOf(const char* text) {
  return std::as_bytes(std::span(text, strlen(text)));
}

// Memfds with a model's bytes that this process has open.
size_t OpenModelFiles() {
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto file = std::filesystem::read_symlink(entry.path(), gone);
    count += file.string().find("rknnd-model") != std::string::npos ? 1 : 0;
  }
  return count;
}

class TargetTest : public testing::Test {
 protected:
  SessionOptions Options() {
    SessionOptions options;
    options.dial = [path = daemon_.path()]() -> base::Expected<base::UniqueFd> {
      auto socket = base::ConnectUnix(path);
      if (socket.ok()) return socket;
      return base::Error{Code::kUnavailable, "nobody is there"};
    };
    options.name = "the test's daemon";
    return options;
  }

  void Open() { Open(Options()); }
  void Open(SessionOptions options) {
    auto opened = Target::Open(std::move(options));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    target_ = *std::move(opened);
  }

  base::Expected<std::shared_ptr<const ModelDescription>> Create(
      uint32_t number, const char* model = "model") {
    auto source = ModelSource::OfBytes(DataOf(model), std::nullopt);
    ContextRequest request;
    request.number = number;
    return target_->CreateContext(request, *source);
  }

  base::Expected<std::shared_ptr<const ModelDescription>> CreateFollower(
      uint32_t number, uint32_t owner, const char* model) {
    auto source = ModelSource::OfBytes(DataOf(model), std::nullopt);
    ContextRequest request;
    request.number = number;
    request.weights_of = owner;
    return target_->CreateContext(request, *source);
  }

  // A context with memory on both sides, ready to run.
  void MakeRunnable(uint32_t number) {
    ASSERT_TRUE(Create(number).ok());
    for (const Direction direction : {Direction::kInput, Direction::kOutput}) {
      auto buffer = target_->AllocateBuffer(64, 0);
      ASSERT_TRUE(buffer.ok());
      Binding binding;
      binding.buffer = buffer->number;
      binding.size = 64;
      binding.type = RKNN_TENSOR_FLOAT32;
      ASSERT_TRUE(target_->Bind(number, direction, 0, binding).ok());
    }
  }

  base::Expected<RunReport> Run(uint32_t number, uint32_t timeout_ms = 0) {
    RunRequest request;
    request.context = number;
    request.timeout_ms = timeout_ms;
    return target_->Run(request);
  }

  FakeDaemon daemon_{TestSocket()};
  std::shared_ptr<Target> target_;
};

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

TEST_F(TargetTest, ModelBytesComeFromUsWhenTheDaemonKeepsNone) {
  daemon_.set_keeps_models(false);
  Open();
  MakeRunnable(kContext);
  daemon_.Stop(/*keep_models=*/false);
  daemon_.Start();
  EXPECT_TRUE(Run(kContext).ok());
  EXPECT_EQ(daemon_.seen().uploads, 2U);
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

// ---- weights of another model -----------------------------------------------

TEST_F(TargetTest, OwnerOfWeightsIsSentOnlyWhenTheDaemonLacksIt) {
  Open();
  ASSERT_TRUE(Create(kContext, "owner").ok());
  // Another client, of which the daemon did not need the owner's bytes.
  Open();
  ASSERT_TRUE(Create(kContext, "owner").ok());
  daemon_.set_lacks_owners(false);
  ASSERT_TRUE(CreateFollower(kContext + 1, kContext, "small").ok());
  EXPECT_TRUE(daemon_.seen().owners.empty());

  // The daemon keeps models: those that it had are not kept here too.
  daemon_.set_lacks_owners(true);
  const auto refused = CreateFollower(kContext + 2, kContext, "smaller");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
}

TEST_F(TargetTest, OwnerIsSentWithItsFollower) {
  daemon_.set_keeps_models(false);
  Open();
  ASSERT_TRUE(Create(kContext, "owner").ok());
  ASSERT_TRUE(CreateFollower(kContext + 1, kContext, "small").ok());
  EXPECT_THAT(daemon_.seen().owners, ElementsAre("owner"));
  EXPECT_THAT(
      daemon_.seen().last_upload_options,
      HasSubstr("weights_of: " + base::ToHex(base::Sha256Of(DataOf("owner")))));
}

TEST_F(TargetTest, RestartedDaemonGetsTheOwnerAgainThoughItIsGone) {
  daemon_.set_keeps_models(false);
  Open();
  ASSERT_TRUE(Create(kContext, "owner").ok());
  ASSERT_TRUE(CreateFollower(kContext + 1, kContext, "small").ok());
  ASSERT_TRUE(target_->DestroyContext(kContext).ok());
  daemon_.Stop(/*keep_models=*/false);
  daemon_.Start();

  ASSERT_TRUE(target_->SetCoreMask(kContext + 1, 1).ok());
  EXPECT_THAT(daemon_.seen().owners, ElementsAre("owner", "owner"));
  EXPECT_EQ(daemon_.seen().contexts.size(), 1U);
}

TEST_F(TargetTest, BytesOfOneModelAreKeptOnce) {
  daemon_.set_keeps_models(false);
  Open();
  const size_t before = OpenModelFiles();
  ASSERT_TRUE(Create(kContext, "model").ok());
  ASSERT_TRUE(Create(kContext + 1, "model").ok());
  EXPECT_EQ(OpenModelFiles(), before + 1);

  ASSERT_TRUE(target_->DestroyContext(kContext).ok());
  daemon_.Stop(/*keep_models=*/false);
  daemon_.Start();
  EXPECT_TRUE(target_->SetCoreMask(kContext + 1, 1).ok());
  ASSERT_TRUE(target_->DestroyContext(kContext + 1).ok());
  EXPECT_EQ(OpenModelFiles(), before);
}

TEST_F(TargetTest, DuplicateOfAFollowerNeedsNoOwner) {
  daemon_.set_keeps_models(false);
  Open();
  ASSERT_TRUE(Create(kContext, "owner").ok());
  ASSERT_TRUE(CreateFollower(kContext + 1, kContext, "small").ok());
  ContextRequest request;
  request.number = kContext + 2;
  request.duplicate_of = kContext + 1;
  EXPECT_TRUE(target_->CreateContext(request, nullptr).ok());
  EXPECT_EQ(daemon_.seen().owners.size(), 1U);
}

TEST_F(TargetTest, OwnerThatIsGoneIsAnError) {
  Open();
  const auto refused = CreateFollower(kContext + 1, kContext, "small");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kNotFound);
  EXPECT_EQ(daemon_.seen().uploads, 0U);
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
