// Internal memory that a client maps too: at an offset, changed and taken away
// while a job runs; and copies of the weights.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::TensorFormat;
using driver::TensorType;
using ::testing::HasSubstr;
using testing::OnnxBuilder;
using testing::TestMemory;

constexpr int64_t kRows = 64, kColumns = 32;

// As a client can have it that does not seal it: the device does not ask.
class CutMemory {
 public:
  CutMemory(driver::Device& device, uint64_t size)
      : fd_(memfd_create("cut", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_.get(), static_cast<off_t>(size)), 0);
    memory_ =
        *device.Attach({fd_.get(), 0, size}, driver::MemoryAccess::kReadWrite);
    EXPECT_EQ(ftruncate(fd_.get(), 0), 0);
  }
  [[nodiscard]] driver::Memory* memory() const { return memory_.get(); }

 private:
  base::UniqueFd fd_;
  std::unique_ptr<driver::Memory> memory_;
};

TensorFormat FormatOf(const driver::TensorAttr& attr) {
  return testing::PlainFormat(attr, TensorType::kFloat32);
}

class JobAnswer final : public driver::JobListener {
 public:
  void OnJobDone(driver::JobResult result) override {
    status = std::move(result.status);
  }
  absl::Status status = absl::UnknownError("not answered");
};

class OutsideMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    device_->EnterWorker();
  }

  // One input and one output of floats.
  void Load(const OnnxBuilder& builder) {
    auto model = device_->Load({builder.Bytes(), "", "m.onnx"});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    const driver::ProgramInfo& program = model_->info().programs[0];
    internal_size_ = program.internal_size;
    ASSERT_GT(internal_size_, 0U);
    elements_ = program.outputs[0].elements;
    input_ = std::make_unique<TestMemory>(
        *device_, program.inputs[0].elements * sizeof(float));
    output_ = std::make_unique<TestMemory>(*device_, elements_ * sizeof(float));
  }

  template <class Internal>
  absl::Status Run(Internal& internal, uint64_t offset = 0,
                   uint32_t core_mask = 1) {
    const driver::ProgramInfo& program = model_->info().programs[0];
    const driver::TensorBinding in{input_->memory(), 0,
                                   FormatOf(program.inputs[0])};
    const driver::TensorBinding out{output_->memory(), 0,
                                    FormatOf(program.outputs[0])};
    JobAnswer answer;
    driver::JobRequest job;
    job.model = model_.get();
    job.inputs = {&in, 1};
    job.outputs = {&out, 1};
    job.internal = internal.memory();
    job.internal_offset = offset;
    job.core_mask = core_mask;
    job.listener = &answer;
    device_->Submit(job);
    return answer.status;
  }
  std::vector<float> Result() const {
    std::vector<float> values(elements_);
    std::memcpy(values.data(), output_->data(), elements_ * sizeof(float));
    return values;
  }
  // Runs again and again while a thread writes whatever into the memory; what
  // comes out is an answer, or this error.
  void RunUnderScribbling(const std::string& error) {
    TestMemory internal(*device_, internal_size_);
    std::atomic<bool> stop{false};
    std::thread scribbler([&] {
      uint32_t state = 1;
      while (!stop) {
        for (size_t i = 0; i + sizeof state <= internal_size_; ++i) {
          state = state * 1664525 + 1013904223;
          // Zeros and ones are the numbers that are checked.
          const uint32_t word = (state >> 20) % 4 == 0 ? 0 : state;
          std::memcpy(internal.data() + i, &word, sizeof word);
        }
      }
    });
    for (int i = 0; i < 300; ++i) {
      const absl::Status status = Run(internal);
      if (!status.ok()) {
        EXPECT_THAT(std::string(status.message()), HasSubstr(error));
      }
    }
    stop = true;
    scribbler.join();
    // And none of that stays.
    EXPECT_TRUE(Run(internal).ok());
  }

  std::unique_ptr<driver::Device> device_;
  std::unique_ptr<driver::Model> model_;
  std::unique_ptr<TestMemory> input_, output_;
  uint64_t internal_size_ = 0, elements_ = 0;
};

// Rows of a table in the order of the input's numbers: indices are computed by
// the job and lie in internal memory.
OnnxBuilder Sorter() {
  std::vector<float> table(kRows * kColumns);
  std::iota(table.begin(), table.end(), 0.0F);
  OnnxBuilder builder;
  builder.Input("x", {kRows})
      .Floats("table", {kRows, kColumns}, table)
      .Int64s("k", {1}, {kRows})
      .Node("TopK", {"x", "k"}, {"largest", "where"})
      .Node("Gather", {"table", "where"}, {"y"})
      .Output("y", {kRows, kColumns});
  return builder;
}

// Quotients of whole numbers that the job computes.
OnnxBuilder Quotients() {
  OnnxBuilder builder;
  builder.Input("x", {kRows * kColumns})
      .Int64s("two", {1}, {2})
      .Node("Cast", {"x"}, {"i"})
      .Int("to", onnx::TensorProto::INT64)
      .Node("Div", {"i", "two"}, {"half"})
      .Node("Div", {"i", "half"}, {"q"})
      .Node("Mod", {"i", "half"}, {"r"})
      .Node("Add", {"q", "r"}, {"sum"})
      .Node("Cast", {"sum"}, {"y"})
      .Int("to", onnx::TensorProto::FLOAT)
      .Output("y", {kRows * kColumns});
  return builder;
}

OnnxBuilder Convolutions() {
  std::vector<float> weights(32 * 32 * 9);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(i % 5) / 8 - 0.25F;
  }
  OnnxBuilder builder;
  builder.Input("x", {1, 32, 40, 40}).Floats("w", {32, 32, 3, 3}, weights);
  std::string from = "x";
  for (const std::string to : {"a", "b", "c", "y"}) {
    builder.Node("Conv", {from, "w"}, {to}).Ints("pads", {1, 1, 1, 1});
    from = to;
  }
  builder.Output("y", {1, 32, 40, 40});
  return builder;
}

TEST_F(OutsideMemoryTest, JobKeepsToItsPartOfTheMemory) {
  ASSERT_NO_FATAL_FAILURE(Load(Sorter()));
  TestMemory own(*device_, internal_size_);
  ASSERT_TRUE(Run(own).ok());
  const std::vector<float> expected = Result();
  constexpr uint64_t kOffset = 4160;
  TestMemory internal(*device_, kOffset + internal_size_ + 4096);
  std::memset(internal.data(), 0x5a, kOffset + internal_size_ + 4096);
  ASSERT_TRUE(Run(internal, kOffset).ok());
  EXPECT_EQ(Result(), expected);
  const auto untouched = [&](uint64_t begin, uint64_t end) {
    return std::all_of(internal.data() + begin, internal.data() + end,
                       [](std::byte b) { return b == std::byte{0x5a}; });
  };
  EXPECT_TRUE(untouched(0, kOffset));
  EXPECT_TRUE(
      untouched(kOffset + internal_size_, kOffset + internal_size_ + 4096));
}

TEST_F(OutsideMemoryTest, IndicesThatChangeWhileTheyAreReadHarmNothing) {
  ASSERT_NO_FATAL_FAILURE(Load(Sorter()));
  RunUnderScribbling("an index is out of range");
}

TEST_F(OutsideMemoryTest, DivisorsThatChangeWhileTheyAreReadHarmNothing) {
  ASSERT_NO_FATAL_FAILURE(Load(Quotients()));
  RunUnderScribbling("no error at all");
}

TEST_F(OutsideMemoryTest, MemoryThatIsTakenAwayCostsTheJobAndNoMore) {
  ASSERT_NO_FATAL_FAILURE(Load(Convolutions()));
  TestMemory own(*device_, internal_size_);
  std::memset(input_->data(), 0x3c, 4);
  ASSERT_TRUE(Run(own).ok());
  const std::vector<float> expected = Result();
  for (const uint32_t mask : {1U, 7U}) {
    CutMemory internal(*device_, internal_size_);
    const absl::Status status = Run(internal, 0, mask);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("internal memory went away"));
    // Pages that only this process sees have taken the place of those.
    EXPECT_TRUE(Run(internal, 0, mask).ok());
    EXPECT_EQ(Result(), expected);
  }
}

TEST_F(OutsideMemoryTest, CopyOfTheWeightsIsTheSameEachTime) {
  ASSERT_NO_FATAL_FAILURE(Load(Convolutions()));
  const uint64_t size = model_->info().weight_size;
  TestMemory first(*device_, size), second(*device_, size + 100);
  std::memset(first.data(), 0x11, size);
  std::memset(second.data(), 0x22, size + 100);
  ASSERT_TRUE(model_->CopyWeights(*first.memory(), 0).ok());
  ASSERT_TRUE(model_->CopyWeights(*second.memory(), 36).ok());
  EXPECT_EQ(std::memcmp(first.data(), second.data() + 36, size), 0);
  EXPECT_EQ(second.data()[35], std::byte{0x22});
  EXPECT_EQ(second.data()[36 + size], std::byte{0x22});
  EXPECT_FALSE(std::all_of(first.data(), first.data() + size,
                           [](std::byte b) { return b == std::byte{0}; }));
}

TEST_F(OutsideMemoryTest, WeightsAreNotCopiedWhereThereIsNoRoom) {
  ASSERT_NO_FATAL_FAILURE(Load(Convolutions()));
  const uint64_t size = model_->info().weight_size;
  const TestMemory room(*device_, size);
  EXPECT_FALSE(model_->CopyWeights(*room.memory(), 4096).ok());
  EXPECT_FALSE(model_->CopyWeights(*room.memory(), UINT64_MAX).ok());
  const CutMemory cut(*device_, size);
  EXPECT_EQ(model_->CopyWeights(*cut.memory(), 0).code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace rknnd::soft
