// Models that nothing but the vendor's library can run, through a real daemon:
// which has it in workers, loses these, and tells nobody. The library is the
// stand-in of driver/rknnrt/testing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/rknnrt/testing/hosted_standin.h"
#include "driver/rknnrt/testing/wrapped_model.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/proc.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using rknnrt::testing::Trouble;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Of floats, whose last bits are the CPU's.
constexpr double kClose = 1e-5;

class VendorLibraryTest : public IntegrationTest {
 protected:
  // `more`: lines of [vendor], and what follows.
  void Start(const std::string& device = "auto", const std::string& more = "") {
    const std::string config = WriteFile(
        folder() + "/rknnd.toml", "[vendor]\nlibrary = \"" RKNND_BINARY_ROOT
                                  "/lib/librknnrt_standin_2_3_2.so\"\n" +
                                      more);
    StartDaemon({.device = device, .more = {"--config", config}});
  }
  // `model` as a file that only the stand-in can run.
  TestModel Compiled(TestModel model) {
    const std::string onnx = ReadText(model.path);
    const std::vector<std::byte> file =
        rknnrt::testing::Wrap(std::as_bytes(std::span(onnx)));
    model.path = WriteFile(
        std::filesystem::path(model.path).replace_extension(".rknn"),
        std::string(reinterpret_cast<const char*>(file.data()), file.size()));
    return model;
  }
  std::vector<pid_t> Workers() {
    const std::string pid = std::to_string(daemon().pid());
    const std::string children = "/proc/" + pid + "/task/" + pid + "/children";
    std::vector<pid_t> workers;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + pid + "/task")) {
      const std::string list = ReadText(task.path() / "children");
      for (size_t at = 0; at < list.size();) {
        workers.push_back(std::atoi(list.c_str() + at));
        at = list.find(' ', at);
        at = at == std::string::npos ? list.size() : at + 1;
      }
    }
    return workers;
  }
  json Models() { return AskRknnctl(folder(), daemon().target(), {"models"}); }
};

TEST_F(VendorLibraryTest, RunsWhatRknndDeclines) {
  Start();
  const auto client = StartClient();
  const TestModel model = Compiled(MakeConvNet(folder()));
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  EXPECT_TRUE(RunsRight(*client, "a", model, kClose));
  for (const char* mask : {"1", "2", "4", "3", "7"}) {
    EXPECT_TRUE(Done(client->Do(std::string("mask a ") + mask)));
    EXPECT_TRUE(RunsRight(*client, "a", model, kClose)) << mask;
  }

  const json models = Models();

  ASSERT_THAT(models, SizeIs(1));
  EXPECT_EQ(models[0]["run_by"], "rknnrt");
  EXPECT_THAT(std::string(models[0]["run_by_because"]),
              HasSubstr("rknnd's own executor declines it"));
  const json file =
      AskRknnctl(folder(), daemon().target(), {"info", model.path});
  EXPECT_EQ(file["run_by"], "rknnrt");
  const RknnctlResult told =
      RunRknnctl(folder(), {"--target", daemon().target(), "models"});
  EXPECT_THAT(told.out, HasSubstr("runs on the vendor's library: "));
}

TEST_F(VendorLibraryTest, MemoryOfProgramsIsUsedWhereItIs) {
  Start();
  const auto client = StartClient();
  const TestModel model = Compiled(MakeConvNet(folder()));
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("bind_all a")));
  ASSERT_TRUE(Done(client->Do("fill a.in0" + model.input_list())));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Done(client->Do("run a")));
    EXPECT_TRUE(Right(client->Do("compare_mem a.out0 " + model.outputs[0])));
  }
  // In the layout that the library's own attributes ask for, nobody copies.
  ASSERT_TRUE(Done(client->Do("init n " + model.path)));
  ASSERT_TRUE(Done(client->Do("create in n 65536")));
  ASSERT_TRUE(Done(client->Do("create out n 65536")));
  ASSERT_TRUE(Done(client->Do("bind n in in 0 native")));
  ASSERT_TRUE(Done(client->Do("bind n out out 0 native")));
  ASSERT_TRUE(Done(client->Do("run n")));
  EXPECT_EQ(client->Do("copies n").text, "0");
}

TEST_F(VendorLibraryTest, DuplicatesOutliveWhatTheyCameFrom) {
  Start();
  const auto client = StartClient();
  const TestModel model = Compiled(MakeConvNet(folder()));
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("dup b a")));
  EXPECT_TRUE(RunsRight(*client, "b", model, kClose));
  ASSERT_TRUE(Done(client->Do("destroy a")));
  EXPECT_TRUE(RunsRight(*client, "b", model, kClose));
}

TEST_F(VendorLibraryTest, ProgramsBringInternalAndWeightMemory) {
  Start();
  const auto client = StartClient();
  const TestModel model = Compiled(MakeChain(folder()));
  ASSERT_TRUE(Done(client->Do("init a " + model.path + " " +
                              std::to_string(RKNN_FLAG_MEM_ALLOC_OUTSIDE))));
  const std::string internal = client->Do("internal_size a").text;
  const std::string weights = client->Do("memory_size a").text;
  ASSERT_TRUE(Done(client->Do("create i a " + internal)));
  ASSERT_TRUE(Done(client->Do("internal a i")));
  ASSERT_TRUE(Done(client->Do("create w a " + weights)));
  const std::string before = client->Do("hash_mem w " + weights).text;
  ASSERT_TRUE(Done(client->Do("weights a w")));
  // The library itself has filled it.
  EXPECT_NE(client->Do("hash_mem w " + weights).text, before);
  EXPECT_TRUE(RunsRight(*client, "a", model, kClose));
}

TEST_F(VendorLibraryTest, ListsOfShapes) {
  Start();
  const auto client = StartClient();
  const TestModel model = Compiled(MakeListedConvNet(folder(), {8, 16}));
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  for (size_t i = 0; i < 2; ++i) {
    const std::string side = i == 0 ? "8" : "16";
    ASSERT_TRUE(Done(client->Do("shape a 1 1 " + side + " " + side + " 3")));
    ASSERT_TRUE(Done(client->Do("inputs a " + model.inputs[i])));
    ASSERT_TRUE(Done(client->Do("run a")));
    EXPECT_TRUE(Right(client->Do("compare a " + model.outputs[i])));
  }
}

// As the library's own MEM_SIZE counts: its weights once, and its internal
// memory once for each core.
TEST_F(VendorLibraryTest, TwelveContextsOfFourProcessesShareAll) {
  Start();
  const TestModel model = Compiled(MakeChain(folder()));
  std::vector<std::unique_ptr<ClientProcess>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(StartClient());
    for (const char* name : {"a", "b", "c"}) {
      ASSERT_TRUE(Done(
          clients.back()->Do(std::string("init ") + name + " " + model.path)));
      EXPECT_TRUE(RunsRight(*clients.back(), name, model, kClose));
    }
  }
  const json models = Models();
  ASSERT_THAT(models, SizeIs(1));
  EXPECT_EQ(models[0]["contexts"], 12);
  const uint64_t weights = std::stoull(clients[0]->Do("memory_size a").text);
  const uint64_t internal = std::stoull(clients[0]->Do("internal_size a").text);
  ASSERT_GT(weights, 0U);
  ASSERT_GT(internal, 0U);
  EXPECT_EQ(models[0]["weight"], weights);
  // And the file, for the next worker.
  EXPECT_EQ(models[0]["weight_held"],
            weights + std::filesystem::file_size(model.path));
  constexpr uint64_t kPage = 4096;
  const uint64_t of_a_core = (internal + kPage - 1) / kPage * kPage;
  const json kinds = AskRknnctl(folder(), daemon().target(), {"mem"})["kinds"];
  EXPECT_LE(kinds["internal"].get<uint64_t>(), 3 * of_a_core);
  EXPECT_THAT(Workers(), SizeIs(1));
}

// Killed at any moment, under eight programs that never stop.
TEST_F(VendorLibraryTest, WorkersMayBeKilledUnderEightPrograms) {
  Start();
  const TestModel model = Compiled(MakeConvNet(folder()));
  std::vector<std::unique_ptr<ClientProcess>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(StartClient());
    ASSERT_TRUE(Done(clients.back()->Do("init a " + model.path)));
    ASSERT_TRUE(Done(clients.back()->Do("inputs a" + model.input_list())));
  }
  constexpr int kRuns = 300;
  for (const auto& client : clients) {
    client->Send("repeat a " + std::to_string(kRuns));
  }
  int killed = 0;
  for (int i = 0; i < 20; ++i) {
    for (const pid_t worker : Workers()) {
      killed += kill(worker, SIGKILL) == 0 ? 1 : 0;
    }
    // A good job lies between, or the model would be in quarantine.
    const uint64_t before = Models()[0]["jobs"];
    EXPECT_TRUE(Eventually([&] {
      const uint64_t now = Models()[0]["jobs"];
      return now > before + 8 || now == kRuns * clients.size();
    }));
  }
  for (const auto& client : clients) {
    EXPECT_EQ(client->Receive().text, std::to_string(kRuns) + " 0 0 ");
  }
  EXPECT_GE(killed, 10);
  clients.clear();
  EXPECT_TRUE(OnlyNeighbourIsLeft());
  EXPECT_THAT(Workers().size(), testing::Le(1U));
}

TEST_F(VendorLibraryTest, AModelThatEndsWorkersIsQuarantinedAndReleased) {
  {
    const Trouble trouble("crash_run=1");
    Start("auto", "deaths = 2\n");
  }
  const TestModel model = Compiled(MakeConvNet(folder()));
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("inputs a" + model.input_list())));

  EXPECT_THAT(client->Do("run a").text, HasSubstr("signal 11"));
  EXPECT_THAT(client->Do("run a").text, HasSubstr("is in quarantine"));
  // Nobody else is concerned.
  const TestModel other = MakeRelu(folder());
  ASSERT_TRUE(Done(client->Do("init b " + other.path)));
  EXPECT_TRUE(RunsRight(*client, "b", other, kClose));

  json held = AskRknnctl(folder(), daemon().target(), {"quarantine"});
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_EQ(held[0]["deaths"], 2);
  EXPECT_THAT(std::string(held[0]["why"]), HasSubstr("signal 11"));
  const std::string hash = held[0]["sha256"];
  held = AskRknnctl(folder(), daemon().target(),
                    {"quarantine", "--release", hash.substr(0, 8)});
  EXPECT_THAT(held, SizeIs(0));
  // It crashes still, and runs into the same.
  EXPECT_THAT(client->Do("run a").text, HasSubstr("signal 11"));
  EXPECT_NE(RunRknnctl(folder(), {"--target", daemon().target(), "quarantine",
                                  "--release", "00000000"})
                .exit_code,
            0);
}

TEST_F(VendorLibraryTest, TheConfigurationCanForceIt) {
  Start("rknnrt");
  const auto client = StartClient();
  const TestModel model = Compiled(MakeConvNet(folder()));
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  EXPECT_TRUE(RunsRight(*client, "a", model, kClose));
  EXPECT_THAT(std::string(Models()[0]["run_by_because"]),
              HasSubstr("the configuration says so"));
}

TEST_F(VendorLibraryTest, TheDaemonsDeathIsNoMatterToPrograms) {
  Start();
  const auto client = StartClient();
  const TestModel model = Compiled(MakeConvNet(folder()));
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  EXPECT_TRUE(RunsRight(*client, "a", model, kClose));
  const std::vector<pid_t> workers = Workers();
  KillDaemon();
  // Its workers do not outlive it.
  for (const pid_t worker : workers) {
    EXPECT_TRUE(Eventually([&] {
      return kill(worker, 0) != 0 ||
             ReadText("/proc/" + std::to_string(worker) + "/stat")
                     .find(") Z") != std::string::npos;
    })) << worker;
  }
  RestartDaemon();
  EXPECT_TRUE(RunsRight(*client, "a", model, kClose));
}

}  // namespace
}  // namespace rknnd::integration
