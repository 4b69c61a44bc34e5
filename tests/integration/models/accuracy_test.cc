// rknnctl accuracy: the right layers, the right numbers, the right files; and
// what it says of inputs and models that it cannot use.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "client/image/file.h"
#include "client/image/npy.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/quantized_models.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> Names(const json& answer) {
  std::vector<std::string> names;
  for (const json& layer : answer["layers"]) {
    names.push_back(layer["type"].get<std::string>() + " " +
                    layer["name"].get<std::string>());
  }
  return names;
}

// What quantisers put behind the name of a tensor.
const std::string kBytes = "_QuantizeLinear_Output";

double Cosine(const json& layer, const char* side, const char* which) {
  const json& distance = layer[side][which];
  return distance.is_object() && distance["cos"].is_number()
             ? distance["cos"].get<double>()
             : std::nan("");
}

class AccuracyTest : public IntegrationTest {
 protected:
  [[nodiscard]] std::string Snapshot() const { return folder() + "/snapshot"; }

  [[nodiscard]] std::vector<std::string> Arguments(
      const TestModel& model, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"accuracy", model.path,
                                          "--output-dir", Snapshot()};
    for (const std::string& input : model.inputs) {
      arguments.insert(arguments.end(), {"--input", input});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  json Analyse(const TestModel& model,
               const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = Arguments(model, more);
    arguments.insert(arguments.begin(), "--json");
    const RknnctlResult result = RunRknnctl(folder(), arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    json answer = json::parse(result.out, nullptr, false);
    EXPECT_FALSE(answer.is_discarded()) << result.out;
    return answer;
  }
  RknnctlResult Run(const std::vector<std::string>& arguments) {
    return RunRknnctl(folder(), arguments);
  }
  // What is in a file of the snapshot, as floats.
  [[nodiscard]] std::vector<float> Tensor(const std::string& file) const {
    const auto array = client::ReadNpy(Snapshot() + "/" + file);
    EXPECT_TRUE(array.ok()) << file;
    if (!array.ok()) return {};
    std::vector<float> values(array->bytes.size() / sizeof(float));
    std::memcpy(values.data(), array->bytes.data(), array->bytes.size());
    return values;
  }
  // The files of one of its folders.
  [[nodiscard]] std::vector<std::string> Files(const std::string& name) const {
    std::vector<std::string> files;
    std::error_code none;
    for (const auto& entry :
         fs::directory_iterator(Snapshot() + "/" + name, none)) {
      files.push_back(entry.path().filename().string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
};

TEST_F(AccuracyTest, WithoutATargetTheSimulatorIsComparedAlone) {
  const TestModel model = MakeQuantizedChain(folder());

  const json answer = Analyse(model);

  EXPECT_THAT(
      Names(answer),
      ElementsAre("InputOperator x", "ConvRelu r0" + kBytes, "Conv c1" + kBytes,
                  "Conv c2" + kBytes, "Conv c3" + kBytes, "OutputOperator y"));
  for (const json& layer : answer["layers"]) {
    EXPECT_GT(Cosine(layer, "simulator", "entire"), 0.99) << layer;
    EXPECT_GT(Cosine(layer, "simulator", "single"), 0.99) << layer;
    // 8 bits leave something out.
    EXPECT_GT(layer["simulator"]["entire"]["euc"], 0.01) << layer;
    EXPECT_TRUE(layer["runtime"].is_null());
  }
  // Errors add up; those of a layer alone do not.
  const json& last = answer["layers"][4];
  EXPECT_GT(last["simulator"]["entire"]["euc"],
            last["simulator"]["single"]["euc"]);
  EXPECT_TRUE(answer["first_inf"].is_null());
  EXPECT_EQ(answer["output_dir"], Snapshot());

  const std::vector<std::string> files = Files("simulator");
  EXPECT_EQ(files.size(), 6U);
  EXPECT_EQ(files[1], "0002_ConvRelu_r0" + kBytes + ".npy");
  EXPECT_EQ(Files("golden"), files);
  EXPECT_EQ(Files("simulator_single"), files);
  EXPECT_THAT(Files(""), ElementsAre("error_analysis.txt", "golden",
                                     "simulator", "simulator_single"));
}

TEST_F(AccuracyTest, TheTableIsPrintedAndKept) {
  const RknnctlResult result = Run(Arguments(MakeQuantizedChain(folder())));

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\n[ConvRelu] r0" + kBytes + "  "));
  EXPECT_THAT(result.out, HasSubstr("simulator_error"));
  EXPECT_THAT(result.out, Not(HasSubstr("runtime_error")));
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));  // no terminal
  EXPECT_EQ(ReadText(Snapshot() + "/error_analysis.txt"), result.out);
  EXPECT_EQ(result.err, "");
}

TEST_F(AccuracyTest, AWrongScaleShowsInItsLayerAlone) {
  for (const int wrong : {0, 2}) {
    SCOPED_TRACE(wrong);
    const json answer = Analyse(MakeQuantizedChain(folder(), wrong));

    // Convolution n is layer n + 1.
    const json& layers = answer["layers"];
    ASSERT_EQ(layers.size(), 6U);
    for (int n = 0; n < 6; ++n) {
      const json& layer = layers[static_cast<size_t>(n)];
      const double single = Cosine(layer, "simulator", "single");
      const double entire = Cosine(layer, "simulator", "entire");
      if (n == wrong + 1) {
        EXPECT_LT(single, 0.99) << layer;
      } else {
        EXPECT_GT(single, 0.99) << layer;
      }
      if (n <= wrong) {
        EXPECT_GT(entire, 0.99) << layer;
      } else {
        EXPECT_LT(entire, 0.99) << layer;
      }
    }
  }
}

TEST_F(AccuracyTest, ATargetIsComparedBesideTheSimulator) {
  StartDaemon();
  const TestModel model = MakeQuantizedChain(folder(), 2);

  const json answer = Analyse(model, {"--target", daemon().target()});

  for (const json& layer : answer["layers"]) {
    EXPECT_EQ(layer["runtime"]["entire"], layer["simulator"]["entire"]);
    EXPECT_EQ(layer["runtime"]["single_sim"]["cos"], 1.0) << layer;
    EXPECT_EQ(layer["runtime"]["single_sim"]["euc"], 0.0) << layer;
  }
  EXPECT_EQ(Files("runtime"), Files("simulator"));
  EXPECT_EQ(Files("runtime_single"), Files("simulator"));
  EXPECT_TRUE(answer["notes"].empty());
  // Nothing of it stays on the target.
  EXPECT_TRUE(OnlyNeighbourIsLeft());
  // The same by the environment's name of the target, as text.
  const RknnctlResult text =
      Run(Arguments(model, {"--target", daemon().target()}));
  EXPECT_THAT(text.out, HasSubstr("runtime_error"));
  EXPECT_THAT(text.out, HasSubstr("single_sim"));
}

TEST_F(AccuracyTest, ATargetThatIsNotThereIsNamed) {
  const RknnctlResult result =
      Run(Arguments(MakeQuantizedChain(folder()),
                    {"--target", "unix:" + folder() + "/none.sock"}));

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("none.sock"));
}

TEST_F(AccuracyTest, AnotherFloatModelMayBeGolden) {
  const TestModel model = MakeQuantizedChain(folder());
  const TestModel floats = MakeFloatChain(folder());
  const json own = Analyse(model);

  const json answer = Analyse(model, {"--golden", floats.path});

  // The weights are the same, so are the errors; that of c3 is called y there.
  ASSERT_EQ(answer["layers"].size(), 6U);
  for (const size_t n : {0, 1, 2, 3, 5}) {
    const json& layer = answer["layers"][n];
    EXPECT_NEAR(Cosine(layer, "simulator", "entire"),
                Cosine(own["layers"][n], "simulator", "entire"), 1e-6)
        << layer;
    EXPECT_EQ(layer["simulator"]["single"],
              own["layers"][n]["simulator"]["single"]);
  }
  EXPECT_TRUE(answer["layers"][4]["simulator"]["entire"].is_null());
  ASSERT_EQ(answer["notes"].size(), 1U);
  EXPECT_EQ(answer["notes"][0],
            "the golden model has 5 of the 6 tensors, by their names");

  const RknnctlResult result =
      Run(Arguments(model, {"--golden", folder() + "/no_such_golden.onnx"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no_such_golden.onnx"));
}

TEST_F(AccuracyTest, TheFirstLayerWithInfIsNamed) {
  const json answer = Analyse(MakeInfinite(folder()));

  EXPECT_EQ(answer["first_inf"],
            json({{"name", "l"}, {"type", "Log"}, {"in", "golden"}}));
  EXPECT_TRUE(answer["layers"][2]["simulator"]["entire"]["cos"].is_null());
  EXPECT_THAT(ReadText(Snapshot() + "/error_analysis.txt"),
              HasSubstr("the first layer with inf or nan is [Log] l"));
}

TEST_F(AccuracyTest, InputsThatDoNotFitAreErrors) {
  const TestModel model = MakeQuantizedChain(folder());
  TestModel two = model;
  two.inputs.push_back(model.inputs[0]);
  EXPECT_THAT(Run(Arguments(two)).err, HasSubstr("1 input and not 2"));

  TestModel other = model;
  const std::vector<size_t> shape = {1, 4, 8, 7};
  const std::vector<float> values(4 * 8 * 7);
  other.inputs = {folder() + "/other.npy"};
  ASSERT_TRUE(client::WriteNpy(other.inputs[0], client::ElementType::kFloat32,
                               shape, std::as_bytes(std::span(values)))
                  .ok());
  EXPECT_THAT(Run(Arguments(other)).err, HasSubstr("1x4x8x7"));

  other.inputs = {folder() + "/none.jpg"};
  const RknnctlResult missing = Run(Arguments(other));
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("none.jpg"));
  EXPECT_EQ(Run({"accuracy", model.path}).exit_code, 2);
}

TEST_F(AccuracyTest, ACompiledFileIsRefused) {
  TestModel model = MakeQuantizedChain(folder());
  model.path = WriteFile(folder() + "/model.rknn",
                         std::string("RKNN") + std::string(60, '\0'));

  const RknnctlResult result = Run(Arguments(model));

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("lacks the original model"));
}

TEST_F(AccuracyTest, AnEarlierAnalysisIsReplaced) {
  const TestModel model = MakeQuantizedChain(folder());
  Analyse(model, {"--golden", MakeFloatChain(folder()).path});
  WriteFile(Snapshot() + "/simulator/0009_Conv_old.npy", "old");
  WriteFile(Snapshot() + "/simulator/mine.txt", "mine");

  Analyse(model);

  const std::vector<std::string> files = Files("simulator");
  EXPECT_EQ(files.size(), 7U);
  EXPECT_EQ(files.back(), "mine.txt");
  EXPECT_THAT(Files(""), ElementsAre("error_analysis.txt", "golden",
                                     "simulator", "simulator_single"));
}

// ---- larger networks
// ----------------------------------------------------------

double CosineOf(const std::vector<float>& a, const std::vector<float>& b) {
  double product = 0;
  double a_square = 0;
  double b_square = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    product += double{a[i]} * b[i];
    a_square += double{a[i]} * a[i];
    b_square += double{b[i]} * b[i];
  }
  return a.size() == b.size() ? product / std::sqrt(a_square * b_square) : -2;
}

class AccuracyOfTest : public AccuracyTest,
                       public testing::WithParamInterface<const char*> {
 protected:
  // The last tensors of golden against the reference's outputs.
  void CompareOutputs(const TestModel& model, double least) {
    std::vector<std::string> outputs;
    for (const std::string& file : Files("golden")) {
      if (file.find("_OutputOperator_") != std::string::npos) {
        outputs.push_back(file);
      }
    }
    ASSERT_EQ(outputs.size(), model.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string bytes = ReadText(model.outputs[i]);
      std::vector<float> expected(bytes.size() / sizeof(float));
      std::memcpy(expected.data(), bytes.data(), bytes.size());
      EXPECT_GT(CosineOf(Tensor("golden/" + outputs[i]), expected), least)
          << outputs[i];
    }
  }
};

class AccuracyOfFloatTest : public AccuracyOfTest {};

TEST_P(AccuracyOfFloatTest, GoldenIsTheReferencesAndNothingIsLost) {
  const auto model = SharedModel(GetParam(), 0);
  if (!model) GTEST_SKIP() << "no model " << GetParam() << " in RKNND_SHARED";

  const json answer = Analyse(*model);

  EXPECT_GT(answer["layers"].size(), 5U);
  for (const json& layer : answer["layers"]) {
    EXPECT_GT(Cosine(layer, "simulator", "entire"), 0.999999) << layer;
    EXPECT_GT(Cosine(layer, "simulator", "single"), 0.999999) << layer;
  }
  CompareOutputs(*model, 0.99999);
}
INSTANTIATE_TEST_SUITE_P(Models, AccuracyOfFloatTest,
                         testing::Values("mnist_8", "ultraface_rfb_320",
                                         "vittrack"));

class AccuracyOfQuantizedTest : public AccuracyOfTest {};

TEST_P(AccuracyOfQuantizedTest, EachLayerAloneIsNearGolden) {
  const auto model = SharedModel(GetParam(), 0);
  if (!model) GTEST_SKIP() << "no model " << GetParam() << " in RKNND_SHARED";

  const json answer = Analyse(*model);

  EXPECT_GT(answer["layers"].size(), 20U);
  for (const json& layer : answer["layers"]) {
    EXPECT_GT(Cosine(layer, "simulator", "single"), 0.99) << layer;
    EXPECT_GT(Cosine(layer, "simulator", "entire"), 0.85) << layer;
    // Alone a layer loses no more than with all before it, but for luck.
    EXPECT_LT(layer["simulator"]["single"]["euc"].get<double>(),
              1 + 2 * layer["simulator"]["entire"]["euc"].get<double>())
        << layer;
  }
  CompareOutputs(*model, 0.9);
}
INSTANTIATE_TEST_SUITE_P(Models, AccuracyOfQuantizedTest,
                         testing::Values("retinaface_int8_qdq",
                                         "shufflenet_v2_int8"));

}  // namespace
}  // namespace rknnd::integration
