// SIGHUP: a daemon that reads its configuration again while programs run, and
// rknnd --check-config, which reads it and does nothing else.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/posix/unique_fd.h"
#include "nlohmann/json.hpp"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Exit code for a wrong configuration: EX_CONFIG.
constexpr int kWrongConfiguration = 78;

size_t CountOf(const std::string& text, const std::string& words) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(words, at)) != std::string::npos; ++at) {
    ++count;
  }
  return count;
}

bool CanConnect(const std::string& ip, uint16_t port) {
  const base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  return inet_pton(AF_INET, ip.c_str(), &address.sin_addr) == 1 &&
         connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                 sizeof address) == 0;
}

class ReloadTest : public IntegrationTest {
 protected:
  void StartWith(const std::string& text) {
    DaemonOptions options;
    options.more = {"--config", Write(text)};
    StartDaemon(std::move(options));
  }
  std::string Write(const std::string& text) {
    return WriteFile(folder() + "/rknnd.toml", text);
  }
  // Of a user's limits, which are those of this test's clients.
  static std::string UserLimits(const std::string& keys) {
    return "[[limits.users]]\nuid = " + std::to_string(getuid()) + "\n" + keys;
  }
  // SIGHUP, and until the daemon has said what came of it; that.
  std::string Reload() {
    const size_t before = daemon().log().size();
    kill(daemon().pid(), SIGHUP);
    std::string said;
    EXPECT_TRUE(Eventually([&] {
      const std::string log = daemon().log();
      said = log.size() > before ? log.substr(before) : "";
      return said.find(kGood) != std::string::npos ||
             said.find(kBad) != std::string::npos;
    })) << daemon().log();
    return said;
  }
  std::string ReloadWith(const std::string& text) {
    Write(text);
    return Reload();
  }
  // Exit code and what was printed on stderr.
  std::pair<int, std::string> Check(const std::string& text) {
    const std::string path = WriteFile(folder() + "/checked.toml", text);
    const int code =
        RunProgram({ProgramPath("rknnd"), "--check-config", "--config", path},
                   "", {}, kWrongConfiguration);
    return {code, ReadText(folder() + "/program.log")};
  }

  static constexpr char kGood[] = "configuration read again";
  static constexpr char kBad[] = "configuration not taken over";
};

TEST_F(ReloadTest, ProgramsThatRunNoticeNothing) {
  const std::string one = "log_level = 3\n" + UserLimits("weight = 300\n") +
                          "[limits]\naddress_space = 1073741824\n";
  const std::string other = "grace = 1\n" + UserLimits("queue = 500\n") +
                            "[limits.user]\nmax_priority = \"high\"\n";
  StartWith(one);
  StartNeighbour();
  const TestModel conv = MakeConvNet(folder());
  const auto client = StartClient();
  const Reply undisturbed =
      client->Do("storm " + conv.path + " 2 2" + conv.input_list());
  ASSERT_TRUE(Done(undisturbed));
  const pid_t pid = daemon().pid();

  client->Send("storm " + conv.path + " 4 1500" + conv.input_list());
  Reply disturbed;
  std::atomic<bool> over{false};
  std::thread waits([&] {
    disturbed = client->Receive();
    over = true;
  });
  size_t reloads = 0;
  while (!over && !HasFailure()) {
    EXPECT_THAT(ReloadWith(reloads % 2 == 0 ? other : one), HasSubstr(kGood));
    EXPECT_TRUE(NeighbourIsWell());
    ++reloads;
  }
  waits.join();

  EXPECT_TRUE(Done(disturbed));
  // That it was under way meanwhile.
  EXPECT_GE(reloads, 3U);
  EXPECT_EQ(disturbed.text, undisturbed.text);
  EXPECT_EQ(daemon().pid(), pid);
  EXPECT_TRUE(daemon().alive());
  EXPECT_EQ(CountOf(daemon().log(), kGood), reloads);
}

TEST_F(ReloadTest, RenamedKeyIsTakenAndSaidOnce) {
  const std::string old = "[limits]\nstrangers = 5\n";
  const std::string said =
      "'limits.strangers' is now called "
      "'limits.pending_connections'";
  StartWith(old);
  EXPECT_EQ(CountOf(daemon().log(), said), 1U);
  EXPECT_THAT(Reload(), AllOf(HasSubstr(kGood), Not(HasSubstr(said))));
  EXPECT_THAT(ReloadWith("[limits]\npending_connections = 6\n"),
              AllOf(HasSubstr("now in force: limits.pending_connections"),
                    Not(HasSubstr(said))));
  EXPECT_THAT(ReloadWith(old), HasSubstr(said)) << "it is back";
  // Said by --check-config, too, which finds nothing wrong with it.
  const std::string path = WriteFile(folder() + "/checked.toml", old);
  EXPECT_EQ(RunProgram(
                {ProgramPath("rknnd"), "--check-config", "--config", path}, ""),
            0);
  EXPECT_THAT(ReadText(folder() + "/program.log"), HasSubstr(said));
  const auto [code, both] = Check(old + "pending_connections = 5\n");
  EXPECT_EQ(code, kWrongConfiguration);
  EXPECT_THAT(both, HasSubstr("is given twice"));
}

TEST_F(ReloadTest, ClientThatIsThereSeesLoweredAndRaisedLimits) {
  StartWith(UserLimits("memory = 4194304\n"));
  const TestModel conv = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init m " + conv.path)));
  ASSERT_TRUE(Done(client->Do("create a m 2097152")));
  const auto run = [&] {
    EXPECT_TRUE(Done(client->Do("inputs m" + conv.input_list())));
    EXPECT_TRUE(Done(client->Do("run m")));
    EXPECT_TRUE(Right(client->Do("compare m" + conv.output_list())));
  };
  run();

  EXPECT_THAT(ReloadWith(UserLimits("memory = 1048576\ncontexts = 1\n")),
              HasSubstr("now in force: limits.users"));

  // What it has stays, and is of use.
  run();
  EXPECT_THAT(client->Do("create b m 4096"),
              Fails(RKNN_ERR_FAIL, "'limits.users.memory' of 1048576 bytes"));
  EXPECT_THAT(client->Do("dup n m"),
              Fails(RKNN_ERR_MALLOC_FAIL, "'limits.users.contexts' is 1"));

  EXPECT_THAT(ReloadWith(UserLimits("memory = 8388608\ncontexts = 2\n")),
              HasSubstr("now in force: limits.users"));
  EXPECT_TRUE(Done(client->Do("create b m 4194304")));
  EXPECT_TRUE(Done(client->Do("dup n m")));
}

TEST_F(ReloadTest, WrongFileChangesNothingAndAllOfItIsNamed) {
  StartWith(UserLimits("memory = 1048576\n"));
  const TestModel conv = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init m " + conv.path)));

  const std::string said =
      ReloadWith("log_leve = 1\n" + UserLimits("memory = 99999999\n") +
                 "[grpc]\nport = 1\n");

  EXPECT_THAT(said, AllOf(HasSubstr(kBad),
                          HasSubstr("line 1: key 'log_leve' is unknown to this "
                                    "version; did you mean 'log_level'?"),
                          HasSubstr("line 6: key 'grpc.port' is unknown"),
                          Not(HasSubstr(kGood))));
  EXPECT_THAT(client->Do("create a m 2097152"),
              Fails(RKNN_ERR_FAIL, "of 1048576 bytes"));
  // What goes together is looked at as well, and what no device has.
  EXPECT_THAT(ReloadWith("[[faults.preset]]\nkind = \"hang\"\n"),
              AllOf(HasSubstr(kBad), HasSubstr("faults are not enabled")));
  EXPECT_THAT(ReloadWith("device = \n"),
              AllOf(HasSubstr(kBad), HasSubstr("line 1")));
  EXPECT_THAT(client->Do("create a m 2097152"),
              Fails(RKNN_ERR_FAIL, "of 1048576 bytes"));
  EXPECT_THAT(ReloadWith(""), HasSubstr("now in force: limits.users"));
  EXPECT_TRUE(Done(client->Do("create a m 2097152")));
}

TEST_F(ReloadTest, FileThatIsGoneChangesNothing) {
  StartWith(UserLimits("memory = 1048576\n"));
  const TestModel conv = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init m " + conv.path)));
  ASSERT_TRUE(std::filesystem::remove(folder() + "/rknnd.toml"));

  EXPECT_THAT(Reload(), AllOf(HasSubstr(kBad), HasSubstr("rknnd.toml'"),
                              HasSubstr("No such file")));

  EXPECT_THAT(client->Do("create a m 2097152"),
              Fails(RKNN_ERR_FAIL, "of 1048576 bytes"));
}

TEST_F(ReloadTest, WhatNeedsARestartIsNamedAndTheRestIsTaken) {
  StartWith("");
  const std::string said = ReloadWith(
      "grace = 3\n[scheduler]\nhang = 9\n[limits]\njobs_per_context = 7\n"
      "contexts = 50\n[memory]\nheaps = [\"memfd\"]\n");
  EXPECT_THAT(said, AllOf(HasSubstr("now in force: grace, limits.contexts"),
                          HasSubstr("takes effect at the next restart: "
                                    "limits.jobs_per_context, scheduler.hang, "
                                    "memory.heaps"),
                          HasSubstr(kGood)));
  // Of the same file nothing is in force any more; the rest still waits.
  EXPECT_THAT(Reload(), AllOf(HasSubstr("nothing has changed"),
                              HasSubstr("at the next restart: limits.jobs")));
  EXPECT_THAT(ReloadWith(""), AllOf(HasSubstr("now in force: grace"),
                                    Not(HasSubstr("next restart"))));
}

TEST_F(ReloadTest, CommandLineStaysAboveTheFile) {
  // Given to every daemon of these tests: --soc and --log-level.
  StartWith("");
  EXPECT_THAT(ReloadWith("soc = \"rk3566\"\nlog_level = 0\n"),
              HasSubstr("nothing has changed that is in force"));
}

TEST_F(ReloadTest, MetricsMoveToAnotherAddress) {
  StartWith("[metrics]\nlisten = \"127.0.0.1:0\"\n");
  const auto before = static_cast<uint16_t>(
      std::stoul(daemon().AwaitSaid("metrics at 'http://127.0.0.1:")));
  ASSERT_TRUE(CanConnect("127.0.0.1", before));
  // An address of nobody's here (RFC 5737).
  EXPECT_THAT(ReloadWith("grace = 1\n[metrics]\nlisten = \"192.0.2.1:9464\"\n"),
              HasSubstr(kBad));
  EXPECT_TRUE(CanConnect("127.0.0.1", before));

  EXPECT_THAT(ReloadWith("grace = 1\n[metrics]\nlisten = \"127.0.0.2:0\"\n"),
              HasSubstr("now in force: grace, metrics.listen"));
  const auto after = static_cast<uint16_t>(
      std::stoul(daemon().AwaitSaid("metrics at 'http://127.0.0.2:")));
  EXPECT_TRUE(CanConnect("127.0.0.2", after));
  EXPECT_FALSE(CanConnect("127.0.0.1", before));

  EXPECT_THAT(ReloadWith(""), HasSubstr("no metrics any more"));
  EXPECT_FALSE(CanConnect("127.0.0.2", after));
}

TEST_F(ReloadTest, PreloadedModelsComeAndGo) {
  const TestModel conv = MakeConvNet(folder());
  const TestModel other = MakeOtherConvNet(folder());
  const auto models = [&] {
    return AskRknnctl(folder(), daemon().target(), {"models"});
  };
  const auto preloaded = [&] {
    size_t count = 0;
    for (const json& model : models()) {
      if (model["preloaded"] == true) ++count;
    }
    return count;
  };
  StartWith("grace = 0\n[models]\npreload = [\"" + conv.path + "\"]\n");
  ASSERT_TRUE(Eventually([&] { return preloaded() == 1; }));

  EXPECT_THAT(ReloadWith("grace = 0\n[models]\npreload = [\"" + conv.path +
                         "\", \"" + other.path + "\", \"/nowhere.onnx\"]\n"),
              HasSubstr("now in force: models.preload"));
  EXPECT_TRUE(Eventually([&] { return preloaded() == 2; }));
  EXPECT_TRUE(Eventually([&] {
    return daemon().log().find("'/nowhere.onnx' is not preloaded") !=
           std::string::npos;
  }));

  EXPECT_THAT(ReloadWith("grace = 0\n"), HasSubstr("models.preload"));
  EXPECT_TRUE(Eventually([&] { return models().empty(); }));
}

TEST_F(ReloadTest, CheckConfigSaysAllThatIsWrongAndDoesNothing) {
  const std::string socket = folder() + "/checked/session.sock";
  const std::string place =
      "socket = \"" + socket + "\"\nstate_dir = \"" + folder() + "/state\"\n";
  EXPECT_EQ(Check(place).first, 0);
  const auto [code, said] =
      Check(place + "grase = 1\n[limits.user]\nqueue = \"long\"\n");
  EXPECT_EQ(code, kWrongConfiguration);
  EXPECT_THAT(said, AllOf(HasSubstr("line 3: key 'grase' is unknown to this "
                                    "version; did you mean 'grace'?\n"),
                          HasSubstr("line 5: key 'limits.user.queue' must be a "
                                    "whole number\n")));
  EXPECT_THAT(Check("soc = \"rk3599\"\n").second,
              AllOf(HasSubstr("'rk3599' is unknown"), HasSubstr("rk3588")));
  EXPECT_FALSE(std::filesystem::exists(folder() + "/checked"));
  EXPECT_FALSE(std::filesystem::exists(folder() + "/state"));
}

}  // namespace
}  // namespace rknnd::integration
