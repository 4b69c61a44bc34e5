// Jobs of several cores: the same answers as on one, no allocation, no thread
// left awake; and the threads underneath by themselves.

#include "driver/soft/gang.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/allocations.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::TensorType;
using testing::BoundModel;
using ::testing::HasSubstr;
using testing::OnnxBuilder;

TEST(GangTest, EveryPartIsDoneOnceWithItsCoresScratch) {
  CoreThread one(1);
  CoreThread two(2);
  std::array<std::byte, 3> scratch{};
  Gang gang(scratch.data());
  gang.Join(&one, scratch.data() + 1);
  gang.Join(&two, scratch.data() + 2);
  for (int round = 0; round < 2000; ++round) {
    std::array<std::atomic<int>, 3> done{};
    const absl::Status status =
        gang.Share(3, [&](Part part, std::byte* own) -> absl::Status {
          EXPECT_EQ(part.count, 3U);
          EXPECT_EQ(own, scratch.data() + part.index);
          ++done[part.index];
          return absl::OkStatus();
        });
    ASSERT_TRUE(status.ok());
    for (const auto& count : done) ASSERT_EQ(count, 1);
  }
}

TEST(GangTest, FewerPartsThanCoresLeaveTheLastAlone) {
  CoreThread one(1);
  CoreThread two(2);
  Gang gang(nullptr);
  gang.Join(&one, nullptr);
  gang.Join(&two, nullptr);
  std::atomic<int> parts{0};
  ASSERT_TRUE(gang.Share(2,
                         [&](Part part, std::byte*) {
                           EXPECT_LT(part.index, 2U);
                           ++parts;
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_EQ(parts, 2);
}

TEST(GangTest, ErrorOrExceptionOfAnyPartIsTheAnswer) {
  CoreThread one(1);
  Gang gang(nullptr);
  gang.Join(&one, nullptr);
  for (const uint32_t bad : {0U, 1U}) {
    EXPECT_EQ(gang.Share(2,
                         [&](Part part, std::byte*) -> absl::Status {
                           return part.index == bad
                                      ? absl::DataLossError("gone")
                                      : absl::OkStatus();
                         }),
              absl::DataLossError("gone"));
    EXPECT_EQ(gang.Share(2,
                         [&](Part part, std::byte*) -> absl::Status {
                           if (part.index == bad) {
                             throw std::runtime_error("broken");
                           }
                           return absl::OkStatus();
                         }),
              absl::InternalError("broken"));
  }
  EXPECT_TRUE(
      gang.Share(2, [](Part, std::byte*) { return absl::OkStatus(); }).ok());
}

// Until all threads of this process but the calling one sleep in the kernel;
// false when they never did. Threads of gangs sleep only when they are parked.
bool OthersFellAsleep() {
  const base::MonotonicClock clock;
  const base::Nanoseconds deadline = clock.Now() + 60 * base::kSecond;
  const std::string self = std::to_string(gettid());
  while (clock.Now() < deadline) {
    bool all = true;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/self/task")) {
      if (task.path().filename() == self) continue;
      std::ifstream file(task.path() / "stat");
      const std::string stat{std::istreambuf_iterator<char>(file), {}};
      const size_t name_end = stat.rfind(") ");
      all = all && name_end != std::string::npos && stat[name_end + 2] == 'S';
    }
    if (all) return true;
    sched_yield();
  }
  return false;
}

TEST(GangTest, SleepingEndsAreWoken) {
  CoreThread one(1);
  Gang gang(nullptr);
  gang.Join(&one, nullptr);
  for (uint32_t round = 0; round < 40; ++round) {
    if (round % 4 == 0) {
      EXPECT_TRUE(OthersFellAsleep());
    }
    if (round % 3 == 0) gang.Rouse();
    ASSERT_TRUE(gang.Share(2,
                           [&](Part part, std::byte*) {
                             // One of the two is waited for until that one
                             // sleeps.
                             if (part.index == round % 2) {
                               EXPECT_TRUE(OthersFellAsleep());
                             }
                             return absl::OkStatus();
                           })
                    .ok());
  }
}

// How often each thread called rknnd-core... has gone to sleep.
std::map<std::string, std::string> Switches() {
  std::map<std::string, std::string> switches;
  DIR* folder = opendir("/proc/self/task");
  for (const dirent* entry = readdir(folder); entry != nullptr;
       entry = readdir(folder)) {  // NOLINT: one thread
    std::ifstream file(std::string("/proc/self/task/") + entry->d_name +
                       "/status");
    std::string line;
    std::string name;
    while (std::getline(file, line)) {
      if (line.rfind("Name:", 0) == 0) name = line;
      if (line.rfind("voluntary_ctxt_switches", 0) == 0 &&
          name.find("rknnd-core") != std::string::npos) {
        switches[name + entry->d_name] = line;
      }
    }
  }
  closedir(folder);
  return switches;
}

class GangDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
    device_->EnterWorker();
  }

  // Convolutions of all kinds, a sum, a Concat, and layers that are not shared.
  static OnnxBuilder Network() {
    const auto weights = [](size_t count) {
      std::vector<float> values(count);
      for (size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(i * 7 % 13) / 50 - 0.12F;
      }
      return values;
    };
    OnnxBuilder builder;
    builder.Input("x", {1, 3, 64, 48})
        .Floats("w1", {16, 3, 3, 3}, weights(size_t{16} * 27))
        .Floats("w2", {64, 16, 1, 1}, weights(size_t{64} * 16))
        .Floats("w3", {64, 1, 3, 3}, weights(size_t{64} * 9))
        .Floats("w4", {48, 64, 3, 3}, weights(size_t{48} * 64 * 9))
        .Node("Conv", {"x", "w1"}, {"a"}, "first")
        .Ints("pads", {1, 1, 1, 1})
        .Node("Relu", {"a"}, {"b"})
        .Node("Conv", {"b", "w2"}, {"c"}, "pointwise")
        .Node("Sigmoid", {"c"}, {"d"})
        .Node("Mul", {"c", "d"}, {"e"})
        .Node("Conv", {"e", "w3"}, {"f"}, "depthwise")
        .Ints("pads", {1, 1, 1, 1})
        .Int("group", 64)
        .Node("Add", {"e", "f"}, {"g"})
        .Node("MaxPool", {"g"}, {"h"})
        .Ints("kernel_shape", {3, 3})
        .Ints("pads", {1, 1, 1, 1})
        .Node("Conv", {"h", "w4"}, {"i"}, "last")
        .Ints("pads", {1, 1, 1, 1})
        .Node("Concat", {"i", "b"}, {"y"})
        .Int("axis", 1)
        .Output("y", {1, 64, 64, 48});
    return builder;
  }

  std::unique_ptr<driver::Model> Load(const OnnxBuilder& builder,
                                      const std::string& options = "") {
    auto model = device_->Load({builder.Bytes(), options, "m.onnx"});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  std::unique_ptr<BoundModel> Bind(const driver::Model& model) {
    const auto formats = [](const auto& attrs) {
      std::vector<driver::TensorFormat> result;
      for (const auto& attr : attrs) {
        result.push_back(testing::PlainFormat(attr, TensorType::kFloat32));
      }
      return result;
    };
    const auto& program = model.info().programs[0];
    auto bound = BoundModel::Make(*device_, model, formats(program.inputs),
                                  formats(program.outputs));
    EXPECT_TRUE(bound.ok()) << bound.status();
    auto* in = reinterpret_cast<float*>((*bound)->input(0).data());
    for (uint64_t i = 0; i < program.inputs[0].elements; ++i) {
      in[i] = static_cast<float>(i * 31 % 101) / 50 - 1;
    }
    return *std::move(bound);
  }

  static std::vector<std::byte> Output(BoundModel& bound, uint64_t bytes) {
    std::vector<std::byte> answer(bound.output(0).data(),
                                  bound.output(0).data() + bytes);
    std::memset(bound.output(0).data(), 0x55, bytes);
    return answer;
  }

  std::unique_ptr<driver::Device> device_;
};

TEST_F(GangDeviceTest, AnswersAreThoseOfOneCore) {
  auto model = Load(Network());
  auto bound = Bind(*model);
  constexpr uint64_t kBytes = uint64_t{64} * 64 * 48 * sizeof(float);
  ASSERT_TRUE(bound->Run().status.ok());
  const std::vector<std::byte> alone = Output(*bound, kBytes);
  for (const uint32_t mask : {0b011U, 0b111U, 0b110U, 0b101U}) {
    for (int i = 0; i < 20; ++i) {
      const driver::JobResult result = bound->RunGang(mask);
      ASSERT_TRUE(result.status.ok()) << result.status;
      ASSERT_EQ(Output(*bound, kBytes), alone) << "mask " << mask;
    }
  }
}

// The first layer is shared out as well: the further core meets the pages that
// are missing, those of the last channels.
TEST_F(GangDeviceTest, MemoryThatGoesAwayUnderAFurtherCoreCostsTheJobAlone) {
  constexpr off_t kChannel = 64 * 48 * sizeof(float);
  auto model = Load(Network());
  auto bound = Bind(*model);
  const base::UniqueFd fd(memfd_create("hostile", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), 3 * kChannel), 0);
  const auto memory = device_->Attach({fd.get(), 0, 3 * kChannel},
                                      driver::MemoryAccess::kReadWrite);
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_TRUE(bound->RunWithInput(0, memory->get(), 0b011).status.ok());
  ASSERT_EQ(ftruncate(fd.get(), kChannel), 0);

  const driver::JobResult result = bound->RunWithInput(0, memory->get(), 0b011);

  EXPECT_EQ(result.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status.message()),
              ::testing::HasSubstr("input 'x'"));
  EXPECT_TRUE(bound->RunGang(0b011).status.ok());
}

TEST_F(GangDeviceTest, GangAndSingleJobsRunBesideEachOther) {
  auto model = Load(Network());
  constexpr uint64_t kBytes = uint64_t{64} * 64 * 48 * sizeof(float);
  auto reference = Bind(*model);
  ASSERT_TRUE(reference->Run().status.ok());
  const std::vector<std::byte> alone = Output(*reference, kBytes);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (const uint32_t mask : {0b011U, 0b100U}) {
    threads.emplace_back([&, mask] {
      device_->EnterWorker();
      auto bound = Bind(*model);
      for (int i = 0; i < 30; ++i) {
        const bool ok = bound->RunGang(mask).status.ok();
        good += ok && Output(*bound, kBytes) == alone ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 60);
}

TEST_F(GangDeviceTest, SubmitOfAGangAllocatesNothing) {
  auto model = Load(Network());
  auto bound = Bind(*model);
  ASSERT_TRUE(bound->RunGang(0b111).status.ok());
  const uint64_t before = testing::Allocations();
  const driver::JobResult result = bound->RunGang(0b111);
  const uint64_t after = testing::Allocations();
  EXPECT_TRUE(result.status.ok());
  EXPECT_GT(before, 0U);
  EXPECT_EQ(after, before);
}

TEST_F(GangDeviceTest, WeightsAreHeldOnceForAllSizesOfGangs) {
  auto three = Load(Network());
  auto single = *OpenSoftDevice({.kind = "soft", .soc = "rk3566"});
  auto one = single->Load({Network().Bytes(), "", "m.onnx"});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(three->info().weight_size, (*one)->info().weight_size);
}

TEST_F(GangDeviceTest, IdleDeviceWakesNoThread) {
  auto model = Load(Network());
  auto bound = Bind(*model);
  ASSERT_TRUE(bound->RunGang(0b111).status.ok());
  ASSERT_TRUE(OthersFellAsleep());
  const std::map<std::string, std::string> before = Switches();
  EXPECT_EQ(before.size(), 2U);
  // Nothing can be waited for that must not happen: so long, it does not.
  usleep(300'000);
  EXPECT_EQ(Switches(), before);
}

TEST_F(GangDeviceTest, BatchIsSharedOutBySlices) {
  auto model = Load(Network(), "rknn_batch_size: 5\n");
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(model->info().programs[0].batch, 5U);
  auto bound = Bind(*model);
  constexpr uint64_t kBytes = uint64_t{5} * 64 * 64 * 48 * sizeof(float);
  ASSERT_TRUE(bound->Run().status.ok());
  const std::vector<std::byte> alone = Output(*bound, kBytes);
  for (const bool own_arenas : {true, false}) {
    for (const uint32_t mask : {0b011U, 0b111U}) {
      const driver::JobResult result = bound->RunGang(mask, own_arenas);
      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(Output(*bound, kBytes), alone) << mask;
    }
  }
}

TEST_F(GangDeviceTest, DeviceOfOneCoreHasNoFurtherThreads) {
  device_.reset();
  auto single = *OpenSoftDevice({.kind = "soft", .soc = "rk3566"});
  EXPECT_TRUE(Switches().empty());
}

}  // namespace
}  // namespace rknnd::soft
