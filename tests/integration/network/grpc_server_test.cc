// The gRPC server itself: where it listens, its health, its limits, its end,
// and peers that do not speak its language.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/posix/unique_fd.h"
#include "tests/integration/harness/rknnctl.h"
#include "tests/integration/network/grpc_harness.h"

namespace rknnd::integration {
namespace {

using std::chrono::seconds;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kInference[] = "inference.GRPCInferenceService";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
// Messages of grpc.health.v1: HealthCheckResponse with its status.
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

class GrpcServerTest : public GrpcTest {
 protected:
  // A connection that speaks no gRPC.
  base::UniqueFd Dial() {
    base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(Port())));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                      sizeof address),
              0);
    return fd;
  }
  // Whether the daemon closes it, in a while.
  static bool IsClosed(const base::UniqueFd& fd) {
    return Eventually([&fd] {
      std::string rest(4096, '\0');
      const ssize_t got =
          recv(fd.get(), rest.data(), rest.size(), MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    });
  }
  bool AnswersOthers() {
    const GrpcClient client(Address());
    return Metadata(client).ok();
  }
  // Niceness of the daemon's threads, by name.
  std::multimap<std::string, int> Niceness() {
    std::multimap<std::string, int> all;
    const std::string tasks =
        "/proc/" + std::to_string(daemon().pid()) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      std::string name = ReadText(task.path() / "comm");
      name = name.substr(0, name.find('\n'));
      const int number = std::stoi(task.path().filename());
      all.emplace(name, getpriority(PRIO_PROCESS, static_cast<id_t>(number)));
    }
    return all;
  }
};

TEST_F(GrpcServerTest, ADaemonWithoutGrpcMapsNothingOfIt) {
  StartDaemon();
  const std::string maps =
      ReadText("/proc/" + std::to_string(daemon().pid()) + "/maps");
  EXPECT_THAT(maps, HasSubstr("rknnd"));
  EXPECT_THAT(maps, Not(HasSubstr("libgrpc")));
  EXPECT_THAT(daemon().log(), Not(HasSubstr("gRPC")));
}

TEST_F(GrpcServerTest, HealthIsServingUntilADrain) {
  Serve();
  const GrpcClient client(Address());
  EXPECT_EQ(client.Health(""), 1);
  EXPECT_EQ(client.Health(kInference), 1);
  EXPECT_EQ(client.Health("nobody"), std::nullopt);

  const auto watch = client.Start(kWatch);
  ASSERT_TRUE(watch->Write(std::string("\x0a\x1e") + kInference));
  ASSERT_EQ(watch->Read(), kServing);
  const RknnctlResult drained =
      RunRknnctl(folder(), {"--target", daemon().target(), "drain"});
  ASSERT_EQ(drained.exit_code, 0) << drained.err;
  EXPECT_EQ(watch->Read(), kNotServing);
  EXPECT_EQ(client.Health(""), 2);
  watch->Cancel();
}

TEST_F(GrpcServerTest, ReflectionNamesTheServices) {
  Serve();
  const GrpcClient client(Address());
  const auto call = client.Start(
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  // ServerReflectionRequest with an empty list_services.
  ASSERT_TRUE(call->Write(std::string("\x3a\x00", 2)));
  const std::optional<std::string> answer = call->Read();
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(*answer, HasSubstr(kInference));
  EXPECT_THAT(*answer, HasSubstr("grpc.health.v1.Health"));
  call->Cancel();
}

TEST_F(GrpcServerTest, AUnixSocketIsItsOwnersAndGoesAtTheEnd) {
  const std::string path = folder() + "/grpc.sock";
  StartDaemon({.more = {"--grpc", "unix:" + path}});
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_THAT(daemon().log(), HasSubstr("gRPC at 'unix:" + path + "'"));
  {
    const GrpcClient client("unix:" + path);
    EXPECT_TRUE(Metadata(client).ok());
  }
  // What a killed daemon leaves is replaced...
  KillDaemon();
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  RestartDaemon();
  {
    const GrpcClient client("unix:" + path);
    EXPECT_TRUE(Metadata(client).ok());
  }
  // ...what a living one serves is not.
  EXPECT_THAT(Complaint({"--grpc", "unix:" + path}),
              HasSubstr("somebody listens"));
  EXPECT_EQ(EndDaemon(), 0);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(GrpcServerTest, APortInUseIsNamed) {
  Serve();
  EXPECT_THAT(Complaint({"--grpc", Address()}), HasSubstr(Address()));
}

TEST_F(GrpcServerTest, EndsInOrderWhileCallsAreOpen) {
  Serve();
  const GrpcClient client(Address());
  const auto watch = client.Start(kWatch);
  ASSERT_TRUE(watch->Write(""));
  ASSERT_EQ(watch->Read(), kServing);
  EXPECT_EQ(EndDaemon(), 0);
  while (watch->Read().has_value()) {
  }
  EXPECT_THAT(watch->Finish().code,
              AnyOf(GrpcCode::kUnavailable, GrpcCode::kCancelled));
}

TEST_F(GrpcServerTest, ThreadsForStrangersAreBelowThoseForLocalClients) {
  Serve();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(AnswersOthers());
  const int own = getpriority(PRIO_PROCESS, 0);
  int below = 0;
  for (const auto& [name, niceness] : Niceness()) {
    if (name == "rknnd-worker" || name == "rknnd-quick") {
      EXPECT_EQ(niceness, own) << name;
    }
    if (name == "rknnd-loader" || name == "rknnd-pager") {
      EXPECT_EQ(niceness, own + 5) << name;
    }
    if (name == "rknnd-grpc" || name.rfind("grpc", 0) == 0 ||
        name.rfind("nexting", 0) == 0 || name.rfind("event_engine", 0) == 0 ||
        name.find("-execu") != std::string::npos) {
      EXPECT_GT(niceness, own) << name;
      ++below;
    }
  }
  EXPECT_GT(below, 2);
}

TEST_F(GrpcServerTest, AMessageAboveTheLimitIsRefused) {
  Serve("message_bytes = 65536\n");
  const GrpcClient client(Address());
  const GrpcResult result =
      client.Call(std::string("/") + kInference + "/ModelInfer",
                  std::string(size_t{1} << 20, '\0'));
  EXPECT_EQ(result.code, GrpcCode::kResourceExhausted) << result.message;
  EXPECT_TRUE(AnswersOthers());
}

TEST_F(GrpcServerTest, HugeHeadersAreRefused) {
  Serve();
  const GrpcClient client(
      Address(), {.headers = {{"x-large", std::string(size_t{1} << 20, 'x')}}});
  EXPECT_FALSE(Metadata(client).ok());
  EXPECT_TRUE(AnswersOthers());
}

TEST_F(GrpcServerTest, WhatIsNoGrpcIsDisconnected) {
  Serve("keepalive = 2\n");
  const std::vector<std::string> words = {
      "GET / HTTP/1.1\r\nHost: board\r\n\r\n",
      std::string(100'000, '\xff'),
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(64, '\x7f'),
      std::string(1, '\x16') + std::string(200, '\x03'),
  };
  for (const std::string& word : words) {
    const base::UniqueFd fd = Dial();
    send(fd.get(), word.data(), word.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(IsClosed(fd)) << word.substr(0, 20);
  }
  EXPECT_TRUE(AnswersOthers());
}

TEST_F(GrpcServerTest, HalfOpenConnectionsKeepNobodyOutAndGo) {
  Serve("keepalive = 2\n");
  std::vector<base::UniqueFd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(Dial());
  EXPECT_TRUE(AnswersOthers());
  for (const base::UniqueFd& fd : silent) EXPECT_TRUE(IsClosed(fd));
}

TEST_F(GrpcServerTest, ThereAreNoMoreConnectionsThanAllowed) {
  Serve("connections = 4\n");
  std::vector<std::unique_ptr<GrpcClient>> clients;
  // Each with a connection of its own.
  const auto add = [&] {
    clients.push_back(std::make_unique<GrpcClient>(
        Address(),
        GrpcClientOptions{
            .number_arguments = {{"grpc.use_local_subchannel_pool", 1}}}));
    return Metadata(*clients.back()).code;
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(add(), GrpcCode::kOk);
  EXPECT_EQ(add(), GrpcCode::kUnavailable);
  EXPECT_THAT(daemon().log(), HasSubstr("all 4 connections are taken"));
  clients.clear();
  EXPECT_TRUE(Eventually([&] { return add() == GrpcCode::kOk; }));
}

}  // namespace
}  // namespace rknnd::integration
