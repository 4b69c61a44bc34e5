// What every device promises (driver/device.h): the software NPU, compiled
// models on an emulated NPU, and the vendor's library in workers, by its
// stand-in. On the kernel's driver it runs in the guest (tests/vm/npu).

#include "driver/device.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <regex>
#include <thread>
#include <vector>

#include "base/posix/memfd.h"
#include "driver/faults/faulty_device.h"
#include "driver/open_device.h"
#include "driver/rknnrt/testing/hosted_standin.h"
#include "driver/rknnrt/testing/wrapped_model.h"
#include "driver/rknpu/testing/small_network.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd {
namespace {

using driver::Direction;
using driver::TensorAttr;
using driver::TensorFormat;
using driver::TensorType;
using soft::testing::BoundModel;
using soft::testing::OnnxBuilder;
using soft::testing::PlainFormat;

struct Kind {
  const char* kind;
  const char* soc;
  bool faults = false;    // can be told to fail, and is not
  bool compiled = false;  // of the models: a .rknn file's program, not ONNX
};
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.kind << " " << kind.soc << (kind.faults ? " with faults" : "")
       << (kind.compiled ? ", compiled" : "");
}

class DeviceTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    driver::DeviceOptions options;
    if (IsHosted()) {
      options = rknnrt::testing::HostedStandin(RKNND_BINARY_ROOT);
    }
    options.kind = GetParam().kind;
    options.soc = GetParam().soc;
    auto opened = driver::OpenDeviceAndHeap(options, nullptr);
    if (!opened.ok() && options.kind == "rknpu") {
      GTEST_SKIP() << "in the guest: " << opened.status();
    }
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = std::move(opened->device);
    heap_ = std::move(opened->heap);
    soft::testing::TakeInternalMemoryFrom(heap_.get());
    if (GetParam().faults) {
      wrapped_ = std::move(device_);
      device_ = std::make_unique<driver::FaultyDevice>(
          driver::FaultyDeviceOptions{wrapped_.get(), &clock_});
    }
    device_->EnterWorker();
  }

  // By the vendor's library, in processes of its own.
  static bool IsHosted() { return std::string(GetParam().kind) == "rknnrt"; }

  // An image input, a 4-D and a 2-D output: y = max(x, 0), sum = x + 1.
  static std::vector<std::byte> Network(int8_t added = 1) {
    if (GetParam().compiled) {
      const std::string file =
          rknpu::testing::Build(rknpu::testing::SmallNetwork(added));
      const auto bytes = std::as_bytes(std::span(file));
      return {bytes.begin(), bytes.end()};
    }
    OnnxBuilder builder;
    builder.Input("x", {1, 3, 4, 5})
        .Floats("added", {1}, {static_cast<float>(added)})
        .Int64s("flat", {2}, {1, 60})
        .Node("Relu", {"x"}, {"y"})
        .Node("Add", {"x", "added"}, {"s"})
        .Node("Reshape", {"s", "flat"}, {"sum"})
        .Output("y", {1, 3, 4, 5})
        .Output("sum", {1, 60});
    return IsHosted() ? rknnrt::testing::Wrap(builder.Bytes())
                      : builder.Bytes();
  }

  std::unique_ptr<driver::Model> Load(const std::vector<std::byte>& bytes) {
    auto model = device_->Load({bytes, "", "m.onnx"});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  std::unique_ptr<BoundModel> Bind(const driver::Model& model) {
    const auto& program = model.info().programs[0];
    auto formats = [](const std::vector<TensorAttr>& attrs) {
      std::vector<TensorFormat> result;
      for (const auto& attr : attrs) {
        result.push_back(PlainFormat(attr, TensorType::kFloat32));
      }
      return result;
    };
    auto bound = BoundModel::Make(*device_, model, formats(program.inputs),
                                  formats(program.outputs));
    EXPECT_TRUE(bound.ok()) << bound.status();
    return bound.ok() ? *std::move(bound) : nullptr;
  }

  // Counts down from 30; the second output of a run.
  static float RunAndReadSum(BoundModel& bound, uint32_t core, int index) {
    auto* in = reinterpret_cast<float*>(bound.input(0).data());
    for (int i = 0; i < 60; ++i) in[i] = static_cast<float>(30 - i);
    driver::JobResult result = bound.Run(core);
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_LE(result.started, result.ended);
    return reinterpret_cast<float*>(bound.output(1).data())[index];
  }

  void TearDown() override { soft::testing::TakeInternalMemoryFrom(nullptr); }

  const base::MonotonicClock clock_{};
  std::unique_ptr<driver::Heap> heap_;  // of the device's own, if it has one
  std::unique_ptr<driver::Device> wrapped_;
  std::unique_ptr<driver::Device> device_;
};

TEST_P(DeviceTest, InfoHasCoresAndVersionsThatProgramsCanParse) {
  const std::regex version(R"(^\d+\.\d+\.\d+.*)");

  EXPECT_GE(device_->info().cores, 1U);
  EXPECT_EQ(device_->info().soc, GetParam().soc);
  EXPECT_TRUE(std::regex_match(device_->info().driver, version));
  EXPECT_TRUE(std::regex_match(device_->info().runtime, version));
}

TEST_P(DeviceTest, BytesThatAreNoModelAreAnErrorThatNamesIt) {
  const std::vector<std::byte> garbage(100, std::byte{0x5a});

  auto model = device_->Load({garbage, "", "broken.onnx"});

  ASSERT_FALSE(model.ok());
  EXPECT_THAT(std::string(model.status().message()),
              ::testing::HasSubstr("broken.onnx"));
}

TEST_P(DeviceTest, AttributesAreConsistent) {
  auto model = Load(Network());
  const driver::ProgramInfo& program = model->info().programs[0];
  auto check = [](const TensorAttr& attr) {
    uint64_t elements = 1;
    for (uint32_t dim : attr.dims) elements *= dim;
    EXPECT_GE(attr.dims.size(), 1U);
    EXPECT_EQ(attr.elements, elements);
    EXPECT_EQ(attr.size, elements * driver::ElementSize(attr.type));
    EXPECT_GE(attr.size_with_stride, attr.size);
    EXPECT_FALSE(attr.name.empty());
  };
  for (const auto* list : {&program.inputs, &program.outputs,
                           &program.native_inputs, &program.native_outputs}) {
    for (const TensorAttr& attr : *list) check(attr);
  }
  EXPECT_EQ(program.inputs.size(), program.native_inputs.size());
  EXPECT_EQ(program.outputs.size(), program.native_outputs.size());
  EXPECT_EQ(program.inputs[0].layout, driver::TensorLayout::kNhwc);
  EXPECT_EQ(program.inputs[0].w_stride, 5U);
  EXPECT_EQ(program.outputs[0].layout, driver::TensorLayout::kNchw);
  EXPECT_EQ(program.outputs[1].layout, driver::TensorLayout::kUndefined);
  EXPECT_GE(program.segments, 1U);
}

TEST_P(DeviceTest, TensorsFitMemoryOfTheSizeThatIsAskedFor) {
  auto model = Load(Network());
  const driver::ProgramInfo& program = model->info().programs[0];
  for (auto direction : {Direction::kInput, Direction::kOutput}) {
    bool input = direction == Direction::kInput;
    const auto& attrs = input ? program.inputs : program.outputs;
    const auto& natives =
        input ? program.native_inputs : program.native_outputs;
    for (uint32_t i = 0; i < attrs.size(); ++i) {
      auto own = model->CheckBinding(0, direction, i,
                                     {.type = attrs[i].type,
                                      .layout = attrs[i].layout,
                                      .w_stride = attrs[i].w_stride});
      auto native = model->CheckBinding(0, direction, i,
                                        {.type = natives[i].type,
                                         .layout = natives[i].layout,
                                         .pass_through = true});
      ASSERT_TRUE(own.ok()) << own.status();
      ASSERT_TRUE(native.ok()) << native.status();
      EXPECT_LE(*own, attrs[i].size_with_stride);
      EXPECT_LE(*native, natives[i].size_with_stride);
    }
  }
}

TEST_P(DeviceTest, FormatsThatCannotBeAreRefused) {
  auto model = Load(Network());

  EXPECT_FALSE(model
                   ->CheckBinding(0, Direction::kInput, 0,
                                  {.type = static_cast<TensorType>(99),
                                   .layout = driver::TensorLayout::kNhwc})
                   .ok());
  EXPECT_FALSE(model
                   ->CheckBinding(0, Direction::kInput, 0,
                                  {.type = TensorType::kUint8,
                                   .layout = driver::TensorLayout::kNhwc,
                                   .w_stride = 1})
                   .ok());
}

TEST_P(DeviceTest, EveryCoreGivesTheAnswer) {
  auto model = Load(Network());
  auto bound = Bind(*model);
  for (uint32_t core = 0; core < device_->info().cores; ++core) {
    EXPECT_EQ(RunAndReadSum(*bound, core, 59), -28);
    EXPECT_EQ(reinterpret_cast<float*>(bound->output(0).data())[59], 0);
    EXPECT_EQ(reinterpret_cast<float*>(bound->output(0).data())[0], 30);
  }
}

TEST_P(DeviceTest, GangsOfCoresGiveTheAnswer) {
  if (device_->info().cores < 2) {
    GTEST_SKIP() << GetParam().soc << " has one core";
  }
  auto model = Load(Network());
  auto bound = Bind(*model);
  RunAndReadSum(*bound, 0, 0);
  const std::vector<std::byte> alone(bound->output(0).data(),
                                     bound->output(0).data() + 240);
  const uint32_t all = (1U << device_->info().cores) - 1;
  for (const uint32_t mask : {0b11U, all}) {
    std::memset(bound->output(0).data(), 0, alone.size());
    driver::JobResult result = bound->RunGang(mask);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_LE(result.started, result.ended);
    EXPECT_EQ(std::memcmp(bound->output(0).data(), alone.data(), alone.size()),
              0);
    EXPECT_EQ(reinterpret_cast<float*>(bound->output(1).data())[59], -28);
  }
}

TEST_P(DeviceTest, ModelsDoNotDisturbEachOther) {
  auto one = Load(Network(1));
  auto two = Load(Network(90));
  auto bound_one = Bind(*one);
  auto bound_two = Bind(*two);

  EXPECT_EQ(RunAndReadSum(*bound_one, 0, 0), 31);
  EXPECT_EQ(RunAndReadSum(*bound_two, 0, 0), 120);
  bound_two.reset();
  two.reset();
  EXPECT_EQ(RunAndReadSum(*bound_one, 0, 0), 31);
}

TEST_P(DeviceTest, LayerTimesAreFilledWhereAskedFor) {
  auto model = Load(Network());
  auto bound = Bind(*model);
  std::vector<int64_t> times;

  ASSERT_TRUE(bound->Run(0, &times).status.ok());

  EXPECT_EQ(times.size(), model->info().programs[0].layers.size());
  for (int64_t time : times) EXPECT_GE(time, 0);
}

TEST_P(DeviceTest, LayersAreDumpedInOrderWithTheirNumbers) {
  class Sink final : public driver::LayerSink {
   public:
    absl::Status OnLayer(const driver::LayerTensor& tensor) override {
      size_t elements = 1;
      for (const int64_t dim : tensor.shape) {
        elements *= static_cast<size_t>(dim);
      }
      EXPECT_EQ(tensor.bytes.size(),
                elements * driver::ElementSize(tensor.type));
      layers.push_back(tensor.layer);
      if (tensor.name == "y") {
        y.resize(elements);
        std::memcpy(y.data(), tensor.bytes.data(), tensor.bytes.size());
      }
      return absl::OkStatus();
    }
    std::vector<uint32_t> layers;
    std::vector<float> y;
  } sink;
  auto model = Load(Network());
  auto bound = Bind(*model);
  RunAndReadSum(*bound, 0, 0);
  if (model->info().programs[0].layers.empty()) {
    EXPECT_TRUE(absl::IsUnimplemented(bound->RunDumped(sink).status));
    GTEST_SKIP() << "the vendor's library tells of no layers";
  }

  ASSERT_TRUE(bound->RunDumped(sink).status.ok());

  EXPECT_TRUE(std::is_sorted(sink.layers.begin(), sink.layers.end()));
  EXPECT_LT(sink.layers.back(), model->info().programs[0].layers.size());
  ASSERT_EQ(sink.y.size(), 60U);
  for (int i = 0; i < 60; ++i) EXPECT_EQ(sink.y[i], std::max(30 - i, 0));
}

// Each row has attributes, memory and answers of its own; all take turns.
TEST_P(DeviceTest, RowsOfShapesRunInAnyOrder) {
  if (GetParam().compiled) {
    GTEST_SKIP() << "rknnd runs compiled programs of one shape only";
  }
  OnnxBuilder builder;
  builder.Input("x", {1, 3, -1, -1})
      .Floats("added", {1}, {1})
      .Node("Add", {"x", "added"}, {"y"})
      .Output("y", {1, 3, -1, -1})
      .Metadata("rknn.dynamic_input", "[[[1,3,4,5]],[[1,3,8,8]]]");
  const auto model = Load(IsHosted() ? rknnrt::testing::Wrap(builder.Bytes())
                                     : builder.Bytes());
  ASSERT_NE(model, nullptr);
  const auto& programs = model->info().programs;
  ASSERT_EQ(programs.size(), 2U);
  EXPECT_EQ(model->info().largest, 1U);
  std::vector<std::unique_ptr<BoundModel>> bound;
  for (uint32_t row = 0; row < 2; ++row) {
    EXPECT_EQ(programs[row].outputs[0].elements, row == 0 ? 60U : 192U);
    auto made = BoundModel::Make(
        *device_, *model,
        {PlainFormat(programs[row].inputs[0], TensorType::kFloat32)},
        {PlainFormat(programs[row].outputs[0], TensorType::kFloat32)}, row);
    ASSERT_TRUE(made.ok()) << made.status();
    bound.push_back(*std::move(made));
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (uint32_t row = 0; row < 2; ++row) {
      const auto elements =
          static_cast<size_t>(programs[row].outputs[0].elements);
      std::fill_n(reinterpret_cast<float*>(bound[row]->input(0).data()),
                  elements, static_cast<float>(turn));
      const driver::JobResult result = bound[row]->Run();
      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(
          reinterpret_cast<float*>(bound[row]->output(0).data())[elements - 1],
          static_cast<float>(turn + 1));
    }
  }
}

// Nobody is told of a job twice, nor waits for ever.
TEST_P(DeviceTest, AJobThatNobodyWantsEnds) {
  auto model = Load(Network());
  auto bound = Bind(*model);
  const std::atomic<bool> stop{true};
  bound->set_stop(&stop);

  const driver::JobResult result = bound->Run();

  EXPECT_TRUE(result.status.ok() || absl::IsCancelled(result.status))
      << result.status;
}

// Each job that a reset meets is done right or ABORTED, on every core.
TEST_P(DeviceTest, AResetSpoilsNoJob) {
  auto model = Load(Network());
  std::atomic<bool> stop{false};
  std::vector<std::thread> runners;
  for (uint32_t core = 0; core < device_->info().cores; ++core) {
    runners.emplace_back([&, core] {
      device_->EnterWorker();
      auto bound = Bind(*model);
      auto* const in = reinterpret_cast<float*>(bound->input(0).data());
      std::fill_n(in, 60, 30.0F);
      while (!stop.load()) {
        const driver::JobResult result = bound->Run(core);
        if (absl::IsAborted(result.status)) continue;
        ASSERT_TRUE(result.status.ok()) << result.status;
        ASSERT_EQ(reinterpret_cast<float*>(bound->output(1).data())[59], 31);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    std::promise<absl::Status> done;
    device_->Reset([&](absl::Status status) { done.set_value(status); });
    std::future<absl::Status> reset = done.get_future();
    EXPECT_EQ(reset.wait_for(std::chrono::seconds(30)),
              std::future_status::ready);
  }
  stop = true;
  for (std::thread& runner : runners) runner.join();
}

TEST_P(DeviceTest, AModelSaysWhatItTakes) {
  const auto model = Load(Network());
  const driver::ProgramInfo& program = model->info().programs[0];

  EXPECT_GE(model->held_weights(), 1U);
  if (program.layers.empty() || std::string(GetParam().kind) == "rknpu") {
    GTEST_SKIP() << "what a task costs is known to models of the NPU only";
  }
  EXPECT_GT(program.modelled, 0);
  EXPECT_GE(program.expected, program.modelled);
  uint64_t moved = 0;
  for (const driver::LayerInfo& layer : program.layers) {
    EXPECT_LE(layer.ddr_read, layer.ddr_bytes);
    moved += layer.ddr_bytes;
  }
  EXPECT_GT(moved, 0U);
}

TEST_P(DeviceTest, ACopyOfTheWeightsHasTheirSize) {
  const auto model = Load(Network());
  const uint64_t size = model->info().weight_size;
  soft::testing::TestMemory enough(*device_, std::max<uint64_t>(size, 1));
  EXPECT_TRUE(model->CopyWeights(*enough.memory(), 0).ok());
  if (size == 0) return;
  EXPECT_FALSE(model->CopyWeights(*enough.memory(), 1).ok());
}

TEST_P(DeviceTest, WhatIsNoMemoryCannotBeAttached) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  base::UniqueFd in(ends[0]);
  base::UniqueFd out(ends[1]);

  EXPECT_FALSE(
      device_->Attach({-1, 0, 4096}, driver::MemoryAccess::kRead).ok());
  EXPECT_FALSE(
      device_->Attach({in.get(), 0, 4096}, driver::MemoryAccess::kRead).ok());
}

TEST_P(DeviceTest, MemoryHasTheSizeThatWasAttached) {
  base::UniqueFd fd = *base::MakeMemfd("conformance", 3 * 4096);

  auto memory =
      device_->Attach({fd.get(), 100, 5000}, driver::MemoryAccess::kReadWrite);

  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ((*memory)->size(), 5000U);
}

std::vector<Kind> Kinds() {
  std::vector<Kind> kinds = {{"soft", "rk3588"},
                             {"soft", "rk3566"},
                             {"soft", "rk3576", true},
                             {"soft", "rk3588", false, true},
                             {"soft", "rk3588", true, true},
                             {"rknpu", "rk3588", false, true}};
#if defined(RKNND_TESTS_HOSTED)
  for (const Kind& hosted : {Kind{"rknnrt", "rk3588"}, Kind{"rknnrt", "rk3566"},
                             Kind{"rknnrt", "rk3588", true},
                             Kind{"rknnrt", "rk3588", false, true}}) {
    kinds.push_back(hosted);
  }
#endif
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, ::testing::ValuesIn(Kinds()),
                         [](const auto& test) {
                           return std::string(test.param.kind) + "_" +
                                  test.param.soc +
                                  (test.param.faults ? "_with_faults" : "") +
                                  (test.param.compiled ? "_compiled" : "");
                         });

}  // namespace
}  // namespace rknnd
