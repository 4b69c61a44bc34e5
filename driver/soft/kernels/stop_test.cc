// Layers that take long end soon after their job is wanted no more: with most
// of their output not written.

#include "driver/soft/kernels/stop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver/soft/kernels/testing/one_node.h"
#include "driver/soft/kernels/testing/same_in_parts.h"
#include "driver/soft/kernels/work.h"

namespace rknnd::soft {
namespace {

using testing::Count;
using testing::Noise;
using testing::OneNode;
using IntList = std::vector<int64_t>;

// One that takes a second or more of a core.
struct StoppedLayer {
  const char* name;
  const char* type;
  std::vector<Shape> inputs;
  Shape output;
  std::vector<std::pair<const char*, Attribute>> attributes = {};
  bool known = false;  // the second input
};
void PrintTo(const StoppedLayer& layer, std::ostream* out) {
  *out << layer.name;
}

class StopTest : public ::testing::TestWithParam<StoppedLayer> {
 protected:
  static OneNode Make() {
    const StoppedLayer& layer = GetParam();
    OneNode node(layer.type);
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      const Shape& shape = layer.inputs[i];
      std::vector<float> values = Noise(Count(shape));
      if (i == 1 && layer.known) {
        node.Floats(shape, std::move(values));
      } else {
        node.Values(shape, std::move(values));
      }
    }
    for (const auto& [name, value] : layer.attributes) node.With(name, value);
    return node;
  }
};

TEST_P(StopTest, LayerEndsBeforeItsLastNumbers) {
  OneNode node = Make();
  auto kernel = node.Make();
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  if (GetParam().type == std::string("Conv") && !GetParam().known &&
      !(*kernel)->is_reference()) {
    GTEST_SKIP() << "one call of oneDNN's computes it here ("
                 << (*kernel)->implementation() << "), in a third of a second";
  }
  std::vector<std::vector<float>> values;
  std::vector<const std::byte*> inputs;
  for (const Shape& shape : GetParam().inputs) {
    values.push_back(Noise(Count(shape)));
    inputs.push_back(reinterpret_cast<const std::byte*>(values.back().data()));
  }
  std::vector<float> output(static_cast<size_t>(Count(GetParam().output)),
                            std::numeric_limits<float>::quiet_NaN());
  std::byte* const outputs[] = {reinterpret_cast<std::byte*>(output.data())};
  std::vector<std::byte> room((*kernel)->scratch_size() + 64);
  std::byte* const scratch =
      room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64);

  std::atomic<bool> unwanted{false};
  const std::atomic<bool> reset{false};
  const StopSignal signal(&unwanted, &reset);
  absl::Status status;
  std::atomic<bool> ended{false};
  std::thread worker([&] {
    status = RunStoppable(
        &signal, [&] { return (*kernel)->Run(inputs, outputs, scratch); });
    ended = true;
  });
  // It has begun to write, wherever it begins.
  const auto begun = [&] {
    const std::atomic_ref<float> first(output.front());
    const float value = first.load(std::memory_order_relaxed);
    return value == value;
  };
  while (!begun() && !ended) std::this_thread::yield();
  unwanted = true;
  worker.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_NE(output.back(), output.back()) << "the last number was written";
}

INSTANTIATE_TEST_SUITE_P(
    Layers, StopTest,
    ::testing::Values(StoppedLayer{"product",
                                   "MatMul",
                                   {{3000, 3000}, {3000, 3000}},
                                   {3000, 3000}},
                      StoppedLayer{"product_of_known",
                                   "MatMul",
                                   {{3000, 3000}, {3000, 3000}},
                                   {3000, 3000},
                                   {},
                                   true},
                      StoppedLayer{"products_of_a_batch",
                                   "MatMul",
                                   {{2, 64, 512, 512}, {2, 64, 512, 512}},
                                   {2, 64, 512, 512}},
                      StoppedLayer{"convolution",
                                   "Conv",
                                   {{1, 256, 200, 200}, {256, 256, 3, 3}},
                                   {1, 256, 198, 198},
                                   {},
                                   true},
                      StoppedLayer{"grouped",
                                   "Conv",
                                   {{1, 192, 256, 256}, {192, 64, 5, 5}},
                                   {1, 192, 252, 252},
                                   {{"group", int64_t{3}}},
                                   true},
                      StoppedLayer{"with_weights_of_each_run",
                                   "Conv",
                                   {{1, 6, 200, 200}, {6, 2, 151, 151}},
                                   {1, 6, 50, 50},
                                   {{"group", int64_t{3}}}},
                      StoppedLayer{"transposed",
                                   "ConvTranspose",
                                   {{1, 128, 160, 160}, {128, 128, 4, 4}},
                                   {1, 128, 322, 322},
                                   {{"strides", IntList{2, 2}}},
                                   true},
                      StoppedLayer{"wide_pool",
                                   "MaxPool",
                                   {{1, 32, 256, 256}},
                                   {1, 32, 226, 226},
                                   {{"kernel_shape", IntList{31, 31}}}},
                      StoppedLayer{"wide_norm",
                                   "LRN",
                                   {{1, 512, 128, 128}},
                                   {1, 512, 128, 128},
                                   {{"size", int64_t{257}}}}),
    [](const auto& made) { return std::string(made.param.name); });

TEST(StopSignalTest, WhatIsNotStoppedRunsToItsEnd) {
  const std::atomic<bool> no{false};
  const StopSignal signal(nullptr, &no);
  bool ended = false;
  EXPECT_TRUE(RunStoppable(&signal, [&] {
                StopPoint();
                ended = true;
                return absl::OkStatus();
              }).ok());
  EXPECT_TRUE(ended);
  StopPoint();  // of no job
}

TEST(StopSignalTest, ReasonIsWhoRaisedIt) {
  const std::atomic<bool> no{false}, yes{true};
  const auto stopped = [](const StopSignal& signal) {
    return RunStoppable(&signal, [] {
      StopPoint();
      return absl::OkStatus();
    });
  };
  EXPECT_TRUE(absl::IsCancelled(stopped({&yes, &no})));
  EXPECT_TRUE(absl::IsAborted(stopped({&no, &yes})));
  EXPECT_TRUE(absl::IsAborted(stopped({&yes, &yes})));
}

}  // namespace
}  // namespace rknnd::soft
