// nginx and HAProxy in front of the gRPC port, as their manuals have gRPC
// configured: inference and the whole C API go through unchanged, and go on at
// another board when one is gone.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/grpc_client.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/interop/programs.h"

namespace rknnd::integration {
namespace {

class ProxiesTest : public IntegrationTest,
                    public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    program_ = FindProgram(GetParam());
    if (program_.empty()) GTEST_SKIP() << GetParam() << " is not installed";
  }

  // In front of these ports; false when it does not start.
  bool StartProxy(const std::vector<uint16_t>& backends) {
    port_ = FreePort();
    base::ChildProcess::Options options;
    const std::string config = folder() + "/proxy.conf";
    if (GetParam() == "nginx") {
      WriteFile(config, NginxConfig(backends));
      options.arguments = {
          program_, "-p",  folder(), "-e", folder() + "/proxy.log",
          "-c",     config};
    } else {
      WriteFile(config, HaproxyConfig(backends));
      options.arguments = {program_, "-db", "-f", config};
    }
    options.error_file = folder() + "/proxy.err";
    auto proxy = base::ChildProcess::Start(options);
    if (!proxy.ok()) return false;
    proxy_ = *std::move(proxy);
    return Listens(port_);
  }

  [[nodiscard]] std::string Address() const {
    return "127.0.0.1:" + std::to_string(port_);
  }
  [[nodiscard]] std::string Target() const { return "tcp://" + Address(); }
  [[nodiscard]] std::string ProxySaid() const {
    return ReadText(folder() + "/proxy.err");
  }

 private:
  [[nodiscard]] std::string NginxConfig(
      const std::vector<uint16_t>& backends) const {
    std::string servers;
    for (const uint16_t backend : backends) {
      servers += "server 127.0.0.1:" + std::to_string(backend) + ";";
    }
    return (geteuid() == 0 ? "user root;" : std::string()) +
           "daemon off; pid " + folder() +
           "/nginx.pid; worker_processes 1; events {}\n"
           "http { access_log off; client_body_temp_path " +
           folder() + "/body; proxy_temp_path " + folder() +
           "/proxy; fastcgi_temp_path " + folder() +
           "/fastcgi; uwsgi_temp_path " + folder() + "/uwsgi; scgi_temp_path " +
           folder() + "/scgi;\nupstream boards {" + servers +
           "}\nserver { listen 127.0.0.1:" + std::to_string(port_) +
           " http2; client_max_body_size 0;\n"
           "location / { grpc_pass grpc://boards; } } }\n";
  }
  [[nodiscard]] std::string HaproxyConfig(
      const std::vector<uint16_t>& backends) const {
    std::string servers;
    for (size_t i = 0; i < backends.size(); ++i) {
      servers += "  server board" + std::to_string(i) +
                 " 127.0.0.1:" + std::to_string(backends[i]) +
                 " proto h2 check inter 100\n";
    }
    return "defaults\n  mode http\n  timeout connect 5s\n  timeout client "
           "60s\n  timeout server 60s\nfrontend in\n  bind 127.0.0.1:" +
           std::to_string(port_) +
           " proto h2\n  default_backend boards\nbackend boards\n" + servers;
  }

  std::string program_;
  uint16_t port_ = 0;
  base::ChildProcess proxy_;
};

TEST_P(ProxiesTest, InferenceGoesThrough) {
  const TestModel model = MakeConvNet(folder());
  StartDaemon(WithGrpc());
  ASSERT_TRUE(StartProxy({GrpcPortOf(daemon())})) << ProxySaid();
  const GrpcClient client(Address());
  const auto server = client.AskOip("ServerMetadata");
  ASSERT_TRUE(server.ok()) << server.message;
  EXPECT_EQ(server.reply["name"], "rknnd");
  EXPECT_EQ(client.Health(""), 1);
}

TEST_P(ProxiesTest, ProgramsOfTheVendorsApiGoThrough) {
  const TestModel model = MakeConvNet(folder());
  StartDaemon(WithGrpc());
  ASSERT_TRUE(StartProxy({GrpcPortOf(daemon())})) << ProxySaid();
  auto client = StartClient({}, Target());
  ASSERT_TRUE(Done(client->Do("init v " + model.path + " 0")))
      << client->log() << ProxySaid();
  ASSERT_TRUE(Done(client->Do("inputs v" + model.input_list())));
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(Done(client->Do("run v")));
  }
  EXPECT_TRUE(Right(client->Do("compare v" + model.output_list())));
}

TEST_P(ProxiesTest, WorkGoesOnAtTheOtherBoard) {
  const TestModel model = MakeConvNet(folder());
  StartDaemon(WithGrpc());
  std::filesystem::create_directories(folder() + "/second");
  DaemonProcess second(folder() + "/second", WithGrpc());
  second.Start();
  ASSERT_TRUE(StartProxy({GrpcPortOf(daemon()), GrpcPortOf(second)}))
      << ProxySaid();
  auto client = StartClient({}, Target());
  ASSERT_TRUE(Done(client->Do("init v " + model.path + " 0")));
  ASSERT_TRUE(Done(client->Do("inputs v" + model.input_list())));
  ASSERT_TRUE(Done(client->Do("run v")));
  // Whichever board it is at.
  KillDaemon();
  ASSERT_TRUE(Done(client->Do("run v")));
  EXPECT_TRUE(Right(client->Do("compare v" + model.output_list())));
  RestartDaemon();
}

INSTANTIATE_TEST_SUITE_P(, ProxiesTest, testing::Values("nginx", "haproxy"));

}  // namespace
}  // namespace rknnd::integration
