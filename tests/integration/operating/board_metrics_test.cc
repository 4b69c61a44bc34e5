// The metrics page: read by a plain HTTP client, judged by Prometheus' own
// tool, scraped by Prometheus where it is installed.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/unique_fd.h"
#include "nlohmann/json.hpp"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/raw_client.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

base::UniqueFd Connect(uint16_t port) {
  base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
              sizeof address) != 0) {
    return {};
  }
  return fd;
}

// The whole answer to GET `path`; empty when nobody answers.
std::string Get(uint16_t port, const std::string& path) {
  const base::UniqueFd fd = Connect(port);
  if (!fd.valid()) return "";
  const std::string request =
      "GET " + path + " HTTP/1.0\r\nHost: localhost\r\n\r\n";
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return "";
  }
  std::string answer;
  char piece[4096];
  for (ssize_t got; (got = read(fd.get(), piece, sizeof piece)) > 0;) {
    answer.append(piece, static_cast<size_t>(got));
  }
  return answer;
}

class BoardMetricsTest : public IntegrationTest {
 protected:
  void StartWithMetrics() {
    DaemonOptions options;
    options.more = {"--metrics", "127.0.0.1:0"};
    StartDaemon(options);
    port_ = static_cast<uint16_t>(
        std::stoul(daemon().AwaitSaid("metrics at 'http://127.0.0.1:")));
  }

  std::string Page() {
    const std::string answer = Get(port_, "/metrics");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    const size_t body = answer.find("\r\n\r\n");
    return body == std::string::npos ? "" : answer.substr(body + 4);
  }

  // Values by name with labels, as they stand on the page.
  static std::map<std::string, double> Values(const std::string& page) {
    std::map<std::string, double> values;
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      const size_t space = line.rfind(' ');
      if (line.starts_with("#") || space == std::string::npos) continue;
      values[line.substr(0, space)] = std::stod(line.substr(space + 1));
    }
    return values;
  }

  uint16_t port_ = 0;
};

TEST_F(BoardMetricsTest, RunsAreCountedWhereTheyBelong) {
  StartWithMetrics();
  const TestModel model = MakeConvNet(folder());
  auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init v " + model.path + " 0")));
  ASSERT_TRUE(Done(client->Do("bind_all v")));
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(Done(client->Do("run v")));
  }
  const auto values = Values(Page());
  EXPECT_EQ(values.at("rknnd_jobs_done_total"), 3);
  EXPECT_EQ(values.at("rknnd_job_latency_seconds_count"), 3);
  EXPECT_EQ(values.at("rknnd_job_run_seconds_bucket{le=\"+Inf\"}"), 3);
  EXPECT_EQ(values.at("rknnd_job_failures_total{code=\"internal\"}"), 0);
  double on_cores = 0, of_sessions = 0, jobs = 0;
  for (const auto& [name, value] : values) {
    if (name.starts_with("rknnd_npu_busy_seconds_total{")) on_cores += value;
    if (name.starts_with("rknnd_npu_jobs_total{")) jobs += value;
    if (name.starts_with("rknnd_session_npu_seconds_total{")) {
      of_sessions += value;
      EXPECT_THAT(name,
                  HasSubstr("pid=\"" + std::to_string(client->pid()) + "\""));
    }
  }
  EXPECT_EQ(jobs, 3);
  EXPECT_GT(on_cores, 0);
  // Microseconds are what sessions are charged in.
  EXPECT_NEAR(of_sessions, on_cores, 1e-5);
  EXPECT_GT(values.at("rknnd_memory_bytes{kind=\"weight\"}"), 0);
}

TEST_F(BoardMetricsTest, FailuresAreCountedByCode) {
  StartWithMetrics();
  RawClient client(daemon().socket());
  client.SayHello();
  wire::Submission run{};
  run.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  run.context = 77;
  EXPECT_EQ(client.Submit(run).code, base::Code::kNotFound);
  EXPECT_FALSE(
      client.Ask(wire::Verb::kDestroyContext, wire::DestroyContext{77}).ok());
  const auto values = Values(Page());
  EXPECT_EQ(values.at("rknnd_job_failures_total{code=\"not_found\"}"), 1);
  EXPECT_EQ(values.at("rknnd_request_failures_total{code=\"not_found\"}"), 1);
  EXPECT_EQ(values.at("rknnd_jobs_done_total"), 0);
}

TEST_F(BoardMetricsTest, OtherPathsAndGarbageAreErrorsAndNoMore) {
  StartWithMetrics();
  EXPECT_THAT(Get(port_, "/../etc/passwd"), HasSubstr(" 404 "));
  EXPECT_THAT(Get(port_, "/nothing"), HasSubstr(" 404 "));
  // Connections that ask for nothing, as many as there are threads and more.
  std::vector<base::UniqueFd> idle;
  for (int i = 0; i < 3; ++i) idle.push_back(Connect(port_));
  EXPECT_THAT(Page(), HasSubstr("rknnd_uptime_seconds"));
}

TEST_F(BoardMetricsTest, EndOfTheDaemonDoesNotWaitForReaders) {
  StartWithMetrics();
  const base::UniqueFd idle = Connect(port_);
  ASSERT_TRUE(idle.valid());
  EXPECT_EQ(EndDaemon(), 0);
}

TEST_F(BoardMetricsTest, PrometheusToolFindsNothingToSay) {
  const std::string promtool = FindProgram("promtool");
  if (promtool.empty()) GTEST_SKIP() << "promtool is not installed";
  StartWithMetrics();
  auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init v " + MakeConvNet(folder()).path + " 0")));
  const std::string page = WriteFile(folder() + "/page.txt", Page());
  base::ChildProcess::Options options;
  options.arguments = {"/bin/sh", "-c",
                       "exec " + promtool + " check metrics < " + page};
  options.error_file = folder() + "/promtool.log";
  auto tool = base::ChildProcess::Start(options);
  ASSERT_TRUE(tool.ok());
  const auto code = tool->Wait(kPatience);
  EXPECT_EQ(code.ok() ? *code : -1, 0) << ReadText(options.error_file);
}

TEST_F(BoardMetricsTest, PrometheusScrapesIt) {
  const std::string prometheus = FindProgram("prometheus");
  if (prometheus.empty()) GTEST_SKIP() << "prometheus is not installed";
  StartWithMetrics();
  const std::string config = WriteFile(
      folder() + "/prometheus.yml",
      "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: board\n"
      "  static_configs: [{targets: ['127.0.0.1:" +
          std::to_string(port_) + "']}]\n");
  // A port that was free a moment ago: it cannot be asked to choose one.
  uint16_t port = 0;
  {
    const base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(
        bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address),
        0);
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  base::ChildProcess::Options options;
  options.arguments = {
      prometheus, "--config.file=" + config,
      "--storage.tsdb.path=" + folder() + "/tsdb",
      "--web.listen-address=127.0.0.1:" + std::to_string(port)};
  options.error_file = folder() + "/prometheus.log";
  auto server = base::ChildProcess::Start(options);
  ASSERT_TRUE(server.ok());
  std::string answer;
  EXPECT_TRUE(Eventually([&] {
    answer = Get(port, "/api/v1/query?query=rknnd_uptime_seconds");
    const size_t body = answer.find("\r\n\r\n");
    if (body == std::string::npos) return false;
    const json reply = json::parse(answer.substr(body + 4), nullptr, false);
    return reply.is_object() && reply.value("status", "") == "success" &&
           !reply["data"]["result"].empty();
  })) << answer
      << ReadText(options.error_file);
}

}  // namespace
}  // namespace rknnd::integration
