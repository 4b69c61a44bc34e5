// Compiled models on "the NPU": a kernel with a driver for it, programs of the
// vendor's API, and a daemon between them. The driver is a stand-in that
// computes by the emulator and fails on demand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "driver/rknpu/testing/small_network.h"
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
  size_t outputs;
};

class NpuTest : public GuestTest {
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
    SetStandin("sram_bytes", 0);
    npu_.Signal(SIGKILL);
    EXPECT_TRUE(npu_.Wait(integration::kPatience).ok());
  }

  static std::string Shared(const std::string& file) {
    return integration::SharedFolder() + "/rknn/" + file;
  }
  // The guest's CPU is emulated: what computes is a hundred times slower.
  void StartOn(const std::string& device) {
    const std::string config = integration::WriteFile(
        folder() + "/rknnd.toml", "[scheduler]\nhang = 600\n");
    StartDaemon({.device = device, .more = {"--config", config}});
  }
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

  EXPECT_EQ(status.at("device").at("kind"), "rknpu");
  EXPECT_THAT(daemon().log(), HasSubstr("rknpu 0.9.8 at '/dev/dri/renderD"));
  // A submit a core, of its self-test.
  EXPECT_EQ(ReadStandin().at("submit"), before.at("submit") + 3);
  EXPECT_EQ(EndDaemon(), 0);
  ExpectNoBreach(before);
}

class NetworkTest : public NpuTest,
                    public testing::WithParamInterface<Network> {};

TEST_P(NetworkTest, AnswersOfTheNpuAreTheEmulatorsToTheByte) {
  const std::string model = Shared(GetParam().file);
  const std::string input = Shared(std::string("vectors/") + GetParam().input);
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

// Buffers of another driver, as a camera's, and nothing is copied.
TEST_P(NetworkTest, AnswersComeIntoImportedDmaBufsWithoutACopy) {
  const std::string model = Shared(GetParam().file);
  const std::string input = Shared(std::string("vectors/") + GetParam().input);
  if (!std::filesystem::exists(model)) GTEST_SKIP() << model << " is not there";
  const auto before = ReadStandin();
  std::map<std::string, std::string> answers;
  for (const char* device : {"soft", "auto"}) {
    StartOn(device);
    const auto client = StartClient();
    ASSERT_TRUE(Done(client->Do("init c " + model)));
    // One for the input, and one for each output; a giver has eight at most.
    constexpr size_t kBytes = size_t{4} << 20;
    std::vector<std::unique_ptr<Giver>> givers;
    for (size_t i = 0; i <= GetParam().outputs; ++i) {
      if (i % 8 == 0) {
        givers.push_back(StartGiver({"udmabuf", std::to_string(kBytes), "8"}));
      }
      const std::string name = i == 0 ? "in" : "out" + std::to_string(i - 1);
      ASSERT_TRUE(Done(Import(*client, *givers.back(), static_cast<int>(i % 8),
                              name + " c", kBytes)));
      const std::string port =
          i == 0 ? " in 0 " + std::to_string(RKNN_TENSOR_UINT8)
                 : " out " + std::to_string(i - 1) + " native";
      ASSERT_TRUE(Done(client->Do("bind c " + name + port)));
    }
    ASSERT_TRUE(Done(client->Do("fill in " + input)));
    ASSERT_TRUE(Done(client->Do("run c")));
    const Reply reply = client->Do("hash_mem out0 1000");
    EXPECT_EQ(reply.code, 0) << reply.text;
    answers[device] = reply.text;
    EXPECT_EQ(client->Do("copies c").text, "0");
    EXPECT_EQ(client->Exit(), 0);
    EXPECT_EQ(EndDaemon(), 0);
  }
  EXPECT_EQ(answers["auto"], answers["soft"]);
  ExpectNoBreach(before);
}

INSTANTIATE_TEST_SUITE_P(
    Published, NetworkTest,
    testing::Values(
        Network{"mobilenetv2_rk3588.rknn", "mobilenetv2_chelsea_in_u8.bin", 1},
        Network{"ppocrv4_det_rk3588.rknn", "ppocrv4_det_page_in_u8.bin", 1},
        Network{"yolov8n_algae_rk3588.rknn", "yolov8n_chelsea_in_u8.bin", 9}),
    [](const auto& network) {
      return std::string(network.param.file,
                         std::string(network.param.file).find('_'));
    });

// A network that the test writes: published ones are not always here.
TEST_F(NpuTest, AnswersAreTheEmulatorsOnEachSetOfCores) {
  const std::string model = integration::WriteFile(
      folder() + "/small.rknn",
      rknpu::testing::Build(rknpu::testing::SmallNetwork()));
  std::string pixels;
  for (int i = 0; i < 60; ++i) pixels += static_cast<char>(i * 37);
  const std::string input = integration::WriteFile(folder() + "/x", pixels);
  const auto before = ReadStandin();
  std::map<std::string, std::string> answers;
  for (const char* device : {"soft", "auto"}) {
    StartOn(device);
    const auto client = StartClient();
    ASSERT_TRUE(Done(client->Do("init c " + model)));
    for (const char* mask : {"1", "2", "4", "3", "7"}) {
      ASSERT_TRUE(Done(client->Do(std::string("mask c ") + mask)));
      answers[device] += Answer(*client, "c", input) + " ";
    }
    EXPECT_EQ(client->Exit(), 0);
    EXPECT_EQ(EndDaemon(), 0);
  }
  EXPECT_EQ(answers["auto"], answers["soft"]);
  ExpectNoBreach(before);
}

// The start of each core's internal memory lies in the driver's SRAM.
TEST_F(NpuTest, InternalMemoryLiesInSramWhereTheDriverGivesIt) {
  const std::string model = Shared("mobilenetv2_rk3588.rknn");
  if (!std::filesystem::exists(model)) GTEST_SKIP() << model << " is not there";
  const std::string input = Shared("vectors/mobilenetv2_chelsea_in_u8.bin");
  constexpr uint64_t kTotal = 978944;
  constexpr uint64_t kPart = kTotal / 4 / 4096 * 4096;
  const auto before = ReadStandin();
  std::map<uint64_t, std::string> answers;
  for (const uint64_t sram : {uint64_t{0}, kTotal}) {
    SetStandin("sram_bytes", static_cast<int>(sram));
    StartOn("auto");
    {
      const auto client = StartClient();
      ASSERT_TRUE(Done(client->Do("init c " + model + " " +
                                  std::to_string(RKNN_FLAG_ENABLE_SRAM))));
      answers[sram] = Answer(*client, "c", input);
      if (sram != 0) {
        EXPECT_EQ(ReadStandin().at("sram"), 3 * kPart);
        EXPECT_EQ(
            client->Do("sram_size c").text,
            std::to_string(kTotal) + " " + std::to_string(kTotal - 3 * kPart));
      }
      EXPECT_EQ(client->Exit(), 0);
    }
    EXPECT_EQ(EndDaemon(), 0);
  }
  EXPECT_EQ(answers[kTotal], answers[0]);
  SetStandin("sram_bytes", 0);
  ExpectNoBreach(before);
  EXPECT_EQ(ReadStandin().at("sram"), 0U);
}

class FaultyNpuTest : public NpuTest {
 protected:
  static std::string Model() { return Shared("mobilenetv2_rk3588.rknn"); }
  static std::string Input() {
    return Shared("vectors/mobilenetv2_chelsea_in_u8.bin");
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
                            "iommu_fault", "counter_zero", "reset_under"}) {
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

// The driver's counter says that nothing ran, and then it cannot reset the NPU:
// the self-test decides, and the frame is late.
TEST_F(FaultyNpuTest, AResetThatFailsIsSaidAndTriedAgain) {
  if (!std::filesystem::exists(Model())) GTEST_SKIP();
  const auto before = ReadStandin();
  StartOn("auto");
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + Model())));
  const std::string right = Answer(*client, "c", Input());
  SetStandin("reset_fails", 1);
  SetStandin("counter_zero", 1);
  EXPECT_EQ(Answer(*client, "c", Input()), right);
  EXPECT_THAT(daemon().log(), HasSubstr("the NPU was reset ("));
  EXPECT_EQ(Answer(*client, "c", Input()), right);
  SetStandin("reset_fails", 0);
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

// A small network, so that faults are most of what happens. A daemon may lose a
// core for good, when a fault meets its self-test twice: hence several.
TEST_F(FaultyNpuTest, AThousandFaultsUnderEightProgramsLoseNothing) {
  constexpr int kFaultsInAThousand = 30;
  constexpr uint64_t kFaults = 1000;
  constexpr uint64_t kRuns = 100;
  const auto before = ReadStandin();
  const std::string model = integration::WriteFile(
      folder() + "/small.rknn",
      rknpu::testing::Build(rknpu::testing::SmallNetwork()));
  std::string pixels(60 * sizeof(float), '\0');
  for (size_t i = 0; i < 60; ++i) {
    const auto number = static_cast<float>(30 - static_cast<int>(i));
    std::memcpy(pixels.data() + i * sizeof number, &number, sizeof number);
  }
  const std::string input = integration::WriteFile(folder() + "/x", pixels);
  uint64_t answered = 0;
  uint64_t given_up = 0;
  for (uint64_t met = 0; met < kFaults && !HasFailure();
       met = ReadStandin().at("injected") - before.at("injected")) {
    StartOn("auto");
    std::vector<std::unique_ptr<integration::ClientProcess>> clients;
    for (int i = 0; i < 8; ++i) {
      clients.push_back(StartClient());
      ASSERT_TRUE(Done(clients.back()->Do("init c " + model)));
      ASSERT_TRUE(Done(clients.back()->Do("inputs c " + input)));
    }
    SetStandin("random_faults", kFaultsInAThousand);
    for (const auto& client : clients) {
      client->Send("repeat c " + std::to_string(kRuns));
    }
    for (const auto& client : clients) {
      const Reply reply = client->Receive();
      ASSERT_EQ(reply.code, 0) << reply.text;
      std::istringstream words(reply.text);
      uint64_t right = 0, wrong = 0, failed = 0;
      words >> right >> wrong >> failed;
      EXPECT_EQ(wrong, 0U);
      // By rule: a job that hung twice, and a model that hung three times.
      if (failed > 0) {
        EXPECT_THAT(reply.text,
                    testing::AnyOf(HasSubstr("and the NPU was reset"),
                                   HasSubstr("and was reset"),
                                   HasSubstr("are not run any more")));
      }
      EXPECT_EQ(right + wrong + failed, kRuns);
      answered += right;
      given_up += failed;
    }
    SetStandin("random_faults", 0);
    clients.clear();
    EXPECT_EQ(EndDaemon(), 0);
  }
  std::cout << answered << " runs answered, " << given_up << " given up, "
            << ReadStandin().at("injected") - before.at("injected")
            << " faults, " << ReadStandin().at("resets") - before.at("resets")
            << " resets\n";
  EXPECT_LT(given_up, answered / 10);
  ExpectNoBreach(before);
}

}  // namespace
}  // namespace rknnd::vm
