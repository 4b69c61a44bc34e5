// Compiled models on "the NPU": a kernel with a driver for it, programs of the
// vendor's API, and a daemon between them. The driver is a stand-in that
// computes by the emulator and fails on demand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"
#include "tests/vm/guest_test.h"
#include "tests/vm/npu/standin_counts.h"

namespace rknnd::vm {
namespace {

using integration::ProgramPath;
using testing::HasSubstr;

struct Network {
  const char *file, *input;
};

class NpuTest : public integration::IntegrationTest {
 protected:
  // The process that computes; the module is there when the guest's tests run.
  NpuTest() {
    base::ChildProcess::Options start;
    start.arguments = {ProgramPath("tests/vm_npu")};
    auto npu = base::ChildProcess::Start(start);
    EXPECT_TRUE(npu.ok());
    npu_ = *std::move(npu);
    EXPECT_TRUE(npu_.ReadLine(integration::kPatience).ok());
  }
  ~NpuTest() override {
    SetStandin("random_faults", 0);
    npu_.Signal(SIGKILL);
    EXPECT_TRUE(npu_.Wait(integration::kPatience).ok());
  }

  void StartOn(const std::string& device) { StartDaemon({.device = device}); }
  // The hash of a network's answers.
  std::string Answer(integration::ClientProcess& client,
                     const std::string& context, const std::string& input) {
    EXPECT_TRUE(Done(client.Do("pixels " + context + " " + input)));
    EXPECT_TRUE(Done(client.Do("run " + context)));
    const Reply reply = client.Do("outputs " + context);
    EXPECT_EQ(reply.code, 0) << reply.text;
    return reply.text;
  }

  base::ChildProcess npu_;
};

TEST_F(NpuTest, TheDaemonFindsTheDriverAndSaysSo) {
  const auto before = ReadStandin();
  StartOn("auto");

  const nlohmann::json status =
      integration::AskRknnctl(folder(), daemon().target(), {"status"});

  EXPECT_EQ(status.at("device"), "rknpu");
  EXPECT_THAT(daemon().log(), HasSubstr("rknpu 0.9.8 at '/dev/dri/renderD"));
  // A submit a core, of its self-test.
  EXPECT_EQ(ReadStandin().at("submit"), before.at("submit") + 3);
  EXPECT_EQ(EndDaemon(), 0);
  ExpectNoBreach(before);
}

class NetworkTest : public NpuTest,
                    public testing::WithParamInterface<Network> {};

TEST_P(NetworkTest, AnswersOfTheNpuAreTheEmulatorsToTheByte) {
  const std::string shared = integration::SharedFolder() + "/rknn/";
  const std::string model = shared + GetParam().file;
  const std::string input = shared + "vectors/" + GetParam().input;
  if (!std::filesystem::exists(model)) GTEST_SKIP() << model << " is not there";
  const auto before = ReadStandin();
  std::map<std::string, std::string> answers;
  for (const char* device : {"soft", "auto"}) {
    StartOn(device);
    {
      const auto client = StartClient();
      ASSERT_TRUE(Done(client->Do("init c " + model)));
      answers[device] = Answer(*client, "c", input);
      EXPECT_EQ(Answer(*client, "c", input), answers[device]);
      EXPECT_EQ(client->Exit(), 0);
    }
    EXPECT_EQ(EndDaemon(), 0);
  }
  EXPECT_EQ(answers["auto"], answers["soft"]);
  ExpectNoBreach(before);
  EXPECT_GT(ReadStandin().at("submit"), before.at("submit") + 3);
}

INSTANTIATE_TEST_SUITE_P(
    Published, NetworkTest,
    testing::Values(
        Network{"mobilenetv2_rk3588.rknn", "mobilenetv2_chelsea_in_u8.bin"},
        Network{"ppocrv4_det_rk3588.rknn", "ppocrv4_det_page_in_u8.bin"}),
    [](const auto& network) {
      return std::string(network.param.file,
                         std::string(network.param.file).find('_'));
    });

class FaultyNpuTest : public NpuTest {
 protected:
  static std::string Model() {
    return integration::SharedFolder() + "/rknn/mobilenetv2_rk3588.rknn";
  }
  static std::string Input() {
    return integration::SharedFolder() +
           "/rknn/vectors/mobilenetv2_chelsea_in_u8.bin";
  }
};

TEST_F(FaultyNpuTest, EachFaultIsALateFrame) {
  if (!std::filesystem::exists(Model())) GTEST_SKIP();
  const auto before = ReadStandin();
  StartOn("auto");
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + Model())));
  const std::string right = Answer(*client, "c", Input());
  for (const char* fault : {"hang", "wrong_status", "lose_interrupt",
                            "counter_zero", "reset_under"}) {
    const uint64_t resets = ReadStandin().at("resets");
    SetStandin(fault, 1);
    EXPECT_EQ(Answer(*client, "c", Input()), right) << fault;
    EXPECT_EQ(ReadStandin().at("resets"), resets + 1) << fault;
    // One that ends well at once is good news of the model.
    EXPECT_EQ(Answer(*client, "c", Input()), right) << fault;
  }
  EXPECT_EQ(client->Exit(), 0);
  EXPECT_EQ(EndDaemon(), 0);
  ExpectNoBreach(before);
}

TEST_F(FaultyNpuTest, AModelThatAlwaysHangsIsGivenUp) {
  if (!std::filesystem::exists(Model())) GTEST_SKIP();
  StartOn("auto");
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + Model())));
  ASSERT_TRUE(Done(client->Do("pixels c " + Input())));
  Reply reply;
  for (int run = 0; run < 4 && reply.code == 0; ++run) {
    SetStandin("hang", 1);
    reply = client->Do("run c");
  }
  SetStandin("hang", 0);
  EXPECT_NE(reply.code, 0);
  EXPECT_THAT(reply.text, HasSubstr("not run any more"));
  EXPECT_EQ(client->Exit(), 0);
}

TEST_F(FaultyNpuTest, FaultsAtRandomUnderEightClientsLoseNothing) {
  if (!std::filesystem::exists(Model())) GTEST_SKIP();
  const auto before = ReadStandin();
  StartOn("auto");
  std::vector<std::unique_ptr<integration::ClientProcess>> clients;
  std::string right;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(StartClient());
    ASSERT_TRUE(Done(clients.back()->Do("init c " + Model())));
    const std::string answer = Answer(*clients.back(), "c", Input());
    if (right.empty()) right = answer;
    EXPECT_EQ(answer, right);
  }
  SetStandin("random_faults", 100);
  int answered = 0, given_up = 0;
  for (int round = 0; round < 4; ++round) {
    for (const auto& client : clients) {
      if (client->Do("run c").code != 0) {
        ++given_up;  // by rule: it hung twice
        continue;
      }
      const Reply reply = client->Do("outputs c");
      EXPECT_EQ(reply.code, 0) << reply.text;
      EXPECT_EQ(reply.text, right);
      ++answered;
    }
  }
  EXPECT_EQ(answered + given_up, 32);
  EXPECT_GT(answered, 0);
  SetStandin("random_faults", 0);
  clients.clear();
  EXPECT_EQ(EndDaemon(), 0);
  ExpectNoBreach(before);
}

}  // namespace
}  // namespace rknnd::vm
