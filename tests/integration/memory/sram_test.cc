// The NPU's SRAM between processes: who gets what of it, what rknnctl draws and
// rknn_query says, and that nothing of it is lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr uint64_t kTotal = 978944;  // an RK3588's
constexpr char kEnable[] = " 2048";  // RKNN_FLAG_ENABLE_SRAM
constexpr char kShare[] = " 6144";   // and RKNN_FLAG_SHARE_SRAM
constexpr int kSide = 64;

class SramTest : public IntegrationTest {
 protected:
  void Start(const std::string& soc = "rk3588") {
    DaemonOptions options;
    options.soc = soc;
    StartDaemon(options);
    model_ = MakeConvNetOfSide(folder(), kSide);
  }

  json Sram() {
    return AskRknnctl(folder(), daemon().target(), {"mem", "--sram"});
  }
  uint64_t Free() { return Sram()["free"].get<uint64_t>(); }

  TestModel model_;
};

TEST_F(SramTest, MapShowsWhoHoldsWhat) {
  Start();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model_.path + kEnable)));

  const json sram = Sram();
  EXPECT_EQ(sram["total"], kTotal);
  EXPECT_EQ(sram["base"], 0xff001000);
  EXPECT_EQ(sram["page"], 4096);
  ASSERT_THAT(sram["windows"], SizeIs(1));
  const json& window = sram["windows"][0];
  const auto size = window["size"].get<uint64_t>();
  EXPECT_GT(size, 0U);
  EXPECT_EQ(sram["free"], kTotal - size);
  EXPECT_GT(window["saved"], 0);
  EXPECT_THAT(window["holder"].get<std::string>(),
              AllOf(HasSubstr("context "),
                    HasSubstr("pid " + std::to_string(client->pid()))));
  const auto bitmap = sram["bitmap"].get<std::string>();
  EXPECT_EQ(bitmap.size(), kTotal / 4096);
  EXPECT_EQ(std::count(bitmap.begin(), bitmap.end(), '*'), size / 4096);

  const RknnctlResult drawn =
      RunRknnctl(folder(), {"--target", daemon().target(), "mem", "--sram"});
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_THAT(drawn.out,
              AllOf(StartsWith("SRAM region: [0x00000000ff001000, "
                               "0x00000000ff0f0000), SRAM size: 0xef000\n"),
                    HasSubstr("[000] [*"), HasSubstr("[007] [...............]"),
                    HasSubstr("SRAM total size: 978944, used: ")));
}

TEST_F(SramTest, QueryTellsTotalAndFree) {
  Start();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model_.path)));
  EXPECT_EQ(client->Do("sram_size a").text, "978944 978944");

  ASSERT_TRUE(Done(client->Do("init b " + model_.path + kEnable)));
  EXPECT_EQ(client->Do("sram_size a").text, "978944 " + std::to_string(Free()));

  ASSERT_TRUE(Done(client->Do("destroy b")));
  EXPECT_EQ(client->Do("sram_size a").text, "978944 978944");
}

TEST_F(SramTest, TwoProcessesTakeTurnsInOneWindow) {
  Start();
  const auto first = StartClient();
  const auto second = StartClient();
  ASSERT_TRUE(Done(first->Do("init a " + model_.path + kShare)));
  EXPECT_THAT(Sram()["windows"], SizeIs(3));  // one on each core
  ASSERT_TRUE(Done(first->Do("mask a 1")));
  ASSERT_TRUE(Done(second->Do("init b " + model_.path + kShare)));
  ASSERT_TRUE(Done(second->Do("mask b 1")));

  const json windows = Sram()["windows"];
  ASSERT_THAT(windows, SizeIs(1));
  EXPECT_EQ(windows[0]["holder"], "shared, core 0");
  EXPECT_EQ(windows[0]["core_mask"], 1);
  EXPECT_EQ(windows[0]["contexts"], 2);

  ASSERT_TRUE(Done(first->Do("bind_all a")));
  ASSERT_TRUE(Done(first->Do("fill a.in0" + model_.input_list())));
  ASSERT_TRUE(Done(first->Do("run a")));
  EXPECT_TRUE(Right(first->Do("compare_mem a.out0" + model_.output_list())));
}

// Three models on one core: the window is the largest of what each takes
// alone, so each plans, and saves, as if it were alone.
TEST_F(SramTest, ThreeModelsOnOneCoreSaveWhatEachWouldAlone) {
  std::vector<TestModel> models;
  for (const char* name :
       {"yolox_nano", "selfie_segmentation", "yunet_n_320"}) {
    const auto model = SharedModel(name, 0);
    if (!model.has_value())
      GTEST_SKIP() << "no '" << name << "' (RKNND_SHARED)";
    models.push_back(*model);
  }
  Start();
  const auto client = StartClient();
  uint64_t most = 0;
  uint64_t most_saved = 0;
  for (const TestModel& model : models) {
    ASSERT_TRUE(Done(client->Do("init alone " + model.path + kEnable)));
    const json windows = Sram()["windows"];
    ASSERT_THAT(windows, SizeIs(1));
    most = std::max(most, windows[0]["size"].get<uint64_t>());
    most_saved = std::max(most_saved, windows[0]["saved"].get<uint64_t>());
    ASSERT_TRUE(Done(client->Do("destroy alone")));
  }
  ASSERT_GT(most_saved, 0U);

  for (size_t i = 0; i < models.size(); ++i) {
    const std::string name = "m" + std::to_string(i);
    ASSERT_TRUE(
        Done(client->Do("init " + name + " " + models[i].path + kShare)));
    ASSERT_TRUE(Done(client->Do("mask " + name + " 1")));
  }

  const json windows = Sram()["windows"];
  ASSERT_THAT(windows, SizeIs(1));
  EXPECT_EQ(windows[0]["contexts"], 3);
  EXPECT_EQ(windows[0]["size"], most);
  EXPECT_EQ(windows[0]["saved"], most_saved);
}

TEST_F(SramTest, ExhaustedSramIsNoError) {
  Start();
  const auto greedy = StartClient();
  ASSERT_TRUE(Done(greedy->Do("init a " + model_.path)));
  ASSERT_TRUE(Done(greedy->Do("create m a 978944 4")));
  EXPECT_EQ(Free(), 0U);

  const auto late = StartClient({{"RKNN_LOG_LEVEL", "2"}});
  ASSERT_TRUE(Done(late->Do("init b " + model_.path + kEnable)));
  ASSERT_TRUE(Done(late->Do("inputs b" + model_.input_list())));
  ASSERT_TRUE(Done(late->Do("run b")));
  EXPECT_TRUE(Right(late->Do("compare b" + model_.output_list())));
  EXPECT_THAT(late->log(),
              AllOf(HasSubstr("has 0 KiB of SRAM, of "),
                    HasSubstr("956 KiB are held by buffer 1 of session ")));
}

TEST_F(SramTest, SharingWithoutSramIsRefused) {
  Start();
  const auto client = StartClient();
  EXPECT_THAT(client->Do("init a " + model_.path + " 4096"),
              Fails(-5, "RKNN_FLAG_ENABLE_SRAM"));
  EXPECT_EQ(Free(), kTotal);
}

TEST_F(SramTest, KilledClientLeavesNone) {
  Start();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model_.path + kEnable)));
  ASSERT_TRUE(Done(client->Do("init b " + model_.path + kShare)));
  ASSERT_TRUE(Done(client->Do("create m a 8192 4")));
  EXPECT_LT(Free(), kTotal);

  client->Kill();

  EXPECT_TRUE(Eventually([this] { return Free() == kTotal; }));
  EXPECT_THAT(Sram()["windows"], IsEmpty());
}

TEST_F(SramTest, BufferInSramIsReportedAsSuch) {
  Start();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model_.path)));
  ASSERT_TRUE(Done(client->Do("create m a 8192 4")));
  const auto heap = [this] {
    return AskRknnctl(folder(), daemon().target(), {"buffers"})[0]["heap"]
        .get<std::string>();
  };
  EXPECT_THAT(heap(), EndsWith(", sram"));
  EXPECT_EQ(Free(), kTotal - 8192);

  ASSERT_TRUE(Done(client->Do("destroy_mem a m")));
  EXPECT_EQ(Free(), kTotal);

  ASSERT_TRUE(Done(client->Do("create m a 1000000 4")));
  EXPECT_THAT(heap(), Not(HasSubstr("sram")));
}

TEST_F(SramTest, VariableAsksForSramWithABound) {
  Start();
  const auto client = StartClient({{"RKNN_INTERNAL_MEM_TYPE", "sram#9"}});
  ASSERT_TRUE(Done(client->Do("init a " + model_.path)));
  EXPECT_EQ(Free(), kTotal - 8192);
}

TEST_F(SramTest, LevelThreePrintsTheTableWithBusAddresses) {
  Start();
  const auto holder = StartClient();
  ASSERT_TRUE(Done(holder->Do("init h " + model_.path)));
  ASSERT_TRUE(Done(holder->Do("create m h 4096 4")));

  const auto client = StartClient({{"RKNN_LOG_LEVEL", "3"}});
  ASSERT_TRUE(Done(client->Do("init a " + model_.path + kEnable)));

  EXPECT_THAT(client->log(),
              AllOf(HasSubstr("Addr: [0xff002000, 0xff0"), HasSubstr("SramHit"),
                    HasSubstr("Predict Internal Memory RW Amount: "),
                    HasSubstr("Predict Weight Memory RW Amount: "),
                    HasSubstr("Predict SRAM Hit RW Amount: ")));
}

TEST_F(SramTest, SocWithoutSramSaysSo) {
  Start("rk3566");
  const auto client = StartClient({{"RKNN_LOG_LEVEL", "2"}});
  ASSERT_TRUE(Done(client->Do("init a " + model_.path + kShare)));
  ASSERT_TRUE(Done(client->Do("inputs a" + model_.input_list())));
  ASSERT_TRUE(Done(client->Do("run a")));
  EXPECT_EQ(client->Do("sram_size a").text, "0 0");
  EXPECT_THAT(client->log(), HasSubstr("rk3566 has none for its NPU"));

  const RknnctlResult told =
      RunRknnctl(folder(), {"--target", daemon().target(), "mem", "--sram"});
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_THAT(told.out, HasSubstr("no SRAM: the NPU of rk3566 has none"));
  EXPECT_EQ(Sram()["total"], 0);
}

}  // namespace
}  // namespace rknnd::integration
