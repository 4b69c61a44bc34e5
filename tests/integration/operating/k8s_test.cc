// rknnd-k8s between a real rknnd and a kubelet: what a pod gets, what it may
// have of the NPU, and that each of the three may end and come back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/unique_fd.h"
#include "rknn_api.h"
#include "tests/integration/harness/faults.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/kubelet.h"
#include "tests/integration/harness/rknnctl.h"
#include "tests/integration/operating/k8s_fixture.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

// gRPC's numbers, as a kubelet sees them.
constexpr int kInvalidArgument = 3, kUnimplemented = 12;

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

TEST_F(KubernetesTest, RegistersAsTheApiHasIt) {
  StartAll();
  const Kubelet::Plugin plugin = kubelet_.AwaitPlugin();
  EXPECT_EQ(plugin.version, "v1beta1");
  EXPECT_EQ(plugin.endpoint, "rknnd.io-npu-share.sock");
  EXPECT_EQ(plugin.resource, "rknnd.io/npu-share");
  EXPECT_FALSE(plugin.pre_start_required);
  EXPECT_FALSE(plugin.preferred_allocation);
  EXPECT_THAT(kubelet_.devices(), Contains(Pair(Id(0), "Healthy")));
  EXPECT_THAT(kubelet_.devices(), Contains(Pair(Id(11), "Healthy")));
  EXPECT_EQ(kubelet_.PreStart(), kOk);
  EXPECT_EQ(kubelet_.AskForPreference(), kUnimplemented);
}

TEST_F(KubernetesTest, ItsSocketIsForRootAloneAndGoesWithIt) {
  StartAll();
  struct stat status {};
  ASSERT_EQ(stat(PluginSocket().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0077U, 0U);
  EndPlugin();
  EXPECT_FALSE(fs::exists(PluginSocket()));
  EXPECT_TRUE(kubelet_.Await(0, 0));
}

TEST_F(KubernetesTest, APodGetsASocketOfItsOwnAndRuns) {
  StartAll();
  const Kubelet::Allocated allocated = kubelet_.Allocate({{Id(3), Id(7)}});
  ASSERT_EQ(allocated.code, kOk) << allocated.error;
  ASSERT_EQ(allocated.containers.size(), 1U);
  const Kubelet::Container& container = allocated.containers[0];
  EXPECT_THAT(container.environment,
              Contains(Pair("RKNND_TARGET", "unix:/run/rknnd/session.sock")));
  EXPECT_THAT(container.annotations, Contains(Pair("rknnd.io/share", Id(3))));
  EXPECT_EQ(container.devices, 0U);  // no device node, ever
  ASSERT_EQ(container.mounts.size(), 1U);
  EXPECT_EQ(container.mounts[0].container_path, "/run/rknnd");
  EXPECT_TRUE(container.mounts[0].read_only);
  // Nothing in it but the pod's socket: not the operators', not another pod's.
  const std::string pod = container.mounts[0].host_path;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(pod)) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, ::testing::ElementsAre("session.sock"));

  ClientProcess& client = StartPod(pod);
  Init(client);
  EXPECT_TRUE(Runs(client));
  const json sessions = SessionsOf(Id(3));
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_EQ(sessions[0]["pid"], client.pid());
  EXPECT_EQ(sessions[0]["weight"], 1000 * 2 / 12);
}

TEST_F(KubernetesTest, EachContainerOfAPodHasAnAllocation) {
  StartAll();
  const Kubelet::Allocated allocated =
      kubelet_.Allocate({{Id(0)}, {Id(1), Id(2)}});
  ASSERT_EQ(allocated.code, kOk) << allocated.error;
  ASSERT_EQ(allocated.containers.size(), 2U);
  EXPECT_NE(allocated.containers[0].mounts[0].host_path,
            allocated.containers[1].mounts[0].host_path);
}

TEST_F(KubernetesTest, WhatIsNotThereIsNotGivenAway) {
  StartAll();
  const std::string pod = Allocate({Id(0)});
  for (const std::vector<std::vector<std::string>>& bad :
       std::vector<std::vector<std::vector<std::string>>>{
           {{}},
           {{Id(12)}},
           {{"gpu-0"}},
           {{Id(0), Id(0)}},
           {{Id(0)}, {Id(0)}},
           {{Id(0)}, {"../../etc"}}}) {
    const Kubelet::Allocated refused = kubelet_.Allocate(bad);
    EXPECT_EQ(refused.code, kInvalidArgument) << refused.error;
    EXPECT_THAT(refused.error, HasSubstr("share"));
    EXPECT_TRUE(refused.containers.empty());
  }
  // A refusal takes nothing from who has it.
  ClientProcess& client = StartPod(pod);
  Init(client);
  EXPECT_TRUE(Runs(client));
}

TEST_F(KubernetesTest, ManyWhoWatchAreRefusedAndTheKubeletIsNot) {
  StartAll();
  // The kubelet itself is one of the eight.
  EXPECT_EQ(kubelet_.RefusedWatchers(10), 3);
  EXPECT_EQ(kubelet_.healthy(), kShares);
}

TEST_F(KubernetesTest, AShareIsALimitOfMemoryThatIsNamed) {
  StartDaemon();
  kubelet_.Start();
  StartPlugin({"--shares", "256"});
  ASSERT_TRUE(kubelet_.Await(256, 256));
  const json memory = AskRknnctl(folder(), daemon().target(), {"mem"});
  const uint64_t share = memory["budget"]["total"].get<uint64_t>() / 256;
  ClientProcess& client = StartPod(Allocate({Id(4)}));
  Init(client);
  const uint64_t piece = share / 4;
  Reply reply;
  uint64_t held = 0;
  for (int i = 0; reply.code == RKNN_SUCC && held <= share; ++i) {
    reply = client.Do("create m" + std::to_string(i) + " c " +
                      std::to_string(piece));
    if (reply.code == RKNN_SUCC) held += piece;
  }
  EXPECT_NE(reply.code, RKNN_SUCC);
  EXPECT_THAT(reply.text, HasSubstr(Id(4)));
  EXPECT_LE(held, share);
  EXPECT_GE(held, share - 2 * piece);
  // A neighbour's share is whole.
  ClientProcess& other = StartPod(Allocate({Id(9)}));
  Init(other);
  EXPECT_TRUE(Done(other.Do("create m c " + std::to_string(3 * piece))));
}

TEST_F(KubernetesTest, ProcessesOfAPodHaveItsShareTogether) {
  StartDaemon();
  kubelet_.Start();
  StartPlugin({"--shares", "256"});
  ASSERT_TRUE(kubelet_.Await(256, 256));
  const json memory = AskRknnctl(folder(), daemon().target(), {"mem"});
  const uint64_t share = memory["budget"]["total"].get<uint64_t>() / 256;
  const std::string pod = Allocate({Id(4)});
  ClientProcess& one = StartPod(pod);
  ClientProcess& two = StartPod(pod);
  Init(one);
  Init(two);
  const std::string most = std::to_string(share * 3 / 4);
  EXPECT_TRUE(Done(one.Do("create m c " + most)));
  EXPECT_THAT(two.Do("create m c " + most).text, HasSubstr(Id(4)));
  EXPECT_TRUE(Done(one.Do("destroy_mem c m")));
  EXPECT_TRUE(Done(two.Do("create m c " + most)));
}

TEST_F(KubernetesTest, TheEndOfAnAllocationDisconnectsWhoHadIt) {
  StartAll();
  const std::string first = Allocate({Id(1), Id(2)});
  ClientProcess& old = StartPod(first, {{"RKNND_RESTART_WAIT", "1"}});
  Init(old);
  ASSERT_TRUE(Runs(old));
  ClientProcess& other = StartPod(Allocate({Id(0)}));
  Init(other);
  const std::string second = Allocate({Id(2)});
  EXPECT_NE(first, second);
  EXPECT_FALSE(fs::exists(first));
  EXPECT_NE(old.Do("run c").code, RKNN_SUCC);
  EXPECT_TRUE(SessionsOf(Id(1)).empty());
  ClientProcess& next = StartPod(second);
  Init(next);
  EXPECT_TRUE(Runs(next));
  EXPECT_TRUE(Runs(other));
}

TEST_F(KubernetesTest, AKubeletThatStartsAgainIsRegisteredWithAgain) {
  StartAll();
  const std::string pod = Allocate({Id(1)});
  ClientProcess& client = StartPod(pod);
  Init(client);
  kubelet_.Stop();
  EXPECT_TRUE(Runs(client));
  kubelet_.Start();
  kubelet_.AwaitPlugin(2);
  EXPECT_TRUE(kubelet_.Await(kShares, kShares));
  EXPECT_TRUE(Runs(client));
  EXPECT_NE(Allocate({Id(2)}), pod);
}

TEST_F(KubernetesTest, AKubeletThatComesLaterIsWaitedFor) {
  StartDaemon();
  StartPlugin();
  ASSERT_TRUE(Eventually([&] { return fs::exists(PluginSocket()); }));
  kubelet_.Start();
  EXPECT_TRUE(kubelet_.Await(kShares, kShares));
}

TEST_F(KubernetesTest, AKubeletThatRefusesIsAskedAgain) {
  StartDaemon();
  kubelet_.Refuse("not now");
  kubelet_.Start();
  StartPlugin();
  ASSERT_TRUE(Eventually([&] {
    return PluginLog().find("not now; trying again") != std::string::npos;
  }));
  kubelet_.Refuse("");
  EXPECT_TRUE(kubelet_.Await(kShares, kShares));
}

TEST_F(KubernetesTest, SharesAreThereOnceTheDaemonHasSaidHowMany) {
  kubelet_.Start();
  StartPlugin();
  kubelet_.AwaitPlugin();
  EXPECT_TRUE(kubelet_.devices().empty());
  StartDaemon({.soc = "rk3568"});
  EXPECT_TRUE(kubelet_.Await(4, 4));
}

TEST_F(KubernetesTest, SharesOfADaemonThatIsNotThereAreUnhealthy) {
  kubelet_.Start();
  StartPlugin({"--shares", "5"});
  EXPECT_TRUE(kubelet_.Await(0, 5));
  StartDaemon();
  EXPECT_TRUE(kubelet_.Await(5, 5));
}

TEST_F(KubernetesTest, ADaemonThatDiesTakesNoPodWithIt) {
  StartAll();
  const std::string pod = Allocate({Id(6)});
  ClientProcess& client = StartPod(pod);
  Init(client);
  KillDaemon();
  EXPECT_TRUE(kubelet_.Await(0, kShares));
  client.Send("run c");
  RestartDaemon();
  EXPECT_TRUE(Done(client.Receive()));
  EXPECT_TRUE(Right(client.Do("compare c" + relu_.output_list())));
  EXPECT_TRUE(kubelet_.Await(kShares, kShares));
  EXPECT_EQ(SessionsOf(Id(6)).size(), 1U);
}

TEST_F(KubernetesTest, ARestartWithinTheGraceIsNotToldToTheKubelet) {
  StartDaemon();
  kubelet_.Start();
  StartPlugin({"--grace", "3600"});
  ASSERT_TRUE(kubelet_.Await(kShares, kShares));
  const std::string pod = Allocate({Id(6)});
  KillDaemon();
  // One that is given away meanwhile waits in its socket's queue.
  const std::string late = Allocate({Id(7)});
  ClientProcess& client = StartPod(late);
  client.Send("init c " + relu_.path);
  EXPECT_EQ(kubelet_.healthy(), kShares);
  RestartDaemon();
  EXPECT_TRUE(Done(client.Receive()));
  EXPECT_EQ(SessionsOf(Id(7)).size(), 1U);
  EXPECT_EQ(kubelet_.healthy(), kShares);
}

TEST_F(KubernetesTest, ARestartOfItselfLeavesPodsAtWork) {
  StartAll();
  const std::string pod = Allocate({Id(3), Id(8)});
  ClientProcess& client = StartPod(pod);
  Init(client);
  const json before = SessionsOf(Id(3));
  for (const bool killed : {false, true}) {
    if (killed) {
      KillPlugin();
    } else {
      EndPlugin();
    }
    EXPECT_TRUE(Runs(client));
    StartPlugin({"--grace", "0"});
    ASSERT_TRUE(kubelet_.Await(kShares, kShares));
    // The same session, and a new one by the same folder.
    EXPECT_TRUE(Runs(client));
    EXPECT_EQ(SessionsOf(Id(3))[0]["id"], before[0]["id"]);
    ClientProcess& next = StartPod(pod);
    Init(next);
    EXPECT_TRUE(Runs(next));
  }
  EXPECT_EQ(SessionsOf(Id(3)).size(), 3U);
  // And the pod's end is seen by the next life.
  Allocate({Id(8)});
  EXPECT_TRUE(SessionsOf(Id(3)).empty());
}

TEST_F(KubernetesTest, ARestartOfItselfThatTheDaemonDoesNotSeeLeavesPods) {
  StartAll();
  const std::string pod = Allocate({Id(3)});
  // It still serves the share sockets of the one that has ended.
  daemon().Stand();
  KillPlugin();
  StartPlugin({"--grace", "0"});
  kubelet_.AwaitPlugin(2);
  EXPECT_TRUE(fs::exists(pod)) << PluginLog();
  daemon().GoOn();
  ASSERT_TRUE(kubelet_.Await(kShares, kShares));
  ClientProcess& client = StartPod(pod);
  Init(client);
  EXPECT_TRUE(Runs(client));
  EXPECT_EQ(SessionsOf(Id(3)).size(), 1U);
}

TEST_F(KubernetesTest, ADrainingDaemonIsUnhealthy) {
  StartAll();
  ClientProcess& client = StartPod(Allocate({Id(6)}));
  Init(client);
  // It lasts as long as somebody is left.
  EXPECT_EQ(
      RunRknnctl(folder(), {"--target", daemon().target(), "drain"}).exit_code,
      0);
  EXPECT_TRUE(kubelet_.Await(0, kShares));
  EXPECT_THAT(PluginLog(), HasSubstr("draining"));
}

TEST_F(KubernetesTest, AnNpuWhoseCoresAllHangIsUnhealthyUntilItIsBack) {
  FaultOptions faults;
  faults.give_up = 0;  // the driver never does
  faults.hang = 100 * base::kMillisecond;
  StartDaemon(WithFaults(folder(), faults, {.soc = "rk3568"}));
  kubelet_.Start();
  StartPlugin({"--grace", "3600", "--interval", "1"});
  ASSERT_TRUE(kubelet_.Await(4, 4));
  driver::Fault hang;
  hang.kind = driver::FaultKind::kHang;
  SetFault(folder(), daemon().target(), hang);
  ClientProcess& client = StartPod(Allocate({Id(0)}));
  Init(client);
  EXPECT_NE(client.Do("run c").code, RKNN_SUCC);
  EXPECT_TRUE(kubelet_.Await(0, 4));
  EXPECT_THAT(PluginLog(), HasSubstr("do not end"));
  ClearFault(folder(), daemon().target());
  EXPECT_EQ(
      RunRknnctl(folder(), {"--target", daemon().target(), "reset"}).exit_code,
      0);
  EXPECT_TRUE(kubelet_.Await(4, 4));
}

TEST_F(KubernetesTest, BytesThatAreNoGrpcDoItNoHarm) {
  StartAll();
  const sockaddr_un address = AddressOf(PluginSocket());
  for (const std::string& bytes :
       {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"),
        std::string(1 << 20, '\xff'),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(1 << 16, '\0')}) {
    const base::UniqueFd peer(
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_EQ(connect(peer.get(), reinterpret_cast<const sockaddr*>(&address),
                      sizeof address),
              0);
    // As far as it is taken.
    static_cast<void>(
        send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  EXPECT_EQ(kubelet_.healthy(), kShares);
  EXPECT_EQ(kubelet_.PreStart(), kOk);
}

TEST_F(KubernetesTest, TheServiceManagerIsToldHowItStands) {
  const std::string path = folder() + "/notify";
  const base::UniqueFd manager(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressOf(path);
  ASSERT_EQ(bind(manager.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof address),
            0);
  std::string said;
  const auto hears = [&](const std::string& words) {
    return Eventually([&] {
      std::array<char, 1024> message{};
      const ssize_t size =
          recv(manager.get(), message.data(), message.size(), MSG_DONTWAIT);
      if (size > 0) said.append(message.data(), static_cast<size_t>(size));
      return said.find(words) != std::string::npos;
    });
  };
  StartDaemon();
  kubelet_.Start();
  StartPlugin({"--grace", "0"}, {{"NOTIFY_SOCKET", path}});
  EXPECT_TRUE(hears("READY=1")) << said;
  EXPECT_TRUE(hears("12 shares of rknnd.io/npu-share, registered; rknnd: well"))
      << said;
  KillDaemon();
  EXPECT_TRUE(hears("registered; rknnd: no answer from rknnd")) << said;
  EndPlugin();
  EXPECT_TRUE(hears("STOPPING=1")) << said;
  RestartDaemon();
}

TEST_F(KubernetesTest, WrongOptionsSayWhatIsWrong) {
  int complaints = 0;
  const auto complaint = [&](std::vector<std::string> arguments) {
    base::ChildProcess::Options options;
    options.arguments = {ProgramPath("rknnd-k8s")};
    options.arguments.insert(options.arguments.end(), arguments.begin(),
                             arguments.end());
    options.error_file = folder() + "/said" + std::to_string(++complaints);
    options.environment = {{"JOURNAL_STREAM", "9:1"}};  // another's stderr
    auto process = base::ChildProcess::Start(options);
    if (!process.ok()) return process.error().message;
    const auto code = process->Wait(kPatience);
    return (code.ok() ? std::to_string(*code) : "none") + " " +
           ReadText(options.error_file);
  };
  EXPECT_THAT(complaint({"--resource", "NPU"}),
              HasSubstr("2 rknnd-k8s: --resource is 'NPU'"));
  EXPECT_THAT(complaint({"--shares", "257"}), HasSubstr("--shares"));
  EXPECT_THAT(complaint({"--kubelet-dir", folder() + "/none", "--socket-dir",
                         folder()}),
              HasSubstr("1 rknnd-k8s: watch folder '" + folder() + "/none'"));
  EXPECT_THAT(complaint({"--kubelet-dir", kubelet_dir_, "--socket-dir",
                         folder() + "/none"}),
              HasSubstr("none/pods'"));
}

}  // namespace
}  // namespace rknnd::integration
