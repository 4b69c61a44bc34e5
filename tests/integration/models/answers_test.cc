// The stored answers of trained networks, by C programs that know rknn_api.h
// and nothing else, through both targets.

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

struct Network {
  const char* name;
  const char* float32_tolerance;
  const char* layout = "nchw";  // of its images
};
constexpr char kFloat16Tolerance[] = "2e-3";
// Stored outputs of the third are float16 themselves.
constexpr Network kNetworks[] = {{"mnist_8", "1e-4"},
                                 {"ultraface_rfb_320", "1e-4"},
                                 {"squeezenet_fp16", "2e-3"}};
// The others, with tensors of the graphs' own types. Most steps of the last are
// a hundredth of its largest output.
constexpr Network kOthers[] = {{"yunet_n_320", "1e-4"},
                               {"yolox_nano", "1e-4"},
                               {"selfie_segmentation", "1e-4", "nhwc"},
                               {"vittrack", "1e-4"},
                               {"retinaface_int8_qdq", "1e-6"},
                               {"shufflenet_v2_int8", "1e-2"}};
constexpr Network kWithIntegers[] = {{"magika_v3_3", "1e-4"}};

// Network, its set of inputs, target, way of giving data, type of data.
using Parameters =
    std::tuple<Network, int, std::string, std::string, std::string>;

class AnswersTest : public IntegrationTest,
                    public testing::WithParamInterface<Parameters> {};

TEST_P(AnswersTest, StoredAnswersComeBack) {
  const auto& [network, set, target, way, type] = GetParam();
  const auto model = SharedModel(network.name, set);
  if (!model) GTEST_SKIP() << network.name << " is not in RKNND_SHARED";
  if (target != kLocal) StartDaemon();

  std::vector<std::string> arguments = {
      ProgramPath("tests/integration_answers"),
      model->path,
      way,
      type,
      network.layout,
      type == "fp16" ? kFloat16Tolerance : network.float32_tolerance};
  arguments.insert(arguments.end(), model->inputs.begin(), model->inputs.end());
  arguments.emplace_back(":");
  arguments.insert(arguments.end(), model->outputs.begin(),
                   model->outputs.end());
  EXPECT_EQ(
      RunProgram(arguments, target == kLocal ? kLocal : daemon().target()), 0);
}

std::string NameOf(const testing::TestParamInfo<Parameters>& tested) {
  const auto& [network, set, target, way, type] = tested.param;
  return std::string(network.name) + "_" + std::to_string(set) + "_" +
         target.substr(0, target.find(':')) + "_" + way + "_" + type;
}

INSTANTIATE_TEST_SUITE_P(, AnswersTest,
                         testing::Combine(testing::ValuesIn(kNetworks),
                                          testing::Values(0, 1),
                                          testing::Values("unix", kLocal),
                                          testing::Values("copy", "bound"),
                                          testing::Values("fp32", "fp16")),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(Others, AnswersTest,
                         testing::Combine(testing::ValuesIn(kOthers),
                                          testing::Values(0),
                                          testing::Values("unix", kLocal),
                                          testing::Values("copy", "bound"),
                                          testing::Values("fp32")),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(Integers, AnswersTest,
                         testing::Combine(testing::ValuesIn(kWithIntegers),
                                          testing::Values(1),
                                          testing::Values("unix", kLocal),
                                          testing::Values("copy", "bound"),
                                          testing::Values("int32")),
                         NameOf);

using VendorProgramTest = IntegrationTest;

TEST_F(VendorProgramTest, FindsWhatItExpectsOverTheSocket) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  EXPECT_EQ(
      RunProgram({ProgramPath("tests/integration_vendor_style"), model.path},
                 daemon().target()),
      0);
}

TEST_F(VendorProgramTest, FindsWhatItExpectsInItsOwnProcess) {
  const TestModel model = MakeConvNet(folder());
  EXPECT_EQ(
      RunProgram({ProgramPath("tests/integration_vendor_style"), model.path},
                 kLocal),
      0);
}

}  // namespace
}  // namespace rknnd::integration
