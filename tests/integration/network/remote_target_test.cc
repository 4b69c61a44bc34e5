// Programs that know rknn_api.h and nothing else, with their NPU on another
// machine: RKNND_TARGET=tcp://. The answers are those of the board, whatever
// becomes of the connection.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "rknn_api.h"
#include "tests/integration/harness/certificates.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"
#include "tests/integration/harness/tcp_relay.h"

namespace rknnd::integration {
namespace {

int PortOf(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

class RemoteTargetTest : public IntegrationTest {
 protected:
  // Over TCP, at a port of the kernel's choice.
  void StartRemote() {
    StartDaemon({.more = {"--grpc", "127.0.0.1:0", "--grpc-insecure"}});
    address_ = daemon().grpc_address();
    target_ = "tcp://" + address_;
  }

  // Over a socket that has its name again when the daemon is back.
  void StartReachableAgain() {
    target_ = "tcp://unix:" + folder() + "/grpc.sock";
    StartDaemon({.more = {"--grpc", "unix:" + folder() + "/grpc.sock"}});
  }

  void StartBound(const TestModel& model, const Environment& more = {}) {
    client_ = StartClient(more, target_);
    ASSERT_TRUE(Done(client_->Do("init c " + model.path)));
    ASSERT_TRUE(Done(client_->Do("bind_all c")));
    ASSERT_TRUE(Done(client_->Do("fill c.in0" + model.input_list())));
  }

  testing::AssertionResult RunsRight(const TestModel& model) {
    if (auto run = Done(client_->Do("run c")); !run) return run;
    return Right(client_->Do("compare_mem c.out0" + model.output_list()));
  }

  std::string address_, target_;
  std::unique_ptr<ClientProcess> client_;
};

// ---- the same answers -------------------------------------------------------

TEST_F(RemoteTargetTest, AnswersAreTheBoardsBitForBit) {
  StartRemote();
  const TestModel model = MakeConvNet(folder());
  std::vector<std::string> hashes;
  for (const std::string& target : {daemon().target(), target_}) {
    const auto client = StartClient({}, target);
    ASSERT_TRUE(Done(client->Do("init c " + model.path)));
    ASSERT_TRUE(Done(client->Do("inputs c" + model.input_list())));
    ASSERT_TRUE(Done(client->Do("run c")));
    const Reply hash = client->Do("outputs c");
    EXPECT_TRUE(Done(hash));
    hashes.push_back(hash.text);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST_F(RemoteTargetTest, MemoryIsBoundAsOnTheBoard) {
  StartRemote();
  const TestModel model = MakeConvNet(folder());
  StartBound(model);
  EXPECT_TRUE(RunsRight(model));
  EXPECT_TRUE(RunsRight(model));
}

TEST_F(RemoteTargetTest, AProgramInTheVendorsStyleFindsWhatItExpects) {
  StartRemote();
  const TestModel model = MakeConvNet(folder());
  EXPECT_EQ(
      RunProgram({ProgramPath("tests/integration_vendor_style"), model.path},
                 target_),
      0);
}

TEST_F(RemoteTargetTest, AsynchronousRunsFencesAndQueuesWork) {
  StartRemote();
  const std::string model = MakeRelu(folder()).path;
  const std::string program = ProgramPath("tests/integration_async_runs");
  for (const std::vector<std::string>& way :
       std::vector<std::vector<std::string>>{
           {"async"}, {"non_block"}, {"chain"}, {"queue", "200"}}) {
    std::vector<std::string> arguments = {program, way[0], model};
    arguments.insert(arguments.end(), way.begin() + 1, way.end());
    EXPECT_EQ(RunProgram(arguments, target_), 0) << way[0];
  }
}

TEST_F(RemoteTargetTest, ShapesAreChosenAsOnTheBoard) {
  StartRemote();
  std::vector<int> sides = {8, 12};
  std::vector<std::string> arguments = {
      ProgramPath("tests/integration_dynamic_shapes"),
      MakeListedConvNet(folder(), sides).path};
  for (const int side : sides) {
    arguments.push_back(MakeConvNetOfSide(folder(), side).path);
  }
  EXPECT_EQ(RunProgram(arguments, target_), 0);
}

TEST_F(RemoteTargetTest, StoredAnswersOfATrainedNetworkComeBack) {
  const auto model = SharedModel("mnist_8", 0);
  if (!model) GTEST_SKIP() << "mnist_8 is not in RKNND_SHARED";
  StartRemote();
  for (const char* way : {"copy", "bound"}) {
    std::vector<std::string> arguments = {
        ProgramPath("tests/integration_answers"),
        model->path,
        way,
        "fp32",
        "nchw",
        "1e-4"};
    arguments.insert(arguments.end(), model->inputs.begin(),
                     model->inputs.end());
    arguments.emplace_back(":");
    arguments.insert(arguments.end(), model->outputs.begin(),
                     model->outputs.end());
    EXPECT_EQ(RunProgram(arguments, target_), 0) << way;
  }
}

// Variables of gRPC's are in the program's own memory, where the library that
// is loaded later has to find them.
TEST_F(RemoteTargetTest, AProgramThatUsesGrpcItselfRunsThere) {
  StartRemote();
  const TestModel model = MakeConvNet(folder());
  std::vector<std::string> arguments = {
      ProgramPath("tests/integration_answers_with_grpc"),
      model.path,
      "copy",
      "fp32",
      "nchw",
      "1e-4"};
  arguments.insert(arguments.end(), model.inputs.begin(), model.inputs.end());
  arguments.emplace_back(":");
  arguments.insert(arguments.end(), model.outputs.begin(), model.outputs.end());
  EXPECT_EQ(RunProgram(arguments, target_), 0);
}

TEST_F(RemoteTargetTest, SeveralProcessesRunAtOnce) {
  StartRemote();
  const TestModel model = MakeSlow(folder(), 8);
  std::vector<std::unique_ptr<ClientProcess>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(StartClient({}, target_));
    clients.back()->Send("storm " + model.path + " 2 10" + model.input_list());
  }
  std::vector<std::string> hashes;
  for (const auto& client : clients) {
    const Reply reply = client->Receive();
    EXPECT_TRUE(Done(reply));
    hashes.push_back(reply.text);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
}

TEST_F(RemoteTargetTest, AModelOfMegabytesIsSentAndRuns) {
  StartRemote();
  const TestModel model = MakeHeavy(folder());
  client_ = StartClient({}, target_);
  ASSERT_TRUE(Done(client_->Do("init c " + model.path)));
  ASSERT_TRUE(Done(client_->Do("init d " + model.path)));
  EXPECT_EQ(Ask(rknnd_v1_ReportKind_REPORT_MODELS).models.size(), 1U);
}

// ---- the end of a session ---------------------------------------------------

TEST_F(RemoteTargetTest, AProgramThatIsKilledLeavesNothing) {
  StartRemote();
  const std::string before = Held();
  const TestModel model = MakeConvNet(folder());
  StartBound(model);
  ASSERT_TRUE(RunsRight(model));
  EXPECT_NE(Held(), before);
  client_->Kill();
  EXPECT_TRUE(Eventually([&] { return Held() == before; })) << Held();
}

TEST_F(RemoteTargetTest, AForkedChildIsToldThatItsParentHasTheSession) {
  StartRemote();
  const TestModel model = MakeConvNet(folder());
  StartBound(model);
  ASSERT_TRUE(RunsRight(model));
  ASSERT_TRUE(Done(client_->Do("fork")));
  EXPECT_THAT(client_->Do("init d " + model.path),
              Fails(RKNN_ERR_DEVICE_UNAVAILABLE, "fork"));
  ASSERT_TRUE(Done(client_->Do("exit")));
  EXPECT_TRUE(RunsRight(model));
}

// ---- lost connections -------------------------------------------------------

TEST_F(RemoteTargetTest, TheDaemonsDeathUnderAJobGivesALateFrame) {
  StartReachableAgain();
  const TestModel slow = MakeSlow(folder());
  StartBound(slow);
  ASSERT_TRUE(Done(client_->Do("start run c")));
  ASSERT_TRUE(SeesJobRunning());
  KillDaemon();
  RestartDaemon();
  ASSERT_TRUE(Done(client_->Do("finish")));
  EXPECT_TRUE(Right(client_->Do("compare_mem c.out0" + slow.output_list())));
}

TEST_F(RemoteTargetTest, AConnectionLostInTheMiddleOfAMessageIsNotNoticed) {
  StartRemote();
  TcpRelay relay(PortOf(address_));
  target_ = "tcp://" + relay.address();
  const TestModel model = MakeConvNet(folder());
  const TestModel heavy = MakeHeavy(folder());
  StartBound(model);
  ASSERT_TRUE(RunsRight(model));
  // Within a run's input, and within a model's bytes.
  relay.LoseAfter(500);
  EXPECT_TRUE(RunsRight(model));
  EXPECT_EQ(relay.lost(), 1);
  relay.LoseAfter(3'000'000);
  EXPECT_TRUE(Done(client_->Do("init d " + heavy.path)));
  EXPECT_EQ(relay.lost(), 2);
  EXPECT_TRUE(RunsRight(model));
}

TEST_F(RemoteTargetTest, WorkGoesOnAtTheOtherOfTwoHosts) {
  StartRemote();
  const auto other_folder = base::TemporaryFolder::Make();
  ASSERT_TRUE(other_folder.ok());
  DaemonProcess other(other_folder->path(),
                      {.more = {"--grpc", "127.0.0.1:0", "--grpc-insecure"}});
  other.Start();
  target_ = "tcp://ipv4:" + address_ + "," + other.grpc_address();
  const TestModel model = MakeConvNet(folder());
  StartBound(model);
  ASSERT_TRUE(RunsRight(model));
  // Whichever has it.
  if (Status().context_count > 0) {
    KillDaemon();
  } else {
    other.Kill();
  }
  EXPECT_TRUE(RunsRight(model));
}

TEST_F(RemoteTargetTest, ADaemonThatStandsStillEndsInATimeout) {
  StartRemote();
  const TestModel model = MakeConvNet(folder());
  StartBound(model);
  ASSERT_TRUE(RunsRight(model));
  daemon().Stand();
  const Reply reply = client_->Do("run c 100");
  daemon().GoOn();
  EXPECT_THAT(reply, Fails(RKNN_ERR_TIMEOUT, "rknnd hangs, or is stopped"));
  EXPECT_TRUE(RunsRight(model));
}

TEST_F(RemoteTargetTest, NobodyThereIsSaidInTheUsersWords) {
  StartRemote();
  KillDaemon();
  const TestModel model = MakeConvNet(folder());
  client_ = StartClient({}, target_);
  EXPECT_THAT(client_->Do("init c " + model.path),
              Fails(RKNN_ERR_DEVICE_UNAVAILABLE,
                    "no rknnd at " + address_ + ": refused"));
}

// ---- who gets in ------------------------------------------------------------

class RemoteSecurityTest : public RemoteTargetTest {
 protected:
  // TLS, and nobody without the token.
  void StartSecured() {
    const CertificateFiles files = authority_.Issue("board");
    const std::string tokens = WriteFile(
        folder() + "/tokens", "user ci " + std::string(kToken) + "\n");
    ASSERT_EQ(chmod(tokens.c_str(), 0600), 0);
    const std::string config =
        WriteFile(folder() + "/rknnd.toml",
                  "[grpc]\nlisten = \"127.0.0.1:0\"\n"
                  "certificate = \"" +
                      files.certificate + "\"\nkey = \"" + files.key +
                      "\"\ntokens = \"" + tokens + "\"\n");
    StartDaemon({.more = {"--config", config}});
    address_ = daemon().grpc_address();
    target_ = "tcp://" + address_;
    model_ = MakeConvNet(folder());
  }

  Reply InitWith(const Environment& environment) {
    client_ = StartClient(environment, target_);
    return client_->Do("init c " + model_.path);
  }

  static constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
  CertificateAuthority authority_{folder(), "authority"};
  CertificateAuthority stranger_{folder(), "stranger"};
  TestModel model_;
};

TEST_F(RemoteSecurityTest, ATokenOverTlsGetsIn) {
  StartSecured();
  ASSERT_TRUE(Done(InitWith(
      {{"RKNND_TLS_CA", authority_.file()}, {"RKNND_TOKEN", kToken}})));
  ASSERT_TRUE(Done(client_->Do("inputs c" + model_.input_list())));
  ASSERT_TRUE(Done(client_->Do("run c")));
  EXPECT_TRUE(Right(client_->Do("compare c" + model_.output_list())));
  const std::string file =
      WriteFile(folder() + "/token", std::string(kToken) + "\n");
  EXPECT_TRUE(Done(InitWith(
      {{"RKNND_TLS_CA", authority_.file()}, {"RKNND_TOKEN_FILE", file}})));
}

TEST_F(RemoteSecurityTest, WhoIsTurnedAwayIsToldWhy) {
  StartSecured();
  EXPECT_THAT(InitWith({{"RKNND_TLS_CA", authority_.file()}}),
              Fails(RKNN_ERR_DEVICE_UNAVAILABLE, "does not let this program"));
  EXPECT_THAT(InitWith({{"RKNND_TLS_CA", authority_.file()},
                        {"RKNND_TOKEN", "f123456789abcdef0123456789abcdef"}}),
              Fails(RKNN_ERR_DEVICE_UNAVAILABLE, "RKNND_TOKEN"));
  EXPECT_THAT(InitWith({{"RKNND_TLS_CA", stranger_.file()}}),
              Fails(RKNN_ERR_DEVICE_UNAVAILABLE, "no TLS with the server"));
  EXPECT_THAT(InitWith({}),
              Fails(RKNN_ERR_DEVICE_UNAVAILABLE, "set RKNND_TLS_CA"));
}

// ---- rknnctl ----------------------------------------------------------------

TEST_F(RemoteTargetTest, RknnctlLooksAndRunsThere) {
  StartRemote();
  const TestModel model = MakeConvNet(folder());
  StartBound(model);
  EXPECT_EQ(AskRknnctl(folder(), target_, {"status"})["device"]["soc"],
            "rk3588");
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{
           {"top", "--once"},
           {"mem", model.path},
           {"perf", model.path},
           {"bench", model.path, "--seconds", "0.1"},
           {"trace", "--output", folder() + "/trace.json"},
           {"dump", model.path, "--output-dir", folder() + "/dump"}}) {
    std::vector<std::string> arguments = {"--target", target_};
    arguments.insert(arguments.end(), verb.begin(), verb.end());
    const RknnctlResult result = RunRknnctl(folder(), arguments);
    EXPECT_EQ(result.exit_code, 0) << verb[0] << ": " << result.err;
  }
}

}  // namespace
}  // namespace rknnd::integration
