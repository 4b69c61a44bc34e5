// Tests of what goes wrong with jobs and models, with a clock that stands
// still: jobs that wait end when the test says so.

#include "driver/faults/faulty_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "driver/faults/testing/plain_device.h"

namespace rknnd::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::PlainDevice;

constexpr base::Nanoseconds kMs = base::kMillisecond;

class Listener final : public JobListener {
 public:
  void OnJobDone(JobResult done) override {
    ++calls;
    result = std::move(done);
  }
  [[nodiscard]] absl::StatusCode code() const { return result.status.code(); }
  [[nodiscard]] std::string text() const {
    return std::string(result.status.message());
  }

  int calls = 0;
  JobResult result;
};

// Fails its test when a job ends twice.
class Promise final : public JobListener {
 public:
  void OnJobDone(JobResult done) override { ended.set_value(done.status); }
  std::promise<absl::Status> ended;
};

// May be used from several threads; sees a core that has two jobs.
class ThreadedDevice final : public Device {
 public:
  explicit ThreadedDevice(uint32_t cores) : busy_(cores) {
    info_.cores = cores;
  }
  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Model>> Load(
      const LoadRequest& /*request*/) override {
    return std::make_unique<testing::PlainModel>(ModelInfo());
  }
  absl::StatusOr<std::unique_ptr<Memory>> Attach(
      const MemoryRef& /*memory*/, MemoryAccess /*access*/) override {
    return absl::UnimplementedError("no memory");
  }
  void Submit(const JobRequest& job) override {
    if (busy_[job.core].exchange(true)) ++busy_twice;
    const base::Nanoseconds now = clock_.Now();
    busy_[job.core] = false;
    job.listener->OnJobDone({absl::OkStatus(), now, clock_.Now()});
  }
  std::atomic<int> busy_twice{0};

 private:
  const base::MonotonicClock clock_{};
  DeviceInfo info_;
  std::vector<std::atomic<bool>> busy_;
};

class FaultyDeviceTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kCores = 3;

  FaultyDeviceTest() { model_ = Load("abc", "face.onnx"); }

  std::unique_ptr<Model> Load(const std::string& bytes,
                              const std::string& name) {
    auto loaded = device_.Load(
        {std::as_bytes(std::span(bytes.data(), bytes.size())), "", name});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : nullptr;
  }

  uint64_t Set(const Fault& fault) {
    const auto set = device_.faults().Set(fault);
    EXPECT_TRUE(set.ok()) << set.status();
    return set.ok() ? set->id : 0;
  }
  void Clear(uint64_t id) {
    EXPECT_TRUE(device_.faults().Clear(id).ok());
    device_.RunDue();
  }
  void Advance(base::Nanoseconds time) {
    clock_.Advance(time);
    device_.RunDue();
  }
  void Submit(Listener& listener, uint32_t core = 0,
              const Model* model = nullptr) {
    JobRequest job;
    job.model = model == nullptr ? model_.get() : model;
    job.core = core;
    job.core_mask = 1U << core;
    job.listener = &listener;
    device_.Submit(job);
  }
  Listener Run(uint32_t core = 0, const Model* model = nullptr) {
    Listener listener;
    Submit(listener, core, model);
    EXPECT_EQ(listener.calls, 1);
    return listener;
  }

  base::FakeClock clock_;
  PlainDevice plain_{kCores, &clock_};
  FaultyDevice device_{{&plain_, &clock_}};
  std::unique_ptr<Model> model_;
};

TEST_F(FaultyDeviceTest, WithoutAFaultJobsPass) {
  plain_.run_time = 3 * kMs;
  const Listener done = Run();
  EXPECT_EQ(done.result.status, absl::OkStatus());
  EXPECT_EQ(done.result.ended - done.result.started, 3 * kMs);
}

// ---- slow -------------------------------------------------------------------

TEST_F(FaultyDeviceTest, SlowJobEndsSoMuchLater) {
  Set({.kind = FaultKind::kSlow, .ms = 20});
  Listener job;
  Submit(job);
  EXPECT_EQ(job.calls, 0);
  Advance(19 * kMs);
  EXPECT_EQ(job.calls, 0);
  Advance(kMs);
  ASSERT_EQ(job.calls, 1);
  EXPECT_EQ(job.result.status, absl::OkStatus());
  EXPECT_EQ(job.result.ended - job.result.started, 20 * kMs);
}

TEST_F(FaultyDeviceTest, SlowJobTakesSoManyTimesAsLong) {
  plain_.run_time = 10 * kMs;
  Set({.kind = FaultKind::kSlow, .factor = 3});
  Listener job;
  Submit(job);
  Advance(19 * kMs);
  EXPECT_EQ(job.calls, 0);
  Advance(kMs);
  ASSERT_EQ(job.calls, 1);
  EXPECT_EQ(job.result.ended - job.result.started, 30 * kMs);
}

TEST_F(FaultyDeviceTest, ClearingLetsALateJobGo) {
  const uint64_t id = Set({.kind = FaultKind::kSlow, .ms = 1000});
  Listener job;
  Submit(job);
  Clear(id);
  ASSERT_EQ(job.calls, 1);
  EXPECT_EQ(job.result.status, absl::OkStatus());
}

// ---- hang -------------------------------------------------------------------

TEST_F(FaultyDeviceTest, HangingJobDoesNotRunUntilCleared) {
  const uint64_t id = Set({.kind = FaultKind::kHang});
  Listener job;
  Submit(job);
  Advance(5 * base::kSecond);
  EXPECT_EQ(job.calls, 0);
  EXPECT_EQ(plain_.runs, 0U);
  Clear(id);
  ASSERT_EQ(job.calls, 1);
  EXPECT_EQ(job.result.status, absl::OkStatus());
  EXPECT_EQ(plain_.runs, 1U);
  EXPECT_EQ(job.result.ended - job.result.started, 5 * base::kSecond);
}

TEST_F(FaultyDeviceTest, HangWithAnEndIsALateJob) {
  Set({.kind = FaultKind::kHang, .ms = 40});
  Listener job;
  Submit(job);
  Advance(39 * kMs);
  EXPECT_EQ(job.calls, 0);
  Advance(kMs);
  ASSERT_EQ(job.calls, 1);
  EXPECT_EQ(job.result.status, absl::OkStatus());
}

TEST_F(FaultyDeviceTest, DriverGivesUpAndFailsTheJobsOfAllCoresOnce) {
  Set({.kind = FaultKind::kHang, .core = 1, .times = 1});
  plain_.hold = true;
  Listener hung, running, later;
  Submit(hung, 1);
  Submit(running, 0);
  Advance(kDriverGiveUp - 1);
  EXPECT_EQ(hung.calls, 0);
  Advance(1);
  ASSERT_EQ(hung.calls, 1);
  EXPECT_EQ(hung.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(hung.text(), HasSubstr("6000 ms"));
  // It is still on its core; what it brings is worth nothing.
  EXPECT_EQ(running.calls, 0);
  plain_.Release();
  ASSERT_EQ(running.calls, 1);
  EXPECT_EQ(running.code(), absl::StatusCode::kAborted);
  // Once.
  Submit(later, 0);
  plain_.Release();
  EXPECT_EQ(later.result.status, absl::OkStatus());
  plain_.hold = false;
  EXPECT_EQ(Run(1).result.status, absl::OkStatus());
}

TEST_F(FaultyDeviceTest, ResetEndsWhatHangsAndIsDoneWhenTheRestIsBack) {
  Set({.kind = FaultKind::kHang, .core = 1, .times = 1});
  plain_.hold = true;
  Listener hung, running, later;
  Submit(hung, 1);
  Submit(running, 0);
  std::vector<absl::Status> done;
  device_.Reset([&](absl::Status status) { done.push_back(status); });

  ASSERT_EQ(hung.calls, 1);
  EXPECT_EQ(hung.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(done, IsEmpty());
  plain_.Release();
  EXPECT_EQ(running.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(done, ElementsAre(absl::OkStatus()));
  EXPECT_EQ(device_.resets(), 1U);

  Submit(later, 1);
  plain_.Release();
  EXPECT_EQ(later.result.status, absl::OkStatus());
  // With nothing in flight at once.
  device_.Reset([&](absl::Status status) { done.push_back(status); });
  EXPECT_EQ(done.size(), 2U);
}

TEST_F(FaultyDeviceTest, ResetsOfTheDriverCountToo) {
  Set({.kind = FaultKind::kHang, .times = 1});
  Listener hung;
  Submit(hung);
  Advance(kDriverGiveUp);
  EXPECT_EQ(hung.calls, 1);
  EXPECT_EQ(device_.resets(), 1U);
}

TEST_F(FaultyDeviceTest, DeviceWithoutAResetSaysSo) {
  std::vector<absl::Status> done;
  plain_.Reset([&](absl::Status status) { done.push_back(status); });
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].code(), absl::StatusCode::kUnimplemented);
}

TEST_F(FaultyDeviceTest, OtherCoresGoOnWhileOneHangs) {
  const uint64_t id = Set({.kind = FaultKind::kHang, .core = 2});
  Listener hung;
  Submit(hung, 2);
  EXPECT_EQ(Run(0).result.status, absl::OkStatus());
  EXPECT_EQ(Run(1).result.status, absl::OkStatus());
  EXPECT_EQ(hung.calls, 0);
  Clear(id);
}

TEST_F(FaultyDeviceTest, StopReleasesWhatWaits) {
  Set({.kind = FaultKind::kHang, .core = 0});
  Set({.kind = FaultKind::kSlow, .core = 1, .ms = 1000});
  Listener hung, late;
  Submit(hung, 0);
  Submit(late, 1);
  device_.Stop();
  ASSERT_EQ(hung.calls, 1);
  EXPECT_EQ(hung.code(), absl::StatusCode::kUnavailable);
  ASSERT_EQ(late.calls, 1);
  EXPECT_EQ(late.result.status, absl::OkStatus());
}

TEST_F(FaultyDeviceTest, ItsThreadEndsLateJobsByItself) {
  const base::MonotonicClock clock;
  FaultyDevice device({&plain_, &clock});
  ASSERT_TRUE(device.Start().ok());
  Fault slow{.kind = FaultKind::kSlow};
  slow.ms = 1;
  ASSERT_TRUE(device.faults().Set(slow).ok());
  Promise listener;
  JobRequest job;
  job.model = model_.get();
  job.listener = &listener;
  device.Submit(job);
  EXPECT_EQ(listener.ended.get_future().get(), absl::OkStatus());
}

TEST_F(FaultyDeviceTest, EndOfADeviceReleasesWhatWaitsOnce) {
  const base::MonotonicClock clock;
  Promise hung, late;
  {
    FaultyDevice device({&plain_, &clock, 0});
    ASSERT_TRUE(device.Start().ok());
    for (const Fault& fault :
         {Fault{.kind = FaultKind::kHang, .core = 0},
          Fault{.kind = FaultKind::kSlow, .core = 1, .ms = 3'600'000}}) {
      ASSERT_TRUE(device.faults().Set(fault).ok());
    }
    JobRequest job;
    job.model = model_.get();
    job.listener = &hung;
    device.Submit(job);
    job.core = 1;
    job.core_mask = 2;
    job.listener = &late;
    device.Submit(job);
  }
  EXPECT_EQ(hung.ended.get_future().get().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(late.ended.get_future().get(), absl::OkStatus());
}

// Everything at once from many threads; each job ends once.
TEST_F(FaultyDeviceTest, ThreadsOnAllCoresGetOneAnswerForEachJob) {
  constexpr int kJobs = 400;
  const base::MonotonicClock clock;
  ThreadedDevice threaded(kCores);
  FaultyDevice device({&threaded, &clock, 2 * kMs});
  ASSERT_TRUE(device.Start().ok());
  const auto model = device.Load({{}, "", "m"});
  ASSERT_TRUE(model.ok());
  std::vector<std::thread> threads;
  for (uint32_t core = 0; core < kCores; ++core) {
    threads.emplace_back([&, core] {
      for (int i = 0; i < kJobs; ++i) {
        Promise listener;
        JobRequest job;
        job.model = model->get();
        job.core = core;
        job.core_mask = 1U << core;
        job.listener = &listener;
        device.Submit(job);
        listener.ended.get_future().wait();
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(
        device.faults().Set({.kind = FaultKind::kHang, .every = 5}).ok());
    ASSERT_TRUE(device.faults()
                    .Set({.kind = FaultKind::kSlow, .core = 1, .factor = 2})
                    .ok());
    ASSERT_TRUE(device.faults()
                    .Set({.kind = FaultKind::kCrash, .every = 40, .ms = 1})
                    .ok());
    std::this_thread::yield();
    ASSERT_TRUE(device.faults().Clear(0).ok());
  }
  ASSERT_TRUE(device.faults().Set({.kind = FaultKind::kHang, .every = 9}).ok());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(threaded.busy_twice, 0);
}

// ---- errors -----------------------------------------------------------------

TEST_F(FaultyDeviceTest, WrongStatusFailsAJobThatRan) {
  Set({.kind = FaultKind::kWrongStatus, .status = 0x2a});
  const Listener job = Run();
  EXPECT_EQ(job.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(job.text(), HasSubstr("status 0x2a (fault 1 on demand)"));
  EXPECT_EQ(plain_.runs, 1U);
}

TEST_F(FaultyDeviceTest, StatusZeroPraisesAJobThatNeverRan) {
  Set({.kind = FaultKind::kWrongStatus, .status = 0});
  EXPECT_EQ(Run().result.status, absl::OkStatus());
  EXPECT_EQ(plain_.runs, 0U);
}

TEST_F(FaultyDeviceTest, DeadCoreFailsItsJobsAndNoOthers) {
  const uint64_t id = Set({.kind = FaultKind::kDeadCore, .core = 1});
  EXPECT_EQ(Run(1).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Run(1).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Run(0).result.status, absl::OkStatus());
  Clear(id);
  EXPECT_EQ(Run(1).result.status, absl::OkStatus());
}

TEST_F(FaultyDeviceTest, GangWithADeadCoreFails) {
  Set({.kind = FaultKind::kDeadCore, .core = 1});
  Listener gang;
  JobRequest job;
  job.model = model_.get();
  job.core_mask = 0b011;
  job.listener = &gang;
  device_.Submit(job);
  EXPECT_EQ(gang.code(), absl::StatusCode::kInternal);
}

TEST_F(FaultyDeviceTest, CrashFailsAllThatIsInFlightUntilTheRestart) {
  Set({.kind = FaultKind::kHang, .core = 0});
  Set({.kind = FaultKind::kCrash, .core = 2, .times = 1, .ms = 100});
  plain_.hold = true;
  Listener hung, running, crashing;
  Submit(hung, 0);
  Submit(running, 1);
  Submit(crashing, 2);
  ASSERT_EQ(hung.calls, 1);
  EXPECT_EQ(hung.code(), absl::StatusCode::kUnavailable);
  ASSERT_EQ(crashing.calls, 1);
  EXPECT_EQ(crashing.code(), absl::StatusCode::kUnavailable);
  plain_.Release();
  EXPECT_EQ(running.code(), absl::StatusCode::kUnavailable);
  plain_.hold = false;

  Advance(99 * kMs);
  EXPECT_EQ(Run(1).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device_.Attach({0, 0, 4096}, MemoryAccess::kRead).status().code(),
            absl::StatusCode::kUnavailable);
  Advance(kMs);
  EXPECT_EQ(Run(1).result.status, absl::OkStatus());
  EXPECT_EQ(Run(2).result.status, absl::OkStatus());
}

TEST_F(FaultyDeviceTest, CrashWithoutAnEndLastsUntilCleared) {
  const uint64_t id = Set({.kind = FaultKind::kCrash});
  EXPECT_EQ(Run().code(), absl::StatusCode::kUnavailable);
  Advance(3600 * base::kSecond);
  EXPECT_EQ(Run().code(), absl::StatusCode::kUnavailable);
  Clear(id);
  EXPECT_EQ(Run().result.status, absl::OkStatus());
}

// ---- which jobs -------------------------------------------------------------

TEST_F(FaultyDeviceTest, AfterEveryAndTimesChooseTheJobs) {
  Set({.kind = FaultKind::kWrongStatus,
       .after = 2,
       .every = 3,
       .times = 2,
       .status = 1});
  std::string hit;
  for (int i = 0; i < 14; ++i) hit += Run().result.status.ok() ? '.' : 'x';
  EXPECT_EQ(hit, "....x..x......");
  const std::vector<FaultReport> faults = device_.faults().List();
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].matched, 14U);
  EXPECT_EQ(faults[0].fired, 2U);
}

TEST_F(FaultyDeviceTest, NumbersBeyondAllJobsHitNone) {
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  Set({.kind = FaultKind::kWrongStatus, .after = kHuge, .status = 1});
  Set({.kind = FaultKind::kWrongStatus,
       .after = 1,
       .every = kHuge,
       .times = kHuge,
       .status = 1});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Run().result.status, absl::OkStatus());
}

TEST_F(FaultyDeviceTest, ModelIsFoundByFileGraphOrHash) {
  const std::unique_ptr<Model> other = Load("xyz", "other.onnx");
  const auto fails = [this](const std::string& name, const Model* model) {
    const uint64_t id =
        Set({.kind = FaultKind::kWrongStatus, .model = name, .status = 1});
    const bool failed = !Run(0, model).result.status.ok();
    Clear(id);
    return failed;
  };
  EXPECT_TRUE(fails("face.onnx", model_.get()));
  EXPECT_FALSE(fails("face.onnx", other.get()));
  EXPECT_TRUE(fails("graph", model_.get()));
  // SHA-256 of "abc".
  EXPECT_TRUE(fails("BA7816BF8f01", model_.get()));
  EXPECT_FALSE(fails("ba7816bf8f01", other.get()));
  EXPECT_FALSE(fails("ba78", model_.get()));
}

TEST_F(FaultyDeviceTest, ModelWithoutItsBytesIsFoundByTheHashItCameWith) {
  LoadRequest request;
  request.name = "restored.onnx";
  request.sha256 = "c0ffee00" + std::string(56, '1');
  const auto restored = device_.Load(request);
  ASSERT_TRUE(restored.ok()) << restored.status();
  Set({.kind = FaultKind::kWrongStatus, .model = "C0FFEE00", .status = 1});

  EXPECT_FALSE(Run(0, restored->get()).result.status.ok());
  EXPECT_TRUE(Run().result.status.ok());
}

TEST_F(FaultyDeviceTest, SeveralFaultsAtOnceAllHold) {
  Set({.kind = FaultKind::kSlow, .ms = 10});
  Set({.kind = FaultKind::kHang, .ms = 5});
  Listener job;
  Submit(job);
  Advance(5 * kMs);
  EXPECT_EQ(plain_.runs, 1U);
  EXPECT_EQ(job.calls, 0);
  Advance(10 * kMs);
  EXPECT_EQ(job.calls, 1);
}

// ---- memory, clock, the plan ------------------------------------------------

TEST_F(FaultyDeviceTest, OutOfMemoryRefusesMemoryAboveASize) {
  const uint64_t id = Set({.kind = FaultKind::kOutOfMemory, .bytes = 4096});
  const base::UniqueFd fd = *base::MakeMemfd("test", 8192);
  const auto attach = [&](uint64_t bytes) {
    return device_.Attach({fd.get(), 0, bytes}, MemoryAccess::kReadWrite)
        .status()
        .code();
  };
  EXPECT_EQ(attach(4096), absl::StatusCode::kOk);
  EXPECT_EQ(attach(8192), absl::StatusCode::kResourceExhausted);
  Clear(id);
  EXPECT_EQ(attach(8192), absl::StatusCode::kOk);
}

TEST_F(FaultyDeviceTest, OutOfMemoryRefusesAModelSoManyTimes) {
  Set({.kind = FaultKind::kOutOfMemory, .model = "big.onnx", .times = 1});
  const std::string bytes = "12345";
  const auto load = [&](const std::string& name) {
    return device_
        .Load({std::as_bytes(std::span(bytes.data(), bytes.size())), "", name})
        .status()
        .code();
  };
  EXPECT_EQ(load("small.onnx"), absl::StatusCode::kOk);
  EXPECT_EQ(load("big.onnx"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(load("big.onnx"), absl::StatusCode::kOk);
}

TEST_F(FaultyDeviceTest, ThrottleLowersTheClockUntilCleared) {
  plain_.has_clock = true;
  FaultyDevice device({&plain_, &clock_});
  const auto set =
      device.faults().Set({.kind = FaultKind::kThrottle, .factor = 4});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(plain_.clock_fraction, 0.25);
  ASSERT_TRUE(device.faults().Clear(set->id).ok());
  EXPECT_EQ(plain_.clock_fraction, 1);
}

TEST_F(FaultyDeviceTest, ThrottleOfADeviceWithoutAClockIsRefused) {
  const auto set =
      device_.faults().Set({.kind = FaultKind::kThrottle, .factor = 2});
  EXPECT_EQ(set.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(device_.faults().List().empty());
}

TEST_F(FaultyDeviceTest, ChangesAreTold) {
  std::string told;
  device_.set_changed([&told](const FaultReport& fault, bool set) {
    told += (set ? "+" : "-") + std::to_string(fault.id);
  });
  Set({.kind = FaultKind::kHang});
  Set({.kind = FaultKind::kDeadCore});
  Clear(1);
  Clear(0);
  EXPECT_EQ(told, "+1+2-1-2");
}

TEST_F(FaultyDeviceTest, ClearingWhatIsNotSetIsAnError) {
  EXPECT_EQ(device_.faults().Clear(7).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(device_.faults().Clear(0).ok());
}

}  // namespace
}  // namespace rknnd::driver
