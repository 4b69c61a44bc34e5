// No tensor is copied on the zero-copy path, and copies on the other paths are
// counted to the byte, by the library and by the daemon alike: as long as one
// daemon lives and no run is given up (rknnd.h says what differs then).

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::SizeIs;

class ZeroCopyTest : public IntegrationTest {
 protected:
  // What rknnctl says of the only context.
  json Copied() {
    const json contexts = AskRknnctl(folder(), daemon().target(), {"contexts"});
    EXPECT_THAT(contexts, SizeIs(1));
    return contexts.empty() ? json() : contexts[0]["copied_bytes"];
  }
  static json Copies(uint64_t inputs_set, uint64_t conversion_in,
                     uint64_t outputs_get, uint64_t conversion_out) {
    return {{"to_device",
             {{"inputs_set", inputs_set}, {"conversion", conversion_in}}},
            {"from_device",
             {{"outputs_get", outputs_get}, {"conversion", conversion_out}}}};
  }

  // A context 'a' of y = Relu(x) on 16 halves, with memory 'in' and 'out' in
  // the NPU's own format; all of x is 1.
  std::unique_ptr<ClientProcess> StartReluOnHalves() {
    auto client = StartClient();
    EXPECT_TRUE(Done(client->Do("init a " + MakeRelu(folder()).path)));
    EXPECT_TRUE(Done(client->Do("create in a 32")));
    EXPECT_TRUE(Done(client->Do("create out a 32")));
    const std::string half = std::to_string(RKNN_TENSOR_FLOAT16);
    EXPECT_TRUE(Done(client->Do("bind a in in 0 " + half)));
    EXPECT_TRUE(Done(client->Do("bind a out out 0 " + half)));
    std::string ones;
    for (int i = 0; i < 16; ++i) ones.append("\0\x3c", 2);
    EXPECT_TRUE(
        Done(client->Do("fill in " + WriteFile(folder() + "/ones", ones))));
    return client;
  }
};

constexpr char kOnes[] =
    "003c003c003c003c003c003c003c003c003c003c003c003c003c003c003c003c";
// The high byte of the fourth is 0x40: 2 and not 1.
constexpr char kOneIsTwo[] =
    "003c003c003c0040003c003c003c003c003c003c003c003c003c003c003c003c";

TEST_F(ZeroCopyTest, JobThatWaitsForItsCoreReadsWhatIsThereWhenItStarts) {
  // One core, on which jobs run in the order they came.
  StartDaemon({.soc = "rk3566"});
  const TestModel slow = MakeSlow(folder());
  std::vector<std::unique_ptr<ClientProcess>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(StartClient());
    ASSERT_TRUE(Done(others.back()->Do("init s " + slow.path)));
    ASSERT_TRUE(Done(others.back()->Do("inputs s" + slow.input_list())));
  }
  const auto client = StartReluOnHalves();
  ASSERT_TRUE(Done(client->Do("run a")));
  ASSERT_EQ(client->Do("peek out 0 32").text, kOnes);

  // On a machine that stalls, the others may be done too soon: then again.
  bool held = false;
  for (int attempt = 0; attempt < 10; ++attempt) {
    for (auto& other : others) ASSERT_TRUE(Done(other->Do("start run s")));
    ASSERT_TRUE(Eventually([this] {
      const wire::Report status = Status();
      return status.jobs_queued + status.jobs_running == 3;
    }));
    ASSERT_TRUE(Done(client->Do("start run a")));
    const bool queued = Eventually([this] {
      const wire::Report status = Status();
      return status.jobs_queued == 3 || status.jobs_running == 0;
    });
    ASSERT_TRUE(queued);
    ASSERT_TRUE(Done(client->Do("poke in 7 0x40")));
    // It came last: as long as any waits, it does.
    held = Status().jobs_queued > 0;
    ASSERT_TRUE(Done(client->Do("finish")));
    for (auto& other : others) ASSERT_TRUE(Done(other->Do("finish")));
    if (held) break;
    ASSERT_TRUE(Done(client->Do("poke in 7 0x3c")));
  }
  ASSERT_TRUE(held) << "no job could be made to wait";
  EXPECT_EQ(client->Do("peek out 0 32").text, kOneIsTwo);
  EXPECT_EQ(client->Do("copies a").text, "0");
}

TEST_F(ZeroCopyTest, BoundMemoryInTheNpusOwnFormatCostsNoCopy) {
  StartDaemon();
  const auto client = StartReluOnHalves();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Done(client->Do("run a")));
  EXPECT_EQ(Copied(), Copies(0, 0, 0, 0));
  EXPECT_EQ(client->Do("copies a").text, "0");
}

TEST_F(ZeroCopyTest, BoundMemoryInAnotherFormatIsConvertedInEachRun) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  // Floats in planes: 3 x 16 x 16 in, 4 x 16 x 16 out.
  ASSERT_TRUE(Done(client->Do("bind_all a")));
  EXPECT_EQ(Copied(), Copies(0, 0, 0, 0));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Done(client->Do("run a")));
  EXPECT_EQ(Copied(), Copies(0, 3 * 3072, 0, 3 * 4096));
  EXPECT_EQ(client->Do("copies a").text, std::to_string(3 * (3072 + 4096)));
}

TEST_F(ZeroCopyTest, CopiesOfTheLibraryAreSeenAtOnce) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("inputs a" + model.input_list())));
  EXPECT_EQ(Copied(), Copies(3072, 0, 0, 0));
  ASSERT_TRUE(Done(client->Do("run a")));
  // Results leave the NPU as floats in planes.
  EXPECT_EQ(Copied(), Copies(3072, 3072, 0, 4096));
  ASSERT_TRUE(Done(client->Do("outputs a")));
  EXPECT_EQ(Copied(), Copies(3072, 3072, 4096, 4096));
  EXPECT_EQ(client->Do("copies a").text,
            std::to_string(3072 + 3072 + 4096 + 4096));
}

TEST_F(ZeroCopyTest, PixelsAreTakenAsTheyAre) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("create in a 768")));
  ASSERT_TRUE(
      Done(client->Do("bind a in in 0 " + std::to_string(RKNN_TENSOR_UINT8))));
  ASSERT_TRUE(Done(client->Do("run a")));
  EXPECT_EQ(Copied(), Copies(0, 0, 0, 4096));
}

TEST_F(ZeroCopyTest, FailedRunCountsNoConversion) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  EXPECT_NE(client->Do("run a").code, RKNN_SUCC);
  EXPECT_EQ(Copied(), Copies(0, 0, 0, 0));
}

}  // namespace
}  // namespace rknnd::integration
