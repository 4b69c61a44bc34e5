// What scripts read from rknnctl: the fields that are promised, no more and no
// less, and the exit codes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>

#include "base/values/sha256.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/models.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;
using testing::UnorderedElementsAre;

std::set<std::string> Fields(const json& object) {
  std::set<std::string> fields;
  for (const auto& [key, value] : object.items()) fields.insert(key);
  return fields;
}

class RknnctlAnswersTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    model_ = MakeConvNet(folder());
    client_ = StartClient();
    ASSERT_TRUE(Done(client_->Do("init a " + model_.path)));
    ASSERT_TRUE(Done(client_->Do("dup b a")));
    ASSERT_TRUE(Done(client_->Do("mask b 2")));
    ASSERT_TRUE(Done(client_->Do("bind_all a")));
    ASSERT_TRUE(Done(client_->Do("import i a sealed 65536 65536 0")));
    ASSERT_TRUE(Done(client_->Do("run a")));
    ASSERT_TRUE(Done(client_->Do("run a")));
  }

  json Ask(const std::vector<std::string>& arguments) {
    return AskRknnctl(folder(), daemon().target(), arguments);
  }
  RknnctlResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--target", daemon().target()});
    return RunRknnctl(folder(), arguments);
  }
  std::string Hash() {
    const std::string bytes = ReadText(model_.path);
    return base::ToHex(
        base::Sha256Of(std::as_bytes(std::span(bytes.data(), bytes.size()))));
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_F(RknnctlAnswersTest, Status) {
  const json status = Ask({"status"});
  EXPECT_THAT(
      Fields(status),
      UnorderedElementsAre("device", "uptime_s", "draining", "sessions",
                           "models", "contexts", "buffers", "jobs", "memory",
                           "sram", "cache_syncs", "core_use", "foreign_users",
                           "admitted", "answers", "numbers", "remote"));
  EXPECT_THAT(Fields(status["cache_syncs"]),
              UnorderedElementsAre("done", "skipped"));
  EXPECT_THAT(Fields(status["device"]),
              UnorderedElementsAre("kind", "soc", "cores", "driver"));
  EXPECT_THAT(Fields(status["jobs"]),
              UnorderedElementsAre("queued", "running", "done", "failed",
                                   "dropped", "hung", "shared"));
  EXPECT_THAT(
      Fields(status["memory"]),
      UnorderedElementsAre("weight", "internal", "io", "other", "total"));
  EXPECT_THAT(Fields(status["sram"]), UnorderedElementsAre("total", "free"));
  EXPECT_EQ(status["device"]["kind"], "soft");
  EXPECT_EQ(status["device"]["soc"], "rk3588");
  EXPECT_EQ(status["device"]["cores"], 3);
  EXPECT_EQ(status["sessions"], 1);
  EXPECT_EQ(status["models"], 1);
  EXPECT_EQ(status["contexts"], 2);
  EXPECT_EQ(status["buffers"], 3);
  EXPECT_EQ(status["jobs"]["done"], 2);
  EXPECT_EQ(status["numbers"]["jobs_done_total"], 2);
  EXPECT_EQ(status["numbers"]["sessions"], 2);  // with rknnctl's own
  EXPECT_EQ(status["jobs"]["failed"], 0);
  const json& memory = status["memory"];
  EXPECT_EQ(memory["total"].get<uint64_t>(),
            memory["weight"].get<uint64_t>() +
                memory["internal"].get<uint64_t>() +
                memory["io"].get<uint64_t>() + memory["other"].get<uint64_t>());
}

TEST_F(RknnctlAnswersTest, Sessions) {
  const json sessions = Ask({"sessions"});
  ASSERT_THAT(sessions, SizeIs(1));
  EXPECT_THAT(Fields(sessions[0]),
              UnorderedElementsAre(
                  "id", "pid", "uid", "comm", "contexts", "buffers", "jobs",
                  "npu_us", "memory", "queue_us", "run_us", "drops", "shared",
                  "priority", "weight", "latency_us", "address", "unit",
                  "container", "allocation"));
  EXPECT_EQ(sessions[0]["pid"], client_->pid());
  EXPECT_EQ(sessions[0]["uid"], getuid());
  EXPECT_THAT(sessions[0]["comm"].get<std::string>(),
              HasSubstr("integration_runner"));
  EXPECT_EQ(sessions[0]["contexts"], 2);
  EXPECT_EQ(sessions[0]["buffers"], 3);
  EXPECT_EQ(sessions[0]["jobs"], 2);
}

TEST_F(RknnctlAnswersTest, Models) {
  const json models = Ask({"models"});
  ASSERT_THAT(models, SizeIs(1));
  EXPECT_THAT(Fields(models[0]),
              UnorderedElementsAre(
                  "sha256", "name", "contexts", "weight", "weight_held",
                  "internal", "loads", "preloaded", "jobs", "npu_us",
                  "queue_us", "drops", "run_us", "run_by", "run_by_because"));
  EXPECT_EQ(models[0]["weight_held"],
            Ask({"mem"})["kinds"]["weight"].get<uint64_t>());
  EXPECT_EQ(models[0]["sha256"], Hash());
  EXPECT_EQ(models[0]["name"], "conv_net.onnx");
  EXPECT_EQ(models[0]["contexts"], 2);
  EXPECT_GT(models[0]["weight"], 0);
}

TEST_F(RknnctlAnswersTest, Contexts) {
  const json contexts = Ask({"contexts"});
  ASSERT_THAT(contexts, SizeIs(2));
  for (const json& context : contexts) {
    EXPECT_THAT(
        Fields(context),
        UnorderedElementsAre("id", "session", "model", "core_mask", "priority",
                             "jobs", "copied_bytes", "npu_us", "queue_us",
                             "drops", "queued", "policy", "rate"));
    EXPECT_THAT(Fields(context["copied_bytes"]),
                UnorderedElementsAre("to_device", "from_device"));
    EXPECT_EQ(context["model"], Hash());
  }
  EXPECT_EQ(
      contexts[0]["core_mask"].get<int>() + contexts[1]["core_mask"].get<int>(),
      2);
  EXPECT_EQ(contexts[0]["jobs"].get<int>() + contexts[1]["jobs"].get<int>(), 2);
}

TEST_F(RknnctlAnswersTest, Buffers) {
  const json buffers = Ask({"buffers"});
  ASSERT_THAT(buffers, SizeIs(3));
  int imported = 0;
  int bindings = 0;
  for (const json& buffer : buffers) {
    EXPECT_THAT(Fields(buffer),
                UnorderedElementsAre("id", "session", "size", "heap",
                                     "imported", "bindings"));
    bindings += buffer["bindings"].get<int>();
    if (!buffer["imported"].get<bool>()) continue;
    ++imported;
    EXPECT_EQ(buffer["size"], 65536);
    EXPECT_EQ(buffer["heap"], "memfd");
  }
  EXPECT_EQ(imported, 1);
  EXPECT_EQ(bindings, 2);
}

TEST_F(RknnctlAnswersTest, Memory) {
  const json memory = Ask({"mem"});
  EXPECT_THAT(Fields(memory),
              UnorderedElementsAre("kinds", "models", "sessions",
                                   "unshared_total", "users", "budget"));
  EXPECT_THAT(Fields(memory["kinds"]),
              UnorderedElementsAre("weight", "internal", "io", "other"));
  EXPECT_THAT(Fields(memory["budget"]), UnorderedElementsAre("total", "used"));
  ASSERT_THAT(memory["users"], SizeIs(1));
  EXPECT_EQ(memory["users"][0]["memory"], memory["sessions"][0]["memory"]);
  ASSERT_THAT(memory["models"], SizeIs(1));
  ASSERT_THAT(memory["sessions"], SizeIs(1));
  EXPECT_EQ(memory["kinds"]["weight"], memory["models"][0]["weight"]);
  EXPECT_EQ(memory["kinds"]["io"], memory["sessions"][0]["memory"]);
}

TEST_F(RknnctlAnswersTest, Infer) {
  for (const std::string& target : {daemon().target(), std::string(kLocal)}) {
    const std::string input =
        WriteFile(folder() + "/input.bin", ReadText(model_.inputs[0]));
    const json answer =
        AskRknnctl(folder(), target,
                   {"infer", model_.path, "--input", input, "--repeat", "3",
                    "--output-dir", folder() + "/out"});
    EXPECT_THAT(Fields(answer), UnorderedElementsAre("outputs", "run_us"));
    ASSERT_THAT(answer["outputs"], SizeIs(1));
    const json& output = answer["outputs"][0];
    EXPECT_THAT(Fields(output),
                UnorderedElementsAre("name", "shape", "type", "top"));
    EXPECT_EQ(output["name"], "features");
    EXPECT_EQ(output["shape"], json({1, 4, 16, 16}));
    EXPECT_EQ(output["type"], "FP16");
    ASSERT_FALSE(output["top"].empty());
    EXPECT_THAT(Fields(output["top"][0]),
                UnorderedElementsAre("index", "value"));
    const std::string wanted = ReadText(model_.outputs[0]);
    std::vector<float> values(wanted.size() / sizeof(float));
    std::memcpy(values.data(), wanted.data(), wanted.size());
    EXPECT_EQ(output["top"][0]["value"],
              *std::max_element(values.begin(), values.end()));
    // The tensor is the end of an .npy file.
    const std::string written = ReadText(folder() + "/out/output_0.npy");
    ASSERT_GT(written.size(), wanted.size());
    EXPECT_TRUE(written.ends_with(wanted));
  }
}

TEST_F(RknnctlAnswersTest, Bench) {
  for (const std::string& target : {daemon().target(), std::string(kLocal)}) {
    const json answer =
        AskRknnctl(folder(), target,
                   {"bench", model_.path, "--contexts", "4", "--threads", "2",
                    "--seconds", "0.2", "--core-mask", "auto"});
    EXPECT_THAT(Fields(answer),
                UnorderedElementsAre("runs", "fps", "latency_us", "split_us"));
    for (const char* part : {"input", "queue", "run", "output"}) {
      EXPECT_THAT(Fields(answer["split_us"][part]),
                  UnorderedElementsAre("mean", "p99"))
          << part;
      EXPECT_GE(answer["split_us"][part]["p99"], 0) << part;
    }
    // Both lie within it, of the same runs.
    EXPECT_LE(answer["split_us"]["queue"]["mean"].get<double>() +
                  answer["split_us"]["run"]["mean"].get<double>(),
              answer["latency_us"]["mean"].get<double>());
    EXPECT_GT(answer["split_us"]["run"]["mean"], 0);
    EXPECT_GT(answer["split_us"]["input"]["mean"], 0);
    EXPECT_GT(answer["split_us"]["output"]["mean"], 0);
    EXPECT_THAT(Fields(answer["latency_us"]),
                UnorderedElementsAre("mean", "p50", "p90", "p99", "max"));
    EXPECT_GT(answer["runs"], 0);
    EXPECT_GT(answer["fps"], 0);
    EXPECT_LE(answer["latency_us"]["p50"], answer["latency_us"]["max"]);
  }
}

TEST_F(RknnctlAnswersTest, Top) {
  const json top = Ask({"top", "--interval", "0.1"});
  EXPECT_THAT(Fields(top),
              UnorderedElementsAre("uptime_s", "interval_s", "cores", "jobs",
                                   "latency_us", "memory", "sram", "sessions",
                                   "models", "foreign_users"));
  ASSERT_THAT(top["cores"], SizeIs(3));
  EXPECT_THAT(Fields(top["cores"][0]),
              UnorderedElementsAre("core", "load", "jobs_per_s", "model",
                                   "session", "lent_to"));
  EXPECT_GE(top["interval_s"], 0.1);
  EXPECT_EQ(top["jobs"]["done"], 2);
  ASSERT_THAT(top["sessions"], SizeIs(1));
  EXPECT_EQ(top["sessions"][0]["pid"], client_->pid());
}

// Its program is executed; beside it the daemon has an ONNX model.
TEST_F(RknnctlAnswersTest, CompiledModelAnswersThroughTheDaemon) {
  const std::string rknn = SharedFolder() + "/rknn/";
  const std::string model = rknn + "mobilenetv2_rk3588.rknn";
  if (!std::filesystem::exists(model)) {
    GTEST_SKIP() << "mobilenetv2_rk3588.rknn is not in RKNND_SHARED";
  }
  for (const auto& [picture, classes] : std::map<std::string, std::set<int>>{
           {"chelsea", {285, 281, 282, 287, 728}},  // cats
           {"coffee", {967, 809, 925, 968, 504}}}) {
    const json answer =
        Ask({"infer", model, "--input",
             rknn + "vectors/mobilenetv2_" + picture + "_in_u8.bin"});
    const json& top = answer["outputs"][0]["top"];
    EXPECT_EQ(top[0]["index"], picture == "chelsea" ? 285 : 967);
    std::set<int> found;
    for (const json& place : top) found.insert(place["index"].get<int>());
    EXPECT_EQ(found, classes);
  }
  EXPECT_THAT(Run({"infer", model}).out,
              HasSubstr(" on the emulated NPU, a CPU, on noise"));
  EXPECT_EQ(Run({"infer", model_.path}).exit_code, 0);
}

TEST_F(RknnctlAnswersTest, TextForPeople) {
  for (const char* verb :
       {"status", "sessions", "models", "contexts", "buffers", "mem", "top"}) {
    const RknnctlResult result = Run({verb});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_GT(result.out.size(), 10U) << verb;
    EXPECT_EQ(result.err, "");
  }
  EXPECT_THAT(Run({"infer", model_.path}).out,
              HasSubstr(" on the software NPU, a CPU, on noise"));
}

TEST_F(RknnctlAnswersTest, ExitCodes) {
  EXPECT_EQ(Run({"status"}).exit_code, 0);
  EXPECT_EQ(Run({"infer", folder() + "/none.onnx"}).exit_code, 1);
  EXPECT_EQ(Run({"infer", MakeLackingOperator(folder()).path}).exit_code, 1);
  EXPECT_EQ(Run({}).exit_code, 2);
  EXPECT_EQ(Run({"stauts"}).exit_code, 2);
  EXPECT_EQ(Run({"infer"}).exit_code, 2);
  EXPECT_EQ(Run({"bench", model_.path, "--core-mask", "9"}).exit_code, 2);
}

TEST_F(RknnctlAnswersTest, FailureIsOneJsonDocumentToo) {
  const RknnctlResult result =
      Run({"--json", "infer", MakeLackingOperator(folder()).path});
  EXPECT_EQ(result.exit_code, 1);
  const json answer = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << result.out;
  EXPECT_THAT(answer["error"].get<std::string>(), HasSubstr("'Det'"));
}

TEST_F(RknnctlAnswersTest, DaemonThatIsNotThereIsExitCodeOne) {
  const RknnctlResult result =
      RunRknnctl(folder(), {"--target", "unix:/nowhere/s.sock", "status"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("/nowhere/s.sock"));
}

}  // namespace
}  // namespace rknnd::integration
