// The networks of ../shared/models against the answers stored with them.
// Prints the time of a run on one thread: figures, not conditions.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>

#include "base/posix/clock.h"
#include "base/values/half.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/plan/planner.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/run_model.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::TensorType;

struct Case {
  const char* name;
  TensorType input = TensorType::kFloat32;
  TensorType output = TensorType::kFloat32;
  double tolerance = 1e-4;  // of the largest reference value
  // Whether its answers stand rounding the input. Not selfie_segmentation's:
  // rounded, then computed in float32 throughout, they move by 1.6e-2.
  bool half_input = true;
  bool pixels = false;   // its images are stored, and wanted, as NHWC
  bool integer = false;  // an int8 network
  // Instead: 99.9 % of the values are within so many steps of the output.
  double steps = 0;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class SharedModelTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::string shared = testing::SharedFolder();
    if (shared.empty()) GTEST_SKIP() << "no ../shared (set RKNND_SHARED)";
    folder_ = shared + "/models/" + GetParam().name;
    device_ = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
    device_->EnterWorker();
  }

  static std::vector<float> Floats(const std::vector<std::byte>& bytes,
                                   TensorType type) {
    std::vector<float> floats(bytes.size() / driver::ElementSize(type));
    if (type == TensorType::kFloat32) {
      std::memcpy(floats.data(), bytes.data(), bytes.size());
    } else {
      std::vector<base::Half> halves(floats.size());
      std::memcpy(halves.data(), bytes.data(), bytes.size());
      base::HalfToFloat(halves, floats);
    }
    return floats;
  }

  // A stored tensor of type `from` as a client with `to` has it.
  static std::vector<std::byte> As(std::vector<std::byte> bytes,
                                   TensorType from, TensorType to) {
    if (from == to) return bytes;
    const std::vector<float> floats = Floats(bytes, from);
    std::vector<base::Half> halves(floats.size());
    base::FloatToHalf(floats, halves);
    bytes.resize(halves.size() * sizeof(base::Half));
    std::memcpy(bytes.data(), halves.data(), bytes.size());
    return bytes;
  }

  // Runs both sets through bindings of these types.
  void ExpectAnswers(TensorType input, TensorType output, double tolerance) {
    auto model = device_->Load(
        {testing::ReadFile(folder_ + "/model.onnx"), "", GetParam().name});
    ASSERT_TRUE(model.ok()) << model.status();
    const driver::ProgramInfo& program = (*model)->info().programs[0];
    for (const std::string set : {"/set_0", "/set_1"}) {
      std::vector<testing::TestTensor> inputs;
      std::vector<testing::TestTensor> outputs;
      for (size_t i = 0; i < program.inputs.size(); ++i) {
        driver::TensorFormat format =
            testing::PlainFormat(program.inputs[i], input);
        if (GetParam().pixels) format.layout = driver::TensorLayout::kNhwc;
        inputs.push_back(
            {format, As(testing::ReadFile(folder_ + set + "/input_" +
                                          std::to_string(i) + ".bin"),
                        GetParam().input, input)});
      }
      for (const driver::TensorAttr& attr : program.outputs) {
        outputs.push_back({testing::PlainFormat(attr, output), {}});
      }

      ASSERT_TRUE(testing::RunOnce(*device_, **model, inputs, outputs).ok());

      for (size_t i = 0; i < outputs.size(); ++i) {
        std::vector<float> wanted =
            Floats(testing::ReadFile(folder_ + set + "/output_" +
                                     std::to_string(i) + ".bin"),
                   GetParam().output);
        std::vector<float> got = Floats(outputs[i].bytes, output);
        ASSERT_EQ(wanted.size(), got.size());
        double largest = 0;
        double off = 0;
        size_t outside = 0;
        const double step =
            GetParam().steps * program.outputs[i].scale * 1.0001;
        for (size_t k = 0; k < wanted.size(); ++k) {
          largest =
              std::max(largest, std::fabs(static_cast<double>(wanted[k])));
          double d = std::fabs(static_cast<double>(wanted[k]) - got[k]);
          off = std::isnan(d) ? INFINITY : std::max(off, d);
          outside += d <= step ? 0 : 1;
        }
        if (GetParam().steps > 0) {
          EXPECT_EQ(program.outputs[i].type, TensorType::kInt8);
          EXPECT_LE(outside * 1000, wanted.size())
              << program.outputs[i].name << " of " << set;
          continue;
        }
        EXPECT_LE(off, tolerance * largest)
            << program.outputs[i].name << " of " << set << ": " << off / largest
            << " of the largest";
      }
    }
  }

  std::string folder_;
  std::unique_ptr<driver::Device> device_;
};

TEST_P(SharedModelTest, GivesTheStoredAnswers) {
  ExpectAnswers(GetParam().input, GetParam().output, GetParam().tolerance);
}

// As clients of the NPU have them.
TEST_P(SharedModelTest, GivesTheStoredAnswersInHalfPrecision) {
  if (GetParam().output != TensorType::kFloat32 || GetParam().integer) {
    GTEST_SKIP() << "its answers are not single precision";
  }
  constexpr double kHalfTolerance = 2e-3;
  const bool halves =
      GetParam().half_input && GetParam().input == TensorType::kFloat32;
  ExpectAnswers(halves ? TensorType::kFloat16 : GetParam().input,
                TensorType::kFloat16, kHalfTolerance);
}

// At any level of CPU: ctest runs this program at each.
void ExpectNoReferenceKernel(driver::Device& device, const std::string& file) {
  auto model = device.Load({testing::ReadFile(file), "", file});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const driver::LayerInfo& layer : (*model)->info().programs[0].layers) {
    EXPECT_FALSE(layer.is_slow)
        << layer.type << " '" << layer.name << "': " << layer.kernel;
  }
}

TEST_P(SharedModelTest, HasAKernelMadeForThisCpuInEachLayer) {
  ExpectNoReferenceKernel(*device_, folder_ + "/model.onnx");
}

TEST(DetectorTest, HasAKernelMadeForThisCpuInEachLayer) {
  const auto device = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
  ExpectNoReferenceKernel(*device,
                          RKNND_SOURCE_ROOT "/examples/detector/detector.onnx");
}

TEST_P(SharedModelTest, RunsInTheTimeItPrints) {
  auto model = device_->Load(
      {testing::ReadFile(folder_ + "/model.onnx"), "", GetParam().name});
  ASSERT_TRUE(model.ok()) << model.status();
  const driver::ProgramInfo& program = (*model)->info().programs[0];
  std::vector<driver::TensorFormat> inputs;
  std::vector<driver::TensorFormat> outputs;
  for (const auto& attr : program.inputs) {
    inputs.push_back(testing::PlainFormat(attr, GetParam().input));
  }
  for (const auto& attr : program.outputs) {
    outputs.push_back(testing::PlainFormat(attr, GetParam().output));
  }
  auto bound = testing::BoundModel::Make(*device_, **model, inputs, outputs);
  ASSERT_TRUE(bound.ok()) << bound.status();
  std::vector<int64_t> times;
  std::vector<int64_t> layer_times;
  for (int i = 0; i < 7; ++i) {
    driver::JobResult result = (*bound)->Run(0, &layer_times);
    ASSERT_TRUE(result.status.ok()) << result.status;
    times.push_back(result.ended - result.started);
  }
  std::sort(times.begin(), times.end());
  std::cout << GetParam().name << ": " << times[0] / 1000 << " us best, "
            << times[times.size() / 2] / 1000 << " us median, "
            << program.layers.size() << " layers, weights "
            << (*model)->info().weight_size / 1024 << " KiB, internal "
            << program.internal_size / 1024 << " KiB\n";
  int64_t sum = 0;
  for (size_t i = 0; i < layer_times.size(); ++i) {
    EXPECT_GE(layer_times[i], 0);
    sum += layer_times[i];
    if (std::getenv("RKNND_LAYERS") != nullptr) {
      std::cout << "  " << layer_times[i] / 1000.0 << " "
                << program.layers[i].type << " " << program.layers[i].name
                << " " << program.layers[i].input_shape << " -> "
                << program.layers[i].output_shape << "\n";
    }
  }
  EXPECT_GT(sum, 0);
}

// What the pieces for gangs cost; prints the time of a load, the best of three.
TEST_P(SharedModelTest, PiecesForGangsCostNoWeights) {
  auto single = *OpenSoftDevice({.kind = "soft", .soc = "rk3566"});
  const auto bytes = testing::ReadFile(folder_ + "/model.onnx");
  const base::MonotonicClock clock;
  const auto load = [&](driver::Device& device, base::Nanoseconds* best) {
    uint64_t weights = 0;
    for (int i = 0; i < 3; ++i) {
      const base::Nanoseconds start = clock.Now();
      auto model = device.Load({bytes, "", GetParam().name});
      const base::Nanoseconds took = clock.Now() - start;
      EXPECT_TRUE(model.ok()) << model.status();
      if (model.ok()) weights = (*model)->info().weight_size;
      *best = i == 0 ? took : std::min(*best, took);
    }
    return static_cast<double>(weights);
  };
  base::Nanoseconds one = 0;
  base::Nanoseconds three = 0;
  const double weights = load(*single, &one);
  EXPECT_LE(load(*device_, &three), 1.05 * weights);
  std::cout << GetParam().name << ": loaded in " << one / 1000
            << " us for one core, " << three / 1000 << " us for three\n";
}

// Prints what each mask takes, in turns: figures, not conditions.
TEST_P(SharedModelTest, EveryCoreMaskGivesTheSameBits) {
  auto model = device_->Load(
      {testing::ReadFile(folder_ + "/model.onnx"), "", GetParam().name});
  ASSERT_TRUE(model.ok()) << model.status();
  const driver::ProgramInfo& program = (*model)->info().programs[0];
  std::vector<driver::TensorFormat> inputs;
  std::vector<driver::TensorFormat> outputs;
  for (const auto& attr : program.inputs) {
    inputs.push_back(testing::PlainFormat(attr, GetParam().input));
  }
  for (const auto& attr : program.outputs) {
    outputs.push_back(testing::PlainFormat(attr, GetParam().output));
  }
  auto bound = testing::BoundModel::Make(*device_, **model, inputs, outputs);
  ASSERT_TRUE(bound.ok()) << bound.status();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto bytes = testing::ReadFile(folder_ + "/set_0/input_" +
                                         std::to_string(i) + ".bin");
    std::memcpy((*bound)->input(i).data(), bytes.data(), bytes.size());
  }
  std::vector<std::vector<std::byte>> alone;
  std::map<uint32_t, base::Nanoseconds> best;
  std::map<uint32_t, std::vector<int64_t>> layers;
  for (int round = 0; round < 10; ++round) {
    for (const uint32_t mask : {1U, 3U, 7U}) {
      std::vector<int64_t> times;
      const driver::JobResult result = (*bound)->RunGang(mask, false, &times);
      ASSERT_TRUE(result.status.ok()) << result.status;
      std::vector<int64_t>& least = layers[mask];
      if (least.empty()) least = times;
      for (size_t i = 0; i < times.size(); ++i) {
        least[i] = std::min(least[i], times[i]);
      }
      base::Nanoseconds& time = best[mask];
      const base::Nanoseconds took = result.ended - result.started;
      time = time == 0 ? took : std::min(time, took);
      for (uint32_t i = 0; i < outputs.size(); ++i) {
        const uint64_t size = *(*model)->CheckBinding(
            0, driver::Direction::kOutput, i, outputs[i]);
        std::byte* const data = (*bound)->output(i).data();
        if (alone.size() <= i) alone.emplace_back(data, data + size);
        ASSERT_EQ(std::memcmp(alone[i].data(), data, size), 0)
            << "mask " << mask << ", " << program.outputs[i].name;
        std::memset(data, 0x55, size);
      }
    }
  }
  std::cout << GetParam().name << ": " << best[1] / 1000 << " us on one core, "
            << best[3] / 1000 << " on two, " << best[7] / 1000 << " on three\n";
  for (size_t i = 0;
       std::getenv("RKNND_LAYERS") != nullptr && i < program.layers.size();
       ++i) {
    std::cout << "  " << layers[1][i] / 1000.0 << " " << layers[3][i] / 1000.0
              << " " << layers[7][i] / 1000.0 << " " << program.layers[i].type
              << " " << program.layers[i].name << " "
              << program.layers[i].input_shape << " -> "
              << program.layers[i].output_shape << "\n";
  }
}

TEST_P(SharedModelTest, InternalMemoryIsCloseToTheLeastPossible) {
  auto graph =
      ImportOnnx(testing::ReadFile(folder_ + "/model.onnx"), GetParam().name);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(RunPasses(*graph, OperatorTable::Get()).ok());
  ModelWeights weights(0);

  auto plan = MakePlan(*graph, OperatorTable::Get(),
                       {.block = ChannelBlock(), .half_block = 8}, weights);

  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(static_cast<double>(plan->arena.memory.size),
            1.10 * static_cast<double>(
                       LowerBound(plan->arena.tensors, plan->arena.sharing)));
}

INSTANTIATE_TEST_SUITE_P(
    Float, SharedModelTest,
    ::testing::Values(Case{"mnist_8"}, Case{"ultraface_rfb_320"},
                      Case{"squeezenet_fp16", TensorType::kFloat16,
                           TensorType::kFloat16, 2e-3},
                      Case{"yunet_n_320"}, Case{"yolox_nano"},
                      Case{.name = "selfie_segmentation",
                           .half_input = false,
                           .pixels = true},
                      Case{"vittrack"},
                      Case{"magika_v3_3", TensorType::kInt32}),
    [](const auto& test) { return std::string(test.param.name); });

// The scales of retinaface are powers of two, and the reference gives the same
// answers with and without its optimisations: exactly these.
INSTANTIATE_TEST_SUITE_P(
    Integer, SharedModelTest,
    ::testing::Values(
        Case{.name = "retinaface_int8_qdq", .tolerance = 0, .integer = true},
        Case{.name = "shufflenet_v2_int8", .integer = true, .steps = 1}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace rknnd::soft
