// The whole device with real workers, over the stand-in for the vendor's
// library.

#include "driver/rknnrt/rknnrt_device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/child_process.h"
#include "driver/device.h"
#include "driver/open_device.h"
#include "driver/rknnrt/testing/can_filter_calls.h"
#include "driver/rknnrt/testing/hosted_standin.h"
#include "driver/rknnrt/testing/wrapped_model.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::rknnrt {
namespace {

using driver::DeviceOptions;
using driver::TensorType;
using soft::testing::BoundModel;
using soft::testing::OnnxBuilder;
using soft::testing::PlainFormat;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::Trouble;

// y = x + 1, of 60 numbers.
std::vector<std::byte> AddOne(float added = 1) {
  return OnnxBuilder()
      .Input("x", {1, 3, 4, 5})
      .Floats("added", {1}, {added})
      .Node("Relu", {"x"}, {"r"})
      .Node("Add", {"r", "added"}, {"y"})
      .Output("y", {1, 3, 4, 5})
      .Bytes();
}

class RknnrtDeviceTest : public ::testing::Test {
 protected:
  void Open(
      const std::string& version = "2_3_2",
      void (*change)(DeviceOptions&) = [](DeviceOptions&) {}) {
    DeviceOptions options = testing::HostedStandin(RKNND_BINARY_ROOT, version);
    change(options);
    OpenWith(options);
    ASSERT_TRUE(why_.ok()) << why_;
  }
  void OpenWith(const DeviceOptions& options) {
    auto opened =
        driver::OpenDeviceAndHeap(options, [this](const std::string& line) {
          std::lock_guard lock(mutex_);
          log_ += line + "\n";
          said_.notify_all();
        });
    why_ = opened.status();
    if (opened.ok()) device_ = std::move(opened->device);
  }
  std::string Log() {
    std::lock_guard lock(mutex_);
    return log_;
  }
  // Lines come by another thread.
  void ExpectLogged(const std::string& text) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        said_.wait_for(lock, std::chrono::seconds(60),
                       [&] { return log_.find(text) != std::string::npos; }))
        << "no '" << text << "' in the log:\n"
        << log_;
  }

  absl::Status Load(const std::vector<std::byte>& onnx = AddOne(),
                    const std::string& sha256 = std::string(64, 'a')) {
    const std::vector<std::byte> file = testing::Wrap(onnx);
    auto model = device_->Load(
        {.bytes = file, .options = "", .name = "add.rknn", .sha256 = sha256});
    if (!model.ok()) return model.status();
    model_ = *std::move(model);
    return absl::OkStatus();
  }
  std::unique_ptr<BoundModel> Bind() {
    const driver::ProgramInfo& program = model_->info().programs[0];
    auto bound = BoundModel::Make(
        *device_, *model_,
        {PlainFormat(program.inputs[0], TensorType::kFloat32)},
        {PlainFormat(program.outputs[0], TensorType::kFloat32)});
    EXPECT_TRUE(bound.ok()) << bound.status();
    return bound.ok() ? *std::move(bound) : nullptr;
  }
  // One run that counts up from `first`; what is wrong with it.
  static absl::Status RunOne(BoundModel& bound, uint32_t core = 0,
                             float first = 1) {
    auto* const in = reinterpret_cast<float*>(bound.input(0).data());
    auto* const out = reinterpret_cast<float*>(bound.output(0).data());
    for (int i = 0; i < 60; ++i) {
      in[i] = first + static_cast<float>(i);
      out[i] = -1;
    }
    driver::JobResult result = bound.Run(core);
    if (!result.status.ok()) return result.status;
    for (int i = 0; i < 60; ++i) {
      if (out[i] != in[i] + 1) {
        return absl::DataLossError("the answer is wrong");
      }
    }
    return absl::OkStatus();
  }
  // Loads and runs once.
  absl::Status Try() {
    if (const absl::Status loaded = Load(); !loaded.ok()) return loaded;
    auto bound = Bind();
    return RunOne(*bound);
  }

  std::mutex mutex_;
  std::condition_variable said_;
  std::string log_;
  absl::Status why_;
  std::unique_ptr<driver::Device> device_;
  std::unique_ptr<driver::Model> model_;
};

TEST_F(RknnrtDeviceTest, RunsWhatNothingElseCan) {
  Open("2_3_2", [](DeviceOptions& options) { options.kind = "auto"; });
  ASSERT_TRUE(Load().ok());

  EXPECT_EQ(model_->info().run_by, "rknnrt");
  EXPECT_THAT(model_->info().run_by_because,
              HasSubstr("rknnd's own executor declines it"));
  auto bound = Bind();
  for (uint32_t core = 0; core < 3; ++core) {
    EXPECT_TRUE(RunOne(*bound, core).ok()) << core;
  }
}

TEST_F(RknnrtDeviceTest, SetsOfMemoryAreBoundOnceEach) {
  Open();
  ASSERT_TRUE(Load().ok());
  std::vector<std::unique_ptr<BoundModel>> sets;
  // More than a lane has contexts for.
  for (int i = 0; i < 7; ++i) sets.push_back(Bind());
  for (int round = 0; round < 5; ++round) {
    for (size_t i = 0; i < sets.size(); ++i) {
      ASSERT_TRUE(RunOne(*sets[i], 0, static_cast<float>(i)).ok()) << i;
    }
  }
}

TEST_F(RknnrtDeviceTest, MemoryThatIsGoneIsHeldByNobody) {
  Open();
  ASSERT_TRUE(Load().ok());
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  { ASSERT_TRUE(RunOne(*Bind()).ok()); }
  const auto before = descriptors();
  for (int i = 0; i < 100; ++i) {
    auto bound = Bind();
    ASSERT_TRUE(RunOne(*bound, static_cast<uint32_t>(i % 3)).ok());
  }
  EXPECT_EQ(descriptors(), before);
}

TEST_F(RknnrtDeviceTest, OneWorkerForAllModels) {
  Open("2_3_2",
       [](DeviceOptions& options) { options.library.one_for_all = true; });
  std::vector<std::unique_ptr<driver::Model>> models;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        Load(AddOne(), std::string(64, static_cast<char>('a' + i))).ok());
    auto bound = Bind();
    ASSERT_TRUE(RunOne(*bound).ok());
    models.push_back(std::move(model_));
  }
  models.clear();
  EXPECT_TRUE(Try().ok());
}

TEST_F(RknnrtDeviceTest, EveryVersionRuns) {
  for (const std::string version : {"1_4_0", "1_5_2", "2_3_2"}) {
    SCOPED_TRACE(version);
    Open(version);
    EXPECT_TRUE(Try().ok()) << Try();
    model_.reset();
    device_.reset();
  }
}

TEST_F(RknnrtDeviceTest, TheOlderStructureOfAttributes) {
  const Trouble trouble("older=1");
  Open("1_4_0");
  EXPECT_TRUE(Try().ok());
}

TEST_F(RknnrtDeviceTest, LibrariesThatCannotBeUsed) {
  const auto why = [&](const std::string& version) {
    OpenWith(testing::HostedStandin(RKNND_BINARY_ROOT, version));
    return std::string(why_.message());
  };
  EXPECT_THAT(why("0_0_0"), HasSubstr("it has no function rknn_init"));
  EXPECT_THAT(why("9_9_9"), HasSubstr("open the vendor's library"));
  DeviceOptions own = testing::HostedStandin(RKNND_BINARY_ROOT);
  own.library.path = RKNND_BINARY_ROOT "/lib/librknnrt.so";
  OpenWith(own);
  EXPECT_THAT(std::string(why_.message()),
              HasSubstr("it is rknnd's own librknnrt.so"));
  // The version is told with the first model.
  Open("1_3_0");
  EXPECT_THAT(std::string(Load().message()),
              HasSubstr("is version 1.3.0 (standin): 1.4 or later is needed"));
}

TEST_F(RknnrtDeviceTest, NobodyInsistsOnItWithAuto) {
  DeviceOptions options = testing::HostedStandin(RKNND_BINARY_ROOT, "0_0_0");
  options.kind = "auto";
  OpenWith(options);

  ASSERT_TRUE(why_.ok()) << why_;
  EXPECT_THAT(Log(), HasSubstr("no model runs on the vendor's library"));
  EXPECT_FALSE(Load().ok());
}

TEST_F(RknnrtDeviceTest, AProgramThatIsNoWorker) {
  DeviceOptions options = testing::HostedStandin(RKNND_BINARY_ROOT);
  for (const std::string bytes : {"1", "528", "4000"}) {
    options.library.worker = {RKNND_BINARY_ROOT "/bin/tests/rknnrt_worker",
                              bytes};
    OpenWith(options);
    EXPECT_FALSE(why_.ok()) << bytes;
  }
  options.library.worker = {"/bin/true"};
  OpenWith(options);
  EXPECT_THAT(std::string(why_.message()), HasSubstr("ended"));
  options.library.worker = {"/no/such/program"};
  OpenWith(options);
  EXPECT_FALSE(why_.ok());
}

TEST_F(RknnrtDeviceTest, ACrashCostsNoJob) {
  for (const std::string what : {"crash_run=3", "crash_answer=3"}) {
    SCOPED_TRACE(what);
    const Trouble trouble(what);
    Open();
    ASSERT_TRUE(Load().ok());
    auto bound = Bind();
    // Each worker has two good runs in it.
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(RunOne(*bound, 0, static_cast<float>(i)).ok()) << i;
    }
    EXPECT_THAT(device_->quarantined(), IsEmpty());
    EXPECT_THAT(Log(), HasSubstr("ended: signal 11 (Segmentation fault); the "
                                 "model is loaded again in another one"));
    bound.reset();
    model_.reset();
    device_.reset();
  }
}

TEST_F(RknnrtDeviceTest, AHangIsEndedAndTheJobRunAgain) {
  const Trouble trouble("hang_run=2");
  Open("2_3_2", [](DeviceOptions& options) {
    options.library.job_limit = 300 * base::kMillisecond;
  });
  ASSERT_TRUE(Load().ok());
  auto bound = Bind();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(RunOne(*bound).ok()) << i;
  EXPECT_THAT(Log(), HasSubstr("a job did not end within 300 ms"));
}

TEST_F(RknnrtDeviceTest, AModelThatEndsEveryWorkerGoesToQuarantine) {
  const Trouble trouble("crash_run=1");
  Open();
  ASSERT_TRUE(Load().ok());
  auto bound = Bind();

  const absl::Status first = RunOne(*bound);
  const absl::Status second = RunOne(*bound);

  EXPECT_THAT(std::string(first.message()),
              AllOf(HasSubstr("signal 11"),
                    HasSubstr("it was run 2 times, each in another worker")));
  EXPECT_THAT(std::string(second.message()), HasSubstr("is in quarantine"));
  ASSERT_THAT(device_->quarantined(), SizeIs(1));
  EXPECT_EQ(device_->quarantined()[0].name, "add.rknn");
  // Whoever loads the same bytes hears it too.
  EXPECT_THAT(std::string(Load().message()), HasSubstr("is in quarantine"));
}

TEST_F(RknnrtDeviceTest, ReleasedItTriesAgain) {
  {
    const Trouble trouble("crash_init=1");
    Open("2_3_2",
         [](DeviceOptions& options) { options.library.most_deaths = 1; });
    EXPECT_THAT(std::string(Load().message()), HasSubstr("quarantine"));
  }
  EXPECT_FALSE(Load().ok());

  EXPECT_TRUE(device_->EndQuarantine("aaaaaaaa").ok());

  EXPECT_TRUE(Try().ok());
}

TEST_F(RknnrtDeviceTest, ACrashInInitIsTriedAgainAndGivenUp) {
  const Trouble trouble("crash_init=1");
  Open();
  EXPECT_THAT(std::string(Load().message()),
              AllOf(HasSubstr("it ended 3 workers"), HasSubstr("signal 11")));
}

TEST_F(RknnrtDeviceTest, AHangInInitIsEnded) {
  const Trouble trouble("hang_init=1");
  const DeviceOptions standin = testing::HostedStandin(RKNND_BINARY_ROOT);
  PoolOptions options;
  options.setup.command = standin.library.worker;
  options.setup.library = *CheckLibraryFile(standin.library.path);
  options.setup.load_limit = 200 * base::kMillisecond;
  const base::MonotonicClock clock;
  const auto hosted = RknnrtDevice::Open(options, clock);
  ASSERT_TRUE(hosted.ok()) << hosted.status();
  const std::vector<std::byte> file = testing::Wrap(AddOne());

  const auto model = (*hosted)->Load(
      {.bytes = file, .options = "", .name = "m", .sha256 = "aa"}, "");

  EXPECT_THAT(std::string(model.status().message()),
              AllOf(HasSubstr("it ended 3 workers"),
                    HasSubstr("it did not answer within 0.2 s")));
}

TEST_F(RknnrtDeviceTest, ErrorsAreTheLibrarysOwn) {
  for (int code = 1; code <= 14; ++code) {
    const Trouble trouble("error_run=" + std::to_string(code));
    Open();
    ASSERT_TRUE(Load().ok());
    auto bound = Bind();
    const absl::Status status = RunOne(*bound);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rknn_run of the vendor's library gives -" +
                          std::to_string(code)));
    // No worker ends of it.
    EXPECT_FALSE(absl::IsAborted(status)) << code;
    EXPECT_THAT(device_->quarantined(), IsEmpty());
    bound.reset();
    model_.reset();
  }
  const Trouble trouble("error_init=6");
  Open();
  EXPECT_THAT(std::string(Load().message()),
              HasSubstr("gives -6 (RKNN_ERR_MODEL_INVALID)"));
}

#if !defined(__SANITIZE_ADDRESS__)
TEST_F(RknnrtDeviceTest, AModelThatTakesAllMemoryIsAnError) {
  const Trouble trouble("bomb=1");
  Open();
  const absl::Status status = Load();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("gives -4 (RKNN_ERR_MALLOC_FAIL)"));
}
#endif

TEST_F(RknnrtDeviceTest, WhatItIsNotToDoIsRefusedAndFailsTheJob) {
  if (!testing::CanFilterCalls()) {
    GTEST_SKIP() << "this kernel has no filters with a listener";
  }
  for (const auto& [what, named] :
       std::vector<std::pair<std::string, std::string>>{
           {"socket=1", "called socket"},
           {"file=1", "called open '/etc/passwd'"}}) {
    const Trouble trouble(what);
    Open();
    ASSERT_TRUE(Load().ok());
    auto bound = Bind();

    const absl::Status status = RunOne(*bound);

    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(named));
    ExpectLogged("refused by the worker's filter of system calls");
    bound.reset();
    model_.reset();
  }
}

TEST_F(RknnrtDeviceTest, NoiseGoesToTheLogAndNotAllOfIt) {
  const Trouble trouble("noise=200");
  Open();
  ASSERT_TRUE(Load().ok());
  auto bound = Bind();
  ASSERT_TRUE(RunOne(*bound).ok());

  ExpectLogged("of a long story");
  const std::string log = Log();
  int lines = 0;
  for (size_t at = 0;
       (at = log.find("of a long story", at)) != std::string::npos; ++at) {
    ++lines;
  }
  EXPECT_LE(lines, 60);
}

TEST_F(RknnrtDeviceTest, HabitsOfLibrariesDoNoHarm) {
  for (const std::string what :
       {"nice=1", "thread=1", "crash_destroy=1", "crash_exit=1", "use_freed=1",
        "leak_memory=1", "leak_fd=1", "slow_init=200"}) {
    SCOPED_TRACE(what);
    const Trouble trouble(what);
    Open();
    EXPECT_TRUE(Try().ok());
    auto bound = Bind();
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(RunOne(*bound).ok());
    bound.reset();
    model_.reset();
  }
  EXPECT_THAT(Log(), HasSubstr("nice value"));
}

TEST_F(RknnrtDeviceTest, ALibraryThatIsReplacedIsLookedAtAgain) {
  const base::TemporaryFolder folder = *base::TemporaryFolder::Make();
  const std::string path = folder.path() + "/vendor.so";
  std::filesystem::copy_file(
      RKNND_BINARY_ROOT "/lib/librknnrt_standin_2_3_2.so", path);
  // What answers in its place.
  for (const char* name : {"librknnrt.so", "rknnd", "librknnd-local.so"}) {
    std::filesystem::create_symlink(
        std::string(RKNND_BINARY_ROOT "/lib/") + name,
        folder.path() + "/" + name);
  }
  DeviceOptions options = testing::HostedStandin(RKNND_BINARY_ROOT);
  options.library.path = path;
  const Trouble trouble("crash_run=2");
  OpenWith(options);
  ASSERT_TRUE(why_.ok()) << why_;
  ASSERT_TRUE(Load().ok());
  auto bound = Bind();
  ASSERT_TRUE(RunOne(*bound).ok());
  std::filesystem::copy_file(
      RKNND_BINARY_ROOT "/lib/librknnrt_standin_1_5_2.so", path + ".new");
  std::filesystem::rename(path + ".new", path);

  EXPECT_TRUE(RunOne(*bound).ok());

  EXPECT_THAT(Log(), HasSubstr("was replaced"));
  // One that anybody may write to is not loaded any more.
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_THAT(std::string(RunOne(*bound).message()),
              HasSubstr("others than its owner may write"));
}

// Jobs of all cores at once, workers that end or hang at any moment of them,
// and no job that is lost, wrong or fails.
TEST_F(RknnrtDeviceTest, NoJobIsLostWhereWorkersEndAtRandom) {
  const Trouble trouble("random=24");
  Open("2_3_2", [](DeviceOptions& options) {
    options.library.job_limit = 500 * base::kMillisecond;
  });
  ASSERT_TRUE(Load().ok());
  std::vector<std::thread> cores;
  std::atomic<int> done{0};
  for (uint32_t core = 0; core < 3; ++core) {
    cores.emplace_back([&, core] {
      auto bound = Bind();
      for (int i = 0; i < 60; ++i) {
        const absl::Status status = RunOne(*bound, core, static_cast<float>(i));
        EXPECT_TRUE(status.ok()) << status;
        done += status.ok() ? 1 : 0;
      }
    });
  }
  for (std::thread& core : cores) core.join();
  EXPECT_EQ(done.load(), 180);
  EXPECT_THAT(Log(), HasSubstr("is loaded again"));
}

}  // namespace
}  // namespace rknnd::rknnrt
