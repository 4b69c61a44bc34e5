// Models that are loaded and run while mappings fail, each of them in turn: a
// load ends well or with an error, a job too, and nothing else happens. oneDNN
// itself looks at no mapping that it asks for (kernels/code_room.h).

#include "driver/soft/testing/failing_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <dnnl.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/map_count.h"
#include "base/posix/mapping.h"
#include "base/posix/testing/no_mappings.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"

namespace rknnd::soft {
namespace {

using testing::BoundModel;
using testing::FailMaps;
using ::testing::HasSubstr;
using testing::MapCall;
using testing::OnnxBuilder;
using testing::StopFailingMaps;

constexpr uint64_t kForGood = uint64_t{1} << 40;

std::vector<float> Values(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(i % 13) - 6;
  }
  return values;
}

// Of each kind of layer that oneDNN makes kernels for.
OnnxBuilder Network() {
  OnnxBuilder builder;
  builder.Input("x", {1, 32, 24, 24})
      .Floats("w", {64, 32, 3, 3}, Values(size_t{64} * 32 * 9))
      .Node("Conv", {"x", "w"}, {"c"}, "conv")
      .Ints("pads", {1, 1, 1, 1})
      .Node("MaxPool", {"c"}, {"p"}, "pool")
      .Ints("kernel_shape", {2, 2})
      .Ints("strides", {2, 2})
      .Floats("t", {64, 32, 2, 2}, Values(size_t{64} * 32 * 4))
      .Node("ConvTranspose", {"p", "t"}, {"d"}, "turned")
      .Ints("strides", {2, 2})
      .Int64s("flat", {2}, {32, 576})
      .Node("Reshape", {"d", "flat"}, {"r"}, "flat")
      .Floats("m", {576, 96}, Values(size_t{576} * 96))
      .Node("MatMul", {"r", "m"}, {"y"}, "product")
      .Output("y", {32, 96});
  return builder;
}

class FailingMapsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Each load makes its kernels anew.
    dnnl::set_primitive_cache_capacity(0);
    auto device = OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    device_->EnterWorker();
    bytes_ = Network().Bytes();
  }
  void TearDown() override { StopFailingMaps(); }

  absl::StatusOr<std::unique_ptr<driver::Model>> Load() {
    return device_->Load({bytes_, "", "m.onnx"});
  }

  // Empty: it failed, of which `status` tells.
  std::string Run(const driver::Model& model, absl::Status* status = nullptr) {
    const driver::TensorFormat floats{
        .type = driver::TensorType::kFloat32,
        .layout = driver::TensorLayout::kUndefined};
    const driver::TensorFormat image{.type = driver::TensorType::kFloat32,
                                     .layout = driver::TensorLayout::kNchw};
    auto bound = BoundModel::Make(*device_, model, {image}, {floats});
    EXPECT_TRUE(bound.ok()) << bound.status();
    if (!bound.ok()) return "";
    const auto input = Values(size_t{32} * 24 * 24);
    std::memcpy((*bound)->input(0).data(), input.data(),
                input.size() * sizeof(float));
    if (fail_jobs_) FailMaps(MapCall::kMmap, 1, kForGood);
    const driver::JobResult result = (*bound)->Run();
    if (fail_jobs_) failed_in_job_ = StopFailingMaps();
    if (status != nullptr) *status = result.status;
    if (!result.status.ok()) return "";
    return {reinterpret_cast<const char*>((*bound)->output(0).data()),
            size_t{32} * 96 * sizeof(float)};
  }

  // What the model answers while nothing fails.
  std::string Right() {
    auto model = Load();
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? Run(**model) : "";
  }

  // Loads again and again, with one more that goes well each time, until none
  // fails. How often the load ended with an error.
  int LoadThrough(MapCall call, uint64_t count) {
    int refused = 0;
    const std::string right = Right();
    EXPECT_FALSE(right.empty());
    for (uint64_t first = 1; first < 5000; ++first) {
      FailMaps(call, first, count);
      auto model = Load();
      const uint64_t failed = StopFailingMaps();
      if (!model.ok()) {
        ++refused;
        EXPECT_TRUE(absl::IsResourceExhausted(model.status()))
            << model.status();
        EXPECT_THAT(std::string(model.status().message()),
                    HasSubstr("Cannot allocate memory"));
      } else {
        EXPECT_EQ(Run(**model), right) << "call " << first;
      }
      if (failed == 0) return refused;
    }
    ADD_FAILURE() << "calls without end";
    return refused;
  }

  std::unique_ptr<driver::Device> device_;
  std::vector<std::byte> bytes_;
  bool fail_jobs_ = false;
  uint64_t failed_in_job_ = 0;
};

// The first of all: oneDNN makes some kernels for the process, in the first job
// that needs them, where nothing can be refused.
TEST_F(FailingMapsTest, FirstJobGoesOnWithoutMappings) {
  auto model = Load();
  ASSERT_TRUE(model.ok()) << model.status();
  fail_jobs_ = true;
  absl::Status status;
  const std::string answer = Run(**model, &status);
  fail_jobs_ = false;
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, Run(**model));
  RecordProperty("failed", static_cast<int>(failed_in_job_));
}

TEST_F(FailingMapsTest, EachMappingThatFailsEndsALoadAtMost) {
  (void)Right();  // the cores' own memory is there from now on
  const uint64_t live = base::Mapping::Live();
  LoadThrough(MapCall::kMmap, 1);
  EXPECT_EQ(base::Mapping::Live(), live);
}

TEST_F(FailingMapsTest, AllMappingsThatFailFromOneOnEndALoad) {
  (void)Right();  // the cores' own memory is there from now on
  const uint64_t live = base::Mapping::Live();
  EXPECT_GT(LoadThrough(MapCall::kMmap, kForGood), 0);
  EXPECT_EQ(base::Mapping::Live(), live);
}

TEST_F(FailingMapsTest, WhatCannotBeUnmappedIsUnmappedLater) {
  (void)Right();
  const uint64_t before = base::CountMappings();
  EXPECT_EQ(LoadThrough(MapCall::kMunmap, kForGood), 0);
  ASSERT_TRUE(Load().ok());
  // But for what malloc keeps.
  EXPECT_LT(base::CountMappings(), before + 50);
}

TEST_F(FailingMapsTest, FilesInMemoryThatFailEndALoad) {
  EXPECT_GT(LoadThrough(MapCall::kMemfd, 1), 0);
}

TEST_F(FailingMapsTest, WithoutMappingsLeftALoadEnds) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the process then";
#endif
  // As the kernel refuses, not a library of ours: mprotect too.
  const std::string right = Right();
  for (const uint64_t left : {0, 2, 5, 20, 100}) {
    absl::StatusOr<std::unique_ptr<driver::Model>> model;
    {
      const base::testing::NoMappings none(left);
      model = Load();
    }
    if (!model.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(model.status())) << model.status();
    }
  }
  auto model = Load();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(Run(**model), right);
}

}  // namespace
}  // namespace rknnd::soft
