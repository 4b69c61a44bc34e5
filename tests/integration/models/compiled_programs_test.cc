// Compiled models (.rknn) through real daemons and the C API, from processes of
// their own: what a program gets of them that it knows from ONNX models. The
// models are written by the tests, so that their answers are known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/placement.h"
#include "driver/rknpu/testing/small_network.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr size_t kElements = 60;

// Counts down from 30, for each slice.
TestModel MakeProgram(const std::string& folder, int8_t added = 1,
                      uint32_t slices = 1) {
  const std::string name = folder + "/program_" + std::to_string(added) + "_" +
                           std::to_string(slices);
  std::vector<float> x;
  std::vector<float> y;
  std::vector<float> sum;
  for (size_t i = 0; i < slices * kElements; ++i) {
    const auto number = static_cast<float>(30 - static_cast<int>(i % 60)) -
                        static_cast<float>(i / 60);
    x.push_back(number);
    y.push_back(number < 0 ? 0 : number);
    sum.push_back(number + added);
  }
  const auto write = [&](const char* what, const std::vector<float>& numbers) {
    return WriteFile(name + what,
                     std::string(reinterpret_cast<const char*>(numbers.data()),
                                 numbers.size() * sizeof(float)));
  };
  TestModel model;
  model.path = WriteFile(
      name + ".rknn",
      rknpu::testing::Build(rknpu::testing::SmallNetwork(added, slices)));
  model.inputs = {write("_x", x)};
  model.outputs = {write("_y", y), write("_sum", sum)};
  return model;
}

// The model of `path` as the executor places it.
struct Sizes {
  uint64_t weights = 0, internal = 0;
  uint64_t held = 0;  // all that it takes on three cores, once
};
Sizes SizesOf(const std::string& path) {
  const std::string bytes = ReadText(path);
  const auto file = rknpu::Read(std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(file.ok());
  const auto placement = rknpu::PlaceTensors(*file);
  EXPECT_TRUE(placement.ok()) << placement.status();
  return {.weights = file->weight_bytes,
          .internal = file->internal_bytes,
          .held = placement->constant_bytes +
                  3 * (placement->private_bytes + file->commands.size() * 8 +
                       file->tasks.size() * 40)};
}

class CompiledProgramsTest : public IntegrationTest,
                             public ::testing::WithParamInterface<bool> {
 protected:
  // Of a daemon, or of the client itself.
  std::unique_ptr<ClientProcess> Start(const Environment& more = {}) {
    if (GetParam()) return StartClient(more, kLocal);
    StartDaemon();
    return StartClient(more);
  }
};

TEST_P(CompiledProgramsTest, AnswersOnEachSetOfCores) {
  const auto client = Start();
  const TestModel model = MakeProgram(folder());
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  EXPECT_EQ(client->Do("memory_size a").text, "64");
  for (const char* mask : {"1", "2", "4", "3", "7"}) {
    EXPECT_TRUE(Done(client->Do(std::string("mask a ") + mask)));
    EXPECT_TRUE(RunsRight(*client, "a", model)) << mask;
  }
}

TEST_P(CompiledProgramsTest, DuplicatesOutliveWhatTheyCameFrom) {
  const auto client = Start();
  const TestModel model = MakeProgram(folder());
  const TestModel other = MakeProgram(folder(), 5);
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("dup b a")));
  ASSERT_TRUE(Done(client->Do("init c " + other.path)));
  EXPECT_TRUE(RunsRight(*client, "a", model));
  EXPECT_TRUE(RunsRight(*client, "b", model));
  EXPECT_TRUE(RunsRight(*client, "c", other));
  ASSERT_TRUE(Done(client->Do("destroy a")));
  EXPECT_TRUE(RunsRight(*client, "b", model));
}

TEST_P(CompiledProgramsTest, ProgramsBringInternalAndWeightMemory) {
  const auto client = Start();
  const TestModel model = MakeProgram(folder());
  ASSERT_TRUE(Done(client->Do("init a " + model.path + " " +
                              std::to_string(RKNN_FLAG_MEM_ALLOC_OUTSIDE))));
  const std::string internal = client->Do("internal_size a").text;
  EXPECT_EQ(internal, std::to_string(SizesOf(model.path).internal));
  ASSERT_TRUE(Done(client->Do("create i a " + internal)));
  ASSERT_TRUE(Done(client->Do("internal a i")));
  ASSERT_TRUE(Done(client->Do("create w a 64")));
  ASSERT_TRUE(Done(client->Do("weights a w")));
  EXPECT_TRUE(RunsRight(*client, "a", model));
  // Three kernels, each with its own channel.
  EXPECT_EQ(client->Do("peek w 0 48").text,
            "01000000000000000000000000000000"
            "00010000000000000000000000000000"
            "00000100000000000000000000000000");
  // Too little of either is refused.
  ASSERT_TRUE(Done(client->Do("create t a 32")));
  EXPECT_FALSE(Done(client->Do("weights a t")));
  EXPECT_FALSE(Done(client->Do("internal a t")));
}

TEST_P(CompiledProgramsTest, MemoryOfAnyKindIsBound) {
  const auto client = Start();
  const TestModel model = MakeProgram(folder());
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("bind_all a")));
  ASSERT_TRUE(Done(client->Do("fill a.in0" + model.input_list())));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Done(client->Do("run a")));
    EXPECT_TRUE(Right(client->Do("compare_mem a.out0 " + model.outputs[0]), 0));
    EXPECT_TRUE(Right(client->Do("compare_mem a.out1 " + model.outputs[1]), 0));
  }
  // And as the NPU has it: lines of 16 pixels of three channels in, atoms of 16
  // channels out.
  ASSERT_TRUE(Done(client->Do("init n " + model.path)));
  ASSERT_TRUE(Done(client->Do("create in n 192")));
  ASSERT_TRUE(Done(client->Do("create out n 640")));
  ASSERT_TRUE(Done(client->Do("create flat n 64")));
  ASSERT_TRUE(Done(client->Do("bind n in in 0 native")));
  ASSERT_TRUE(Done(client->Do("bind n out out 0 native")));
  ASSERT_TRUE(Done(client->Do("bind n flat out 1 native")));
  ASSERT_TRUE(Done(client->Do("poke in 0 0x11")));
  ASSERT_TRUE(Done(client->Do("poke in 1 0xf0")));
  ASSERT_TRUE(Done(client->Do("poke in 2 0x7f")));
  ASSERT_TRUE(Done(client->Do("run n")));
  EXPECT_EQ(client->Do("peek out 0 4").text, "11007f00");
  EXPECT_EQ(client->Do("peek flat 0 1").text, "12");
  EXPECT_EQ(client->Do("peek flat 20 1").text, "f1");
  EXPECT_EQ(client->Do("peek flat 40 1").text, "7f");  // as large as it gets
}

TEST_P(CompiledProgramsTest, BatchesRunSliceAfterSlice) {
  const auto client = Start();
  const TestModel model = MakeProgram(folder(), 2, 4);
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  EXPECT_TRUE(RunsRight(*client, "a", model));
  EXPECT_TRUE(Done(client->Do("batch_cores a 3")));
  EXPECT_TRUE(RunsRight(*client, "a", model));
}

// The file has given every tensor its place: SRAM holds what lies first.
TEST_P(CompiledProgramsTest, SramHoldsTheStartOfInternalMemory) {
  const auto client = Start();
  const TestModel model = MakeProgram(folder());
  constexpr uint64_t kTotal = 978944;
  const uint64_t pages = (SizesOf(model.path).internal + 4095) / 4096 * 4096;
  ASSERT_TRUE(Done(client->Do("init a " + model.path + " " +
                              std::to_string(RKNN_FLAG_ENABLE_SRAM))));
  EXPECT_EQ(client->Do("sram_size a").text,
            std::to_string(kTotal) + " " + std::to_string(kTotal - pages));
  EXPECT_TRUE(RunsRight(*client, "a", model));
}

INSTANTIATE_TEST_SUITE_P(Targets, CompiledProgramsTest,
                         ::testing::Values(false, true), [](const auto& test) {
                           return test.param ? "local" : "unix";
                         });

class CompiledReportsTest : public IntegrationTest {
 protected:
  json Ask(const std::vector<std::string>& arguments) {
    return AskRknnctl(folder(), daemon().target(), arguments);
  }
};

TEST_F(CompiledReportsTest, LayersAreTimedAndCounted) {
  StartDaemon();
  const TestModel model = MakeProgram(folder());
  const json perf = Ask({"perf", model.path});
  const json& layers = perf["layers"];
  ASSERT_THAT(layers, SizeIs(5));
  // 20 pixels of 16 channels and 3 kernels; 60 bytes of pixels and 48 of
  // weights, a map of 640.
  EXPECT_EQ(layers[1]["op_type"], "ConvRelu");
  EXPECT_EQ(layers[1]["target"], "NPU");
  EXPECT_EQ(layers[1]["kernel"], "emulated NPU");
  EXPECT_EQ(layers[1]["npu_cycles"], 20);
  EXPECT_EQ(layers[1]["ddr_cycles"], 40);
  EXPECT_EQ(layers[1]["max_cycles"], 40);
  EXPECT_EQ(layers[3]["op_type"], "Reshape");
  EXPECT_EQ(layers[3]["target"], "CPU");
}

TEST_F(CompiledReportsTest, LayersAreDumped) {
  StartDaemon();
  const TestModel model = MakeProgram(folder());
  const json dump =
      Ask({"dump", model.path, "--output-dir", folder() + "/layers"});
  std::vector<std::string> files;
  for (const json& file : dump["files"]) files.push_back(file["file"]);
  EXPECT_THAT(files,
              ElementsAre("0001_InputOperator_x.npy", "0002_ConvRelu_y.npy",
                          "0003_Conv_s.npy", "0004_Reshape_sum.npy"));
}

TEST_F(CompiledReportsTest, WhatAnswersIsTold) {
  StartDaemon();
  const json status = Ask({"status"});
  EXPECT_EQ(status["answers"]["onnx"], "software NPU");
  EXPECT_EQ(status["answers"]["rknn"], "emulated NPU");
}

TEST_F(CompiledReportsTest, RunsAreRecordedAndComparedToTheByte) {
  StartDaemon();
  const std::string model = MakeProgram(folder()).path;
  const std::string fixture = folder() + "/fixture";
  const json recorded = Ask({"record", model, "--output-dir", fixture});
  EXPECT_EQ(recorded["layers"], 4);
  EXPECT_EQ(recorded["outputs"], 2);
  // There, and by the emulated NPU of rknnctl's own process.
  for (const std::string& target : {daemon().target(), std::string("local:")}) {
    const RknnctlResult same = RunRknnctl(
        folder(), {"--target", target, "record", model, "--compare", fixture});
    EXPECT_EQ(same.exit_code, 0) << same.err;
    EXPECT_EQ(same.out, "6 tensors equal, to the byte\n");
  }

  // One byte of a layer is another one.
  const std::string layer = fixture + "/layers/0003_Conv_s.npy";
  std::string bytes = ReadText(layer);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteFile(layer, bytes);
  const RknnctlResult other = RunRknnctl(
      folder(),
      {"--target", daemon().target(), "record", model, "--compare", fixture});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.out,
              ::testing::AllOf(
                  ::testing::HasSubstr(
                      "layers/0003_Conv_s.npy  1 of 60 values, the first at "
                      "index 59"),
                  ::testing::HasSubstr("1 of 6 tensors differ")));
  const RknnctlResult wrong = RunRknnctl(
      folder(), {"--target", daemon().target(), "record",
                 MakeProgram(folder(), 5).path, "--compare", fixture});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, ::testing::HasSubstr("of another file than"));
}

// What a damaged folder says. Nothing of it is trusted.
TEST_F(CompiledReportsTest, DamagedRecordingsAreRefused) {
  StartDaemon();
  const std::string model = MakeProgram(folder()).path;
  const std::string fixture = folder() + "/fixture";
  (void)Ask({"record", model, "--output-dir", fixture});
  const std::string description = ReadText(fixture + "/fixture.json");
  const auto complaint = [&] {
    const RknnctlResult result = RunRknnctl(
        folder(),
        {"--target", daemon().target(), "record", model, "--compare", fixture});
    EXPECT_EQ(result.exit_code, 1);
    return result.err;
  };
  for (const char* text : {"", "{}", "[]", "7", "{\"format\": \"x\"}"}) {
    WriteFile(fixture + "/fixture.json", text);
    EXPECT_THAT(complaint(), ::testing::HasSubstr("fixture.json")) << text;
  }
  WriteFile(fixture + "/fixture.json", R"({"format": 2})");
  EXPECT_THAT(complaint(), ::testing::HasSubstr("another format"));
  WriteFile(fixture + "/fixture.json", description);
  WriteFile(fixture + "/input_0.bin", "short");
  EXPECT_THAT(complaint(), ::testing::HasSubstr("input"));
}

TEST_F(CompiledReportsTest, ABoardIsTestedStepByStep) {
  StartDaemon();
  const TestModel model = MakeProgram(folder(), 3);
  // FP32 by its size.
  const std::string input =
      WriteFile(folder() + "/x.bin", ReadText(model.inputs[0]));
  const std::string report = folder() + "/report.json";
  const RknnctlResult result = RunRknnctl(
      folder(), {"--target", daemon().target(), "selftest", "--network",
                 model.path + "=" + input, "--runs", "60", "--output", report});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;

  const RknnctlResult noise = RunRknnctl(
      folder(), {"--target", daemon().target(), "selftest", "--network",
                 model.path, "--runs", "60", "--reset", "--output", report});
  EXPECT_EQ(noise.exit_code, 0) << noise.out << noise.err;
  const json told = json::parse(ReadText(report));
  EXPECT_EQ(told["passed"], true);
  EXPECT_EQ(told["status"]["device"]["soc"], "rk3588");
  std::vector<std::string> steps;
  for (const json& step : told["steps"]) {
    EXPECT_NE(step["result"], "failed") << step;
    steps.push_back(step["step"]);
  }
  EXPECT_THAT(steps, ElementsAre("doctor", "device", "network", "network",
                                 "runs", "reset", "sram", "dma-buf"));
}

TEST_F(CompiledReportsTest, ASelfTestWithoutADaemonSaysWhatIsMissing) {
  const RknnctlResult result =
      RunRknnctl(folder(), {"--target", "unix:" + folder() + "/none.sock",
                            "selftest", "--runs", "1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, ::testing::HasSubstr("device  FAILED"));
}

// The network that rknnctl has with it is the one that tests write.
TEST(SelfTestNetworkTest, IsTheSmallNetwork) {
  EXPECT_EQ(ReadText(std::string(RKNND_SOURCE_ROOT) +
                     "/client/ctl/selftest/network.rknn"),
            rknpu::testing::Build(rknpu::testing::SmallNetwork()));
}

// Four processes with three contexts each, and all of them run.
TEST_F(CompiledReportsTest, TwelveContextsPayForOneModel) {
  std::vector<std::string> paths = {MakeProgram(folder()).path};
  const std::string published =
      SharedFolder() + "/rknn/mobilenetv2_rk3588.rknn";
  if (std::ifstream(published).good()) paths.push_back(published);
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    StartDaemon();
    const Sizes sizes = SizesOf(path);
    std::vector<std::unique_ptr<ClientProcess>> clients;
    for (int i = 0; i < 4; ++i) {
      clients.push_back(StartClient());
      ClientProcess& client = *clients.back();
      ASSERT_TRUE(Done(client.Do("init a " + path)));
      ASSERT_TRUE(Done(client.Do("dup b a")));
      ASSERT_TRUE(Done(client.Do("init c " + path)));
      for (const std::string context : {"a", "b", "c"}) {
        ASSERT_TRUE(Done(client.Do("bind_all " + context)));
      }
    }
    for (const auto& client : clients) {
      for (const std::string context : {"a", "b", "c"}) {
        ASSERT_TRUE(Done(client->Do("run " + context)));
      }
    }

    const json models = Ask({"models"});
    ASSERT_THAT(models, SizeIs(1));
    EXPECT_EQ(models[0]["contexts"], 12);
    EXPECT_EQ(models[0]["weight"], sizes.weights);
    EXPECT_EQ(models[0]["weight_held"], sizes.held);
    EXPECT_EQ(models[0]["internal"], sizes.internal);
    const json kinds = Ask({"mem"})["kinds"];
    EXPECT_EQ(kinds["weight"], sizes.held);
    // An arena for each core, in whole pages.
    const uint64_t arena = (sizes.internal + 4095) / 4096 * 4096;
    EXPECT_EQ(kinds["internal"], 3 * arena);
    EXPECT_EQ(clients[0]->Do("memory_size a").text,
              std::to_string(sizes.weights));
    EXPECT_EQ(clients[0]->Do("internal_size a").text,
              std::to_string(sizes.internal));
    clients.clear();
    KillDaemon();
  }
}

}  // namespace
}  // namespace rknnd::integration
