// The emulator on compiled models that others published: tensors after every
// node, and outputs, must be those that were computed or recorded elsewhere.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/values/sha256.h"
#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/emulator/testing/loaded_program.h"
#include "driver/rknpu/file/testing/shared_programs.h"

namespace rknnd::rknpu {
namespace {

using testing::LoadedProgram;
using testing::ReadShared;

struct Network {
  const char* file;
  const char* input;  // name of the vector
  const char* nodes;  // name of the list of hashes
  const char* name;
};
const Network kNetworks[] = {
    {"mobilenetv2_rk3588.rknn", "mobilenetv2_chelsea_in_i8.bin",
     "mobilenetv2_chelsea_nodes.txt", "MobileNetV2Cat"},
    {"mobilenetv2_rk3588.rknn", "mobilenetv2_coffee_in_i8.bin",
     "mobilenetv2_coffee_nodes.txt", "MobileNetV2Coffee"},
    {"yolov8n_algae_rk3588.rknn", "yolov8n_chelsea_in_u8.bin",
     "yolov8n_chelsea_nodes.txt", "YOLOv8n"},
    {"ppocrv4_det_rk3588.rknn", "ppocrv4_det_page_in_u8.bin",
     "ppocrv4_det_page_nodes.txt", "TextDetector"},
};

std::vector<std::byte> Vector(const std::string& name) {
  return ReadShared("vectors/" + name);
}

// What the vectors' readme says of each network's input.
std::vector<std::byte> InputOf(const Network& network) {
  std::vector<std::byte> bytes = Vector(network.input);
  const std::string file = network.file;
  if (file.find("yolov8n") == 0) {
    for (std::byte& b : bytes) b ^= std::byte{0x80};
  }
  if (file.find("ppocr") == 0) {
    constexpr double kMeans[] = {123.675, 116.28, 103.53};
    constexpr double kDeviations[] = {58.395, 57.12, 57.375};
    for (size_t i = 0; i < bytes.size(); ++i) {
      const double x = std::to_integer<int>(bytes[i]);
      const double q = std::nearbyint(
          (x - kMeans[i % 3]) / kDeviations[i % 3] / 0.018658448 - 14);
      bytes[i] = static_cast<std::byte>(
          static_cast<int>(std::fmin(std::fmax(q, -128), 127)));
    }
  }
  return bytes;
}

// Of each node: hashes by the name of a tensor.
std::map<uint32_t, std::map<std::string, std::string>> HashesOf(
    const Network& network) {
  const std::vector<std::byte> bytes = Vector(network.nodes);
  std::istringstream text(
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::map<uint32_t, std::map<std::string, std::string>> hashes;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    uint32_t node = 0;
    std::string type, tensor, shape, hash;
    fields >> node >> type >> tensor >> shape >> hash;
    hashes[node][tensor] = hash;
  }
  return hashes;
}

std::string HashOf(LoadedProgram& program, const std::string& tensor) {
  return base::ToHex(
             base::Sha256Of(program.LogicalOf(program.TensorOf(tensor))))
      .substr(0, 16);
}

class NetworkTest : public ::testing::TestWithParam<Network> {
 protected:
  void SetUp() override {
    program_ = LoadedProgram::Load(GetParam().file);
    if (!program_) GTEST_SKIP() << "no ../shared (set RKNND_SHARED)";
    program_->SetImage(program_->file().tensors[program_->file().inputs[0]],
                       InputOf(GetParam()));
  }

  // Runs node by node and compares each tensor that has a hash.
  void ExpectHashes(uint32_t cores, Engine engine) {
    const auto hashes = HashesOf(GetParam());
    ASSERT_GT(hashes.size(), 50U);
    size_t compared = 0, wrong = 0;
    RunOptions options;
    options.engine = engine;
    const absl::Status status =
        program_->RunByNode(machine_, cores, options, [&](uint32_t node) {
          const auto at = hashes.find(node);
          if (at == hashes.end()) return;
          for (const auto& [tensor, hash] : at->second) {
            ++compared;
            if (HashOf(*program_, tensor) == hash) continue;
            // Nodes behind the first wrong one are wrong because of it.
            if (wrong++ == 0) {
              ADD_FAILURE() << "node " << node << " ("
                            << program_->file().nodes[node].type << "), tensor "
                            << tensor;
            }
          }
        });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(wrong, 0U) << "of " << compared;
    size_t listed = 0;
    for (const auto& [node, tensors] : hashes) listed += tensors.size();
    EXPECT_EQ(compared, listed);
  }

  std::unique_ptr<LoadedProgram> program_;
  Machine machine_;
};

TEST_P(NetworkTest, PlainEngineComputesEveryTensor) {
  ExpectHashes(1, Engine::kPlain);
}

TEST_P(NetworkTest, FastEngineComputesEveryTensor) {
  ExpectHashes(1, Engine::kFast);
}

TEST_P(NetworkTest, TwoCoresComputeTheSame) { ExpectHashes(2, Engine::kFast); }

TEST_P(NetworkTest, ThreeCoresComputeTheSame) {
  ExpectHashes(3, Engine::kFast);
}

INSTANTIATE_TEST_SUITE_P(Published, NetworkTest, ::testing::ValuesIn(kNetworks),
                         [](const auto& network) {
                           return network.param.name;
                         });

TEST(PublishedProgramsTest, DemoComputesTheVectors) {
  for (const std::string set : {"vendor", "smooth"}) {
    for (const Engine engine : {Engine::kPlain, Engine::kFast}) {
      for (uint32_t cores = 1; cores <= 3; ++cores) {
        SCOPED_TRACE(set + ", " + std::to_string(cores) + " cores");
        auto program =
            LoadedProgram::Load("multiple_input_demo_v6_rk3588.rknn");
        if (!program) GTEST_SKIP() << "no ../shared (set RKNND_SHARED)";
        for (const auto& [tensor, input] :
             {std::pair{"input.1", "_in1_u8.bin"}, {"input", "_in2_u8.bin"}}) {
          std::vector<std::byte> image = Vector("demo_" + set + input);
          ASSERT_FALSE(image.empty());
          for (std::byte& b : image) b ^= std::byte{0x80};
          program->SetImage(program->TensorOf(tensor), image);
        }
        Machine machine;
        RunOptions options;
        options.engine = engine;
        const absl::Status status = program->Run(machine, cores, options);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(program->LogicalOf(program->TensorOf("7")),
                  Vector("demo_" + set + "_t7_i8.bin"));
        EXPECT_EQ(program->LogicalOf(program->TensorOf("8")),
                  Vector("demo_" + set + "_t8_i8.bin"));
      }
    }
  }
}

double OfHalf(uint16_t half) {
  const int exponent = (half >> 10) & 31, digits = half & 1023;
  const double size = exponent == 0 ? std::ldexp(digits, -24)
                                    : std::ldexp(1024 + digits, exponent - 25);
  return (half & 0x8000) != 0 ? -size : size;
}

TEST(PublishedProgramsTest, Float16ConvolutionIsRightTo999InThousand) {
  auto program = LoadedProgram::Load("conv_fp16_c32_rk3588.rknn");
  if (!program) GTEST_SKIP() << "no ../shared (set RKNND_SHARED)";
  const std::vector<std::byte> input = Vector("conv_fp16_in_f16_nchw.bin");
  const std::vector<std::byte> expected = Vector("conv_fp16_out_f32_nchw.bin");
  const std::span<std::byte> to = program->BytesOf(program->TensorOf("input"));
  constexpr size_t kPixels = 14 * 14;
  for (size_t c = 0; c < 32; ++c) {
    for (size_t p = 0; p < kPixels; ++p) {
      std::memcpy(&to[(c / 8 * kPixels + p) * 16 + c % 8 * 2],
                  &input[(c * kPixels + p) * 2], 2);
    }
  }
  Machine machine;
  const absl::Status status = program->Run(machine, 1, {});
  ASSERT_TRUE(status.ok()) << status;

  const std::vector<std::byte> output =
      program->LogicalOf(program->TensorOf("output"));
  const size_t count = output.size() / 2;
  ASSERT_EQ(expected.size(), count * 4);
  size_t equal = 0;
  for (size_t i = 0; i < count; ++i) {
    uint16_t half = 0;
    float value = 0;
    std::memcpy(&half, &output[i * 2], 2);
    std::memcpy(&value, &expected[i * 4], 4);
    const double unit = std::ldexp(
        1.0, std::max(std::ilogb(value == 0 ? 1e-9 : value), -14) - 10);
    const double error = std::fabs(OfHalf(half) - value);
    if (error <= unit / 2) ++equal;
    ASSERT_LE(error, unit * 1.5) << i;
  }
  EXPECT_GE(static_cast<double>(equal), 0.999 * static_cast<double>(count));
}

}  // namespace
}  // namespace rknnd::rknpu
