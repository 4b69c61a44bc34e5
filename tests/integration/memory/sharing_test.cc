// One model for all who use it, and the same answer whoever asks, how often,
// beside whom and on which core.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using testing::SizeIs;
using SharingTest = IntegrationTest;

TEST_F(SharingTest, TwoProcessesHoldTheWeightsOnce) {
  StartDaemon();
  const TestModel model = MakeHeavy(folder());
  const auto first = StartClient();
  const auto second = StartClient();
  ASSERT_TRUE(Done(first->Do("init a " + model.path)));
  // The loader may hold the file's bytes for a moment longer.
  ASSERT_TRUE(Eventually([&] {
    return AskRknnctl(folder(), daemon().target(), {"mem"})["kinds"]["other"] ==
           0;
  }));
  const auto alone = AskRknnctl(folder(), daemon().target(), {"mem"});
  // By its bytes: the same model, whatever its name.
  ASSERT_TRUE(Done(second->Do("init_bytes a " + model.path)));

  const auto models = AskRknnctl(folder(), daemon().target(), {"models"});
  ASSERT_THAT(models, SizeIs(1));
  EXPECT_EQ(models[0]["contexts"], 2);
  EXPECT_EQ(models[0]["loads"], 2);
  ASSERT_TRUE(Eventually([&] {
    return AskRknnctl(folder(), daemon().target(), {"mem"})["kinds"]["other"] ==
           0;
  }));
  const auto shared = AskRknnctl(folder(), daemon().target(), {"mem"});
  EXPECT_EQ(shared["kinds"]["weight"], models[0]["weight"]);
  EXPECT_EQ(shared["kinds"], alone["kinds"]);
  EXPECT_EQ(shared["unshared_total"].get<uint64_t>(),
            2 * alone["unshared_total"].get<uint64_t>());
}

TEST_F(SharingTest, AModelThatIsLoadedNeedsNoBytes) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  const auto owner = StartClient();
  ASSERT_TRUE(Done(owner->Do("init a " + model.path)));
  const wire::Report models = Ask(rknnd_v1_ReportKind_REPORT_MODELS);
  ASSERT_THAT(models.models, SizeIs(1));

  RawClient other(daemon().socket());
  other.SayHello();
  wire::CreateContext create{};
  create.context = 1;
  std::copy(std::begin(models.models[0].sha256),
            std::end(models.models[0].sha256), std::begin(create.model));
  const auto reply = other.Ask(wire::Verb::kCreateContext, create);
  EXPECT_TRUE(reply.ok()) << reply.error().message;
}

TEST_F(SharingTest, OtherBytesAreAnotherModel) {
  StartDaemon();
  const TestModel one = MakeConvNet(folder());
  const TestModel two = MakeOtherConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + one.path)));
  ASSERT_TRUE(Done(client->Do("init b " + two.path)));
  EXPECT_EQ(Status().model_count, 2U);
  for (const auto& [name, model] : {std::pair("a", one), std::pair("b", two)}) {
    const std::string context = name;
    ASSERT_TRUE(Done(client->Do("inputs " + context + model.input_list())));
    ASSERT_TRUE(Done(client->Do("run " + context)));
    EXPECT_TRUE(Right(client->Do("compare " + context + model.output_list())));
  }
}

TEST_F(SharingTest, BoundMemoryIsNotCopied) {
  StartDaemon();
  const TestModel model = MakeRelu(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("create in a 32")));
  ASSERT_TRUE(Done(client->Do("create out a 32")));
  const std::string fp16 = std::to_string(RKNN_TENSOR_FLOAT16);
  ASSERT_TRUE(Done(client->Do("bind a in in 0 " + fp16)));
  ASSERT_TRUE(Done(client->Do("bind a out out 0 " + fp16)));
  ASSERT_TRUE(Done(client->Do("run a")));
  EXPECT_EQ(client->Do("copies a").text, "0");
}

TEST_F(SharingTest, ThreadsAndProcessesGetTheSameAnswers) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  std::vector<std::unique_ptr<ClientProcess>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(StartClient());
    clients.back()->Send("storm " + model.path + " 4 50" + model.input_list());
  }
  std::vector<std::string> hashes;
  for (const auto& client : clients) {
    const Reply reply = client->Receive();
    ASSERT_TRUE(Done(reply));
    hashes.push_back(reply.text);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);

  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("inputs a" + model.input_list())));
  ASSERT_TRUE(Done(client->Do("run a")));
  ASSERT_TRUE(Right(client->Do("compare a" + model.output_list())));
  EXPECT_EQ(client->Do("outputs a").text, hashes[0]);
}

TEST_F(SharingTest, ThreadsInOneProcessGetTheSameAnswersWithoutADaemon) {
  const TestModel model = MakeConvNet(folder());
  const auto client = StartClient({}, kLocal);
  EXPECT_TRUE(
      Done(client->Do("storm " + model.path + " 4 50" + model.input_list())));
}

TEST_F(SharingTest, EveryCoreGivesTheSameBits) {
  StartDaemon();
  for (const TestModel& model :
       {MakeIntegers(folder()), MakeConvNet(folder())}) {
    const auto client = StartClient();
    ASSERT_TRUE(Done(client->Do("init a " + model.path)));
    ASSERT_TRUE(Done(client->Do("inputs a" + model.input_list())));
    std::vector<std::string> hashes;
    for (const int core : {0, 1, 2}) {
      const int mask = 1 << core;
      ASSERT_TRUE(Done(client->Do("mask a " + std::to_string(mask))));
      ASSERT_TRUE(Done(client->Do("run a")));
      EXPECT_EQ(client->Do("report a").text, "core " + std::to_string(core));
      EXPECT_TRUE(Right(client->Do("compare a" + model.output_list()), 0));
      hashes.push_back(client->Do("outputs a").text);
    }
    EXPECT_EQ(hashes[0], hashes[1]);
    EXPECT_EQ(hashes[0], hashes[2]);
  }
}

TEST_F(SharingTest, CoresThatAreNotThereAreRefused) {
  StartDaemon({.soc = "rk3576"});
  const TestModel model = MakeRelu(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  EXPECT_TRUE(Done(client->Do("mask a 2")));
  EXPECT_THAT(client->Do("mask a 4"), Fails(RKNN_ERR_PARAM_INVALID, "core"));
  EXPECT_THAT(client->Do("mask a 8"),
              Fails(RKNN_ERR_PARAM_INVALID, "core_mask is none of"));
}

TEST_F(SharingTest, LogLinesArePrintedByTheClientWhoWantedThem) {
  const std::string cache = folder() + "/cache";
  StartDaemon({.cache_dir = cache});
  // A model that cannot be kept is worth a warning, to whoever sent it.
  std::filesystem::remove_all(cache);
  const TestModel one = MakeConvNet(folder());
  const TestModel two = MakeOtherConvNet(folder());
  constexpr char kWarning[] = "is not kept for the daemon's restart";
  const auto loud = StartClient({{"RKNN_LOG_LEVEL", "5"}});
  const auto quiet = StartClient({{"RKNN_LOG_LEVEL", "0"}});
  ASSERT_TRUE(Done(loud->Do("init a " + one.path)));
  ASSERT_TRUE(Done(quiet->Do("init a " + two.path)));
  ASSERT_THAT(quiet->Do("init b /nowhere.onnx"),
              Fails(RKNN_ERR_MODEL_INVALID, "/nowhere.onnx"));

  // Events are read with the next answer.
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(Done(loud->Do("memory_size a")));
    return loud->log().find(kWarning) != std::string::npos;
  }));
  EXPECT_TRUE(Done(quiet->Do("memory_size a")));
  EXPECT_EQ(quiet->log(), "");
  EXPECT_EQ(daemon().log().find(kWarning), std::string::npos);
}

}  // namespace
}  // namespace rknnd::integration
