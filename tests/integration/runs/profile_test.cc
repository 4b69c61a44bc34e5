// Reports as people and scripts get them: per-layer times, memory, dumps, what
// a model file is; by rknnctl, by the C API and by RKNN_LOG_LEVEL; and compiled
// files (.rknn), which answer questions and do not run.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "driver/rknn_file/testing/rknn_builder.h"
#include "rknn_api.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr char kInfoOnly[] = "256";  // RKNN_FLAG_COLLECT_MODEL_INFO_ONLY

std::set<std::string> FilesIn(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

class ProfileTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    model_ = MakeConvNet(folder());
  }

  json Ask(const std::vector<std::string>& arguments) {
    return AskRknnctl(folder(), daemon().target(), arguments);
  }
  RknnctlResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--target", daemon().target()});
    return RunRknnctl(folder(), arguments);
  }
  // rknnctl takes raw tensors by their extension.
  std::string InputFile() {
    return WriteFile(folder() + "/input.bin", ReadText(model_.inputs[0]));
  }
  std::string RknnFile() {
    return WriteFile(
        folder() + "/net.rknn",
        rknn_file::testing::Build(rknn_file::testing::SmallModel()));
  }
  // A client with a log level, in the test's folder.
  std::unique_ptr<ClientProcess> StartLoud(const std::string& level) {
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder());
    auto client = StartClient({{"RKNN_LOG_LEVEL", level}});
    std::filesystem::current_path(before);
    return client;
  }
  std::string LogOfARun(const std::string& level) {
    const auto client = StartLoud(level);
    EXPECT_TRUE(Done(client->Do("init m " + model_.path)));
    EXPECT_TRUE(Done(client->Do("inputs m" + model_.input_list())));
    EXPECT_TRUE(Done(client->Do("run m")));
    EXPECT_TRUE(Right(client->Do("compare m" + model_.output_list()), 1e-3));
    return client->log();
  }

  TestModel model_;
};

// ---- layer times ------------------------------------------------------------

TEST_F(ProfileTest, PerfHasTheGuidesColumnsAndRanking) {
  for (const std::string& target : {daemon().target(), std::string(kLocal)}) {
    const RknnctlResult result =
        RunRknnctl(folder(), {"--target", target, "perf", model_.path});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const char* words : {"Network Layer Information Table",
                              "ID",
                              "OpType",
                              "DataType",
                              "Target",
                              "InputShape",
                              "OutputShape",
                              "DDRCycles",
                              "NPUCycles",
                              "MaxCycles",
                              "Time(us)",
                              "MacUsage(%)",
                              "WorkLoad(0/1/2)",
                              "TaskNumber",
                              "RW(KB)",
                              "FullName",
                              "Kernel",
                              "Total Operator Elapsed Per Frame Time(us)",
                              "Total Memory Read/Write Per Frame Size(KB)",
                              "Operator Time Consuming Ranking Table",
                              "CallNumber",
                              "CPUTime(us)",
                              "GPUTime(us)",
                              "NPUTime(us)",
                              "TotalTime(us)",
                              "TimeRatio(%)",
                              "frames per second"}) {
      EXPECT_THAT(result.out, HasSubstr(words));
    }
  }
}

TEST_F(ProfileTest, PerfAsJsonHasARowPerLayer) {
  const json perf = Ask({"perf", model_.path, "--core-mask", "1"});
  ASSERT_GE(perf["layers"].size(), 3U);
  EXPECT_EQ(perf["layers"][0]["op_type"], "InputOperator");
  EXPECT_EQ(perf["layers"][0]["target"], "CPU");
  const json& conv = perf["layers"][1];
  EXPECT_EQ(conv["op_type"], "ConvRelu");
  EXPECT_EQ(conv["id"], 2);
  EXPECT_THAT(conv["full_name"].get<std::string>(), StartsWith("Conv:"));
  EXPECT_THAT(conv["input_shape"].get<std::string>(),
              StartsWith("(1,3,16,16)"));
  EXPECT_EQ(conv["work_load"], json({0.0, 100.0, 0.0}));
  EXPECT_NE(conv["kernel"], "");
  EXPECT_EQ(conv["is_slow"], false);
  EXPECT_EQ(perf["layers"].back()["op_type"], "OutputOperator");
  double ratio = 0;
  for (const json& type : perf["ranking"]) {
    ratio += type["time_ratio"].get<double>();
  }
  EXPECT_NEAR(ratio, 100.0, 0.01);
  EXPECT_GT(perf["fps"], 0);
}

// ---- memory -----------------------------------------------------------------

TEST_F(ProfileTest, MemoryOfAModel) {
  const json memory = Ask({"mem", model_.path});
  EXPECT_GT(memory["weight"], 0);
  EXPECT_GT(memory["internal"], 0);
  EXPECT_EQ(memory["total"].get<uint64_t>(),
            memory["weight"].get<uint64_t>() +
                memory["internal"].get<uint64_t>() +
                memory["other"].get<uint64_t>());
  EXPECT_EQ(memory["model_size"], std::filesystem::file_size(model_.path));
  EXPECT_THAT(Run({"mem", model_.path}).out,
              HasSubstr("Internal Tensor Memory: "));
}

// ---- dumps ------------------------------------------------------------------

TEST_F(ProfileTest, DumpWritesTheOutputOfEachLayer) {
  const std::string input = InputFile();
  for (const std::string& target : {daemon().target(), std::string(kLocal)}) {
    const std::string out =
        folder() + "/dump_" + (target == kLocal ? "l" : "d");
    const json dump = AskRknnctl(
        folder(), target,
        {"dump", model_.path, "--input", input, "--output-dir", out});
    const json perf = AskRknnctl(folder(), target, {"perf", model_.path});
    EXPECT_EQ(dump["files"].size(), perf["layers"].size());
    const std::set<std::string> files = FilesIn(out);
    ASSERT_EQ(files.size(), perf["layers"].size());
    EXPECT_EQ(*files.begin(), "0001_InputOperator_image.npy");
    EXPECT_THAT(*std::next(files.begin()), HasSubstr("0002_ConvRelu_"));
    EXPECT_THAT(*files.rbegin(), HasSubstr("_OutputOperator_features.npy"));
    // The tensors are the ends of the files.
    EXPECT_TRUE(ReadText(out + "/0001_InputOperator_image.npy")
                    .ends_with(ReadText(model_.inputs[0])));
    EXPECT_TRUE(ReadText(out + "/" + *files.rbegin())
                    .ends_with(ReadText(model_.outputs[0])));
  }
}

TEST_F(ProfileTest, DumpIntoAFolderInUseIsRefused) {
  WriteFile(folder() + "/old.npy", "x");
  const RknnctlResult result =
      Run({"dump", model_.path, "--output-dir", folder()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("has .npy files already"));
}

TEST_F(ProfileTest, QuantizedModelsAreDumpedAsRealNumbers) {
  const auto model = SharedModel("shufflenet_v2_int8", 0);
  if (!model) GTEST_SKIP() << "no shared models";
  const std::string out = folder() + "/quantized";
  const json dump = Ask({"dump", model->path, "--output-dir", out});
  for (const json& file : dump["files"]) {
    EXPECT_EQ(file["type"], "float32") << file.dump();
  }
}

// ---- what a file is ---------------------------------------------------------

TEST_F(ProfileTest, InfoOfAnOnnxFileWithAndWithoutADaemon) {
  const json with = Ask({"info", model_.path});
  EXPECT_EQ(with["format"], "onnx");
  EXPECT_EQ(with["inputs"][0]["name"], "image");
  EXPECT_EQ(with["outputs"][0]["name"], "features");
  EXPECT_GT(with["versions"]["ir"], 0);
  ASSERT_THAT(with["versions"]["opsets"], SizeIs(1));
  EXPECT_EQ(Status().model_count, 1U);

  EXPECT_EQ(AskRknnctl(folder(), kLocal, {"info", model_.path}), with);
  const RknnctlResult alone = RunRknnctl(folder(), {"info", model_.path});
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("features"));
}

TEST_F(ProfileTest, InfoSaysWhatComputesTheLayers) {
  const json info = Ask({"info", model_.path});
  EXPECT_EQ(info["slow_layers"], json::array());
  ASSERT_FALSE(info["kernels"].empty());
  const std::string kernel = info["kernels"].begin().key();
  EXPECT_THAT(Run({"info", model_.path}).out,
              AllOf(HasSubstr("kernels: "), HasSubstr(kernel),
                    Not(HasSubstr("slow layer"))));
}

TEST_F(ProfileTest, LayerWithoutAKernelIsNamedByInfoAndInTheLog) {
  const TestModel huge = MakeHugeKernel(folder());
  const json info = Ask({"info", huge.path});
  if (info["slow_layers"].empty()) {
    GTEST_SKIP() << "this CPU has a kernel: " << info["kernels"];
  }
  EXPECT_EQ(info["slow_layers"][0]["full_name"], "Conv:huge");
  EXPECT_THAT(Run({"info", huge.path}).out,
              HasSubstr("slow layer: Conv:huge, Conv "));
  EXPECT_THAT(daemon().log(),
              AllOf(HasSubstr("no kernel is made on this CPU for 1 of its "
                              "layers"),
                    HasSubstr("They are: 'huge' (Conv, ")));
  // Without a daemon the program hears it.
  const auto client =
      StartClient({{"RKNN_LOG_LEVEL", "2"}, {"RKNND_TARGET", kLocal}});
  ASSERT_TRUE(Done(client->Do("init m " + huge.path)));
  EXPECT_THAT(client->log(), HasSubstr("warning: model 'huge_kernel.onnx': no "
                                       "kernel is made on this CPU"));
}

TEST_F(ProfileTest, InfoOfACompiledFile) {
  const json info = Ask({"info", RknnFile()});
  EXPECT_EQ(info["format"], "rknn");
  EXPECT_EQ(info["target"], "rk3588");
  EXPECT_EQ(info["versions"]["toolkit"], "2.3.2");
  EXPECT_EQ(info["inputs"][0]["quantization"]["zero_point"], -3);
  EXPECT_EQ(info["layers"]["cpu"], 2);
}

TEST_F(ProfileTest, InfoNamesWhatItCannotRead) {
  const std::string path =
      WriteFile(folder() + "/secret.rknn", "CYPTRKNN" + std::string(64, 'x'));
  const RknnctlResult result = Run({"info", path});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("an encrypted .rknn model"));
}

// ---- compiled files ---------------------------------------------------------

TEST_F(ProfileTest, CompiledFileDoesNotRunAndSaysWhatItIs) {
  const auto client = StartClient();
  const std::string path = RknnFile();
  for (const char* words : {"compiled for rk3588", "give the ONNX model",
                            "toolkit 2.3.2", "input 'x' 1x3x8x8 INT8"}) {
    EXPECT_THAT(client->Do("init m " + path),
                Fails(RKNN_ERR_MODEL_INVALID, words));
  }
  EXPECT_EQ(Status().model_count, 0U);
}

TEST_F(ProfileTest, ModelInfoOnlyAnswersForCompiledFilesAndOnnxAlike) {
  const auto client = StartClient();
  for (const std::string& path : {RknnFile(), model_.path}) {
    ASSERT_TRUE(Done(client->Do("init m " + path + " " + kInfoOnly)));
    EXPECT_TRUE(Done(client->Do("memory_size m")));
    EXPECT_TRUE(Done(client->Do("describe m")));
    EXPECT_THAT(client->Do("run m"),
                Fails(RKNN_ERR_FAIL, "RKNN_FLAG_COLLECT_MODEL_INFO_ONLY"));
    ASSERT_TRUE(Done(client->Do("destroy m")));
  }
}

TEST_F(ProfileTest, AttributesOfACompiledFileAreTheFiles) {
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init m " + RknnFile() + " " + kInfoOnly)));
  EXPECT_EQ(client->Do("describe m").text,
            "x INT8 NHWC 1,8,8,3 -3 0.5; y INT8 UNDEFINED 1,4 -3 0.5; ''");
  const json memory = Ask({"mem", RknnFile()});
  EXPECT_EQ(memory["weight"], 128);
  EXPECT_EQ(memory["internal"], 1088);
  // The board's memory has none of it.
  EXPECT_EQ(Status().memory.weight, 0U);
}

TEST_F(ProfileTest, DamagedCompiledFileIsRefusedEvenForInfo) {
  const auto client = StartClient();
  std::string bytes = ReadText(RknnFile());
  bytes.resize(200);
  const std::string path = WriteFile(folder() + "/cut.rknn", bytes);
  EXPECT_THAT(client->Do("init m " + path + " " + kInfoOnly),
              Fails(RKNN_ERR_MODEL_INVALID, "damaged"));
}

// ---- RKNN_LOG_LEVEL ---------------------------------------------------------

TEST_F(ProfileTest, LevelThreeTellsOfTheModelAtInit) {
  const std::string log = LogOfARun("3");
  EXPECT_THAT(log, AllOf(HasSubstr("RKNN Runtime Information"),
                         HasSubstr("RKNN Driver Information"),
                         HasSubstr("RKNN Model Information"),
                         HasSubstr("Total Weight Memory Size: "),
                         HasSubstr("SramHit")));
  EXPECT_THAT(log, Not(HasSubstr("Network Layer Information Table")));
}

TEST_F(ProfileTest, LevelTwoTellsNothingOfIt) {
  EXPECT_THAT(LogOfARun("2"), Not(HasSubstr("Information")));
}

TEST_F(ProfileTest, LevelFourTellsOfEachLayerAfterARun) {
  const std::string log = LogOfARun("4");
  EXPECT_THAT(log, HasSubstr("Network Layer Information Table"));
  EXPECT_THAT(log, HasSubstr("ConvRelu"));
  EXPECT_TRUE(FilesIn(folder() + "/dumps").empty());
}

TEST_F(ProfileTest, LevelFiveWritesEachLayersOutput) {
  if (access("/userdata", W_OK) == 0) GTEST_SKIP() << "/userdata is there";
  LogOfARun("5");
  const std::set<std::string> files = FilesIn(folder() + "/dumps");
  ASSERT_GE(files.size(), 3U);
  EXPECT_THAT(*files.begin(), HasSubstr("InputOperator"));
  EXPECT_THAT(*files.rbegin(), HasSubstr("OutputOperator"));
  EXPECT_TRUE(ReadText(folder() + "/dumps/" + *files.rbegin())
                  .ends_with(ReadText(model_.outputs[0])));
}

TEST_F(ProfileTest, LevelFiveThatCannotWriteRunsAllTheSame) {
  if (access("/userdata", W_OK) == 0) GTEST_SKIP() << "/userdata is there";
  WriteFile(folder() + "/dumps", "no folder");
  EXPECT_THAT(LogOfARun("5"), HasSubstr("no dump: "));
}

}  // namespace
}  // namespace rknnd::integration
