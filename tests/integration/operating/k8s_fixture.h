// rknnd-k8s between a real rknnd and a kubelet, and programs in pods: for the
// tests of the three together.

#ifndef TESTS_INTEGRATION_OPERATING_K8S_FIXTURE_H_
#define TESTS_INTEGRATION_OPERATING_K8S_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "rknn_api.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/kubelet.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {

inline constexpr int kOk = 0;          // gRPC's
inline constexpr size_t kShares = 12;  // of an RK3588

// Of a share.
inline std::string Id(int share) {
  const std::string digits = std::to_string(share);
  return "npu-share-" + std::string(3 - digits.size(), '0') + digits;
}

class KubernetesTest : public IntegrationTest {
 protected:
  KubernetesTest()
      : kubelet_dir_(folder() + "/kubelet"), kubelet_(kubelet_dir_) {
    std::filesystem::create_directory(kubelet_dir_);
    relu_ = MakeRelu(folder());
  }
  ~KubernetesTest() override {
    clients_.clear();
    EndPlugin();
    if (HasFailure()) {
      std::fprintf(stderr, "---- rknnd-k8s said:\n%s----\n",
                   PluginLog().c_str());
    }
  }

  void StartPlugin(const std::vector<std::string>& more = {},
                   const Environment& environment = {}) {
    base::ChildProcess::Options options;
    options.arguments = {ProgramPath("rknnd-k8s"), "--kubelet-dir",
                         kubelet_dir_, "--socket-dir", folder()};
    options.arguments.insert(options.arguments.end(), more.begin(), more.end());
    options.environment = environment;
    options.error_file = folder() + "/rknnd-k8s.log";
    auto process = base::ChildProcess::Start(options);
    ASSERT_TRUE(process.ok()) << process.error().message;
    plugin_ = *std::move(process);
  }
  void EndPlugin() {
    if (!plugin_.running()) return;
    plugin_.Signal(SIGTERM);
    const auto code = plugin_.Wait(kPatience);
    EXPECT_TRUE(code.ok() && *code == 0) << "rknnd-k8s did not end well";
  }
  void KillPlugin() {
    plugin_.Signal(SIGKILL);
    static_cast<void>(plugin_.Wait(kPatience));
  }
  [[nodiscard]] std::string PluginLog() const {
    return ReadText(folder() + "/rknnd-k8s.log");
  }
  // All three, and the shares are there.
  void StartAll(DaemonOptions options = {}) {
    StartDaemon(std::move(options));
    kubelet_.Start();
    StartPlugin({"--grace", "0", "--interval", "1"});
    ASSERT_TRUE(kubelet_.Await(kShares, kShares)) << kubelet_.healthy();
  }
  // Its folder of the host.
  std::string Allocate(const std::vector<std::string>& ids) {
    const Kubelet::Allocated allocated = kubelet_.Allocate({ids});
    EXPECT_EQ(allocated.code, kOk) << allocated.error;
    if (allocated.containers.size() != 1 ||
        allocated.containers[0].mounts.size() != 1) {
      ADD_FAILURE() << "one mount for one container";
      return folder() + "/none";
    }
    return allocated.containers[0].mounts[0].host_path;
  }
  // A program in a pod: it has the socket that is in the folder it was given.
  ClientProcess& StartPod(const std::string& pod,
                          const Environment& more = {}) {
    return *clients_.emplace_back(
        StartClient(more, "unix:" + pod + "/session.sock"));
  }
  testing::AssertionResult Runs(ClientProcess& client) {
    const Reply ran = client.Do("run c");
    if (ran.code != RKNN_SUCC) return Done(ran);
    return Right(client.Do("compare c" + relu_.output_list()));
  }
  void Init(ClientProcess& client) {
    ASSERT_TRUE(Done(client.Do("init c " + relu_.path)));
    ASSERT_TRUE(Done(client.Do("inputs c" + relu_.input_list())));
  }
  // Sessions by the allocation they came in by.
  nlohmann::json SessionsOf(const std::string& allocation) {
    nlohmann::json found = nlohmann::json::array();
    for (const nlohmann::json& session :
         AskRknnctl(folder(), daemon().target(), {"sessions"})) {
      if (session["allocation"] == allocation) found.push_back(session);
    }
    return found;
  }
  [[nodiscard]] std::string PluginSocket() const {
    return kubelet_dir_ + "/rknnd.io-npu-share.sock";
  }

  const std::string kubelet_dir_;
  Kubelet kubelet_;
  base::ChildProcess plugin_;
  TestModel relu_;
  std::vector<std::unique_ptr<ClientProcess>> clients_;
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_OPERATING_K8S_FIXTURE_H_
