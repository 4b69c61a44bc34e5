// A local program at work while 1,000 connections keep 10,000 requests open at
// the gRPC port and one peer reads none of its answers: what the program
// notices and what memory the daemon takes.
//
// The crowd stands for other machines, which have CPUs of their own; here it
// shares those of the board. What it computes is to cost the board nothing, so
// it runs where no CPU has anything else to do (SCHED_IDLE), and pushes nobody
// off a CPU when a packet wakes it, as a thread of the lowest niceness may.
// What the kernel does for it, on either side of the loopback, is paid by the
// board all the same. --crowd nice gives it the lowest niceness instead.

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/posix/child_process.h"
#include "bench/common/failure.h"
#include "bench/common/measures.h"
#include "bench/remote/board.h"
#include "bench/remote/calls.h"
#include "bench/remote/networks.h"
#include "bench/remote/rows.h"

namespace rknnd::bench {
namespace {

constexpr int kConnections = 1000, kCallsEach = 10;
constexpr uint64_t kLimit = uint64_t{256} << 20;
constexpr double kMostDelay = 1.2;
constexpr double kPeriodMs = 20;
constexpr base::Nanoseconds kPatience = 300 * base::kSecond;

std::string WriteRequest(const std::string& path, const std::string& model) {
  std::ofstream(path, std::ios::binary)
      << InferRequest(model, "image", "FP32", {1, 3, 320, 320},
                      std::string(kFloatImageBytes, '\0'));
  return path;
}

base::ChildProcess StartBeat(const RemoteBoard& board, double seconds) {
  return client::Launcher().Start(
      {"rknnd-bench-remote", "--role", "beat", "--period-ms",
       std::to_string(kPeriodMs), "--seconds", std::to_string(seconds)},
      {{"RKNND_TARGET", board.local_target()}});
}

nlohmann::json Said(base::ChildProcess& process) {
  return nlohmann::json::parse(
      client::Launcher().NextLine(process, "a measuring process", kPatience));
}

}  // namespace

int RunCrowd(const RolePlan& plan) {
  // As in the daemon: a debugging aid of Debian's abseil.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (plan.crowd == "nice") {
    setpriority(PRIO_PROCESS, 0, 19);
  } else {
    const sched_param no_priority{};
    sched_setscheduler(0, SCHED_IDLE, &no_priority);
  }
  std::ifstream file(plan.request, std::ios::binary);
  Crowd::Plan crowd;
  crowd.address = plan.address;
  crowd.method = plan.method;
  crowd.request = {std::istreambuf_iterator<char>(file), {}};
  crowd.connections = plan.connections;
  crowd.calls = plan.calls;
  const Crowd members(crowd);
  if (plan.stop_after > 0) {
    SleepFor(plan.stop_after);
    std::puts("{}");
    std::fflush(stdout);
    raise(SIGSTOP);
  }
  std::puts("ready");
  std::fflush(stdout);
  SleepFor(plan.warm);
  const Crowd::Counts before = members.counts();
  SleepFor(plan.seconds);
  const Crowd::Counts counts = members.counts();
  std::vector<uint64_t> done_by = counts.done_by;
  for (size_t i = 0; i < done_by.size(); ++i) done_by[i] -= before.done_by[i];
  const nlohmann::json said = {{"done", counts.done - before.done},
                               {"refused", counts.refused - before.refused},
                               {"failed", counts.failed - before.failed},
                               {"last_failure", counts.last_failure},
                               {"done_by", done_by}};
  std::puts(said.dump().c_str());
  std::fflush(stdout);
  _exit(0);
}

void MeasureCrowd(double seconds, const std::string& scheduled,
                  Figures* figures) {
  const base::TemporaryFolder folder = client::MakeTemporaryFolder();
  const std::string config = folder.path() + "/rknnd.toml";
  std::ofstream(config) << "[grpc]\nmemory = " << kLimit << "\n";
  RemoteBoard board(/*paced=*/false, {"--config", config});
  {
    Calls calls(board.grpc());
    calls.Unary(kModelLoad, LoadRequest("means", FloatImageModel()));
    calls.Unary(kModelLoad, LoadRequest("same", SameImageModel()));
  }
  // Each alone first.
  base::ChildProcess beat = StartBeat(board, seconds);
  const auto alone = Said(beat);
  const uint64_t resident = ResidentBytes(board.pid());

  const client::Launcher launcher;
  const base::ChildProcess unread = [&] {
    base::ChildProcess process = launcher.Start(
        {"rknnd-bench-remote", "--role", "crowd", "--address", board.grpc(),
         "--method", kModelInfer, "--request",
         WriteRequest(folder.path() + "/same.bin", "same"), "--connections",
         "1", "--calls", "64", "--stop-after", "0.5", "--crowd", scheduled});
    launcher.NextLine(process, "the peer that never reads", kPatience);
    return process;
  }();
  base::ChildProcess crowd = launcher.Start(
      {"rknnd-bench-remote", "--role", "crowd", "--address", board.grpc(),
       "--method", kModelInfer, "--request",
       WriteRequest(folder.path() + "/means.bin", "means"), "--connections",
       std::to_string(kConnections), "--calls", std::to_string(kCallsEach),
       "--seconds", std::to_string(seconds + 4), "--crowd", scheduled});
  launcher.NextLine(crowd, "the crowd", kPatience);
  beat = StartBeat(board, seconds);
  uint64_t most = 0;
  for (const double end = SecondsNow() + seconds; SecondsNow() < end;) {
    most = std::max(most, ResidentBytes(board.pid()));
    SleepFor(0.05);
  }
  const auto beside = Said(beat);
  auto counts = Said(crowd);
  counts.erase("done_by");
  unread.Signal(SIGKILL);

  const uint64_t grown = most > resident ? most - resident : 0;
  figures->Add(
      "1,000 connections, 10,000 requests: daemon's memory",
      Text("at most %llu MB more",
           static_cast<unsigned long long>(kLimit >> 20)),
      Text("%llu MB more", static_cast<unsigned long long>(grown >> 20)),
      grown <= kLimit, {{"bytes", grown}, {"crowd", counts}});
  const double p99 = beside.at("p99_us").get<double>();
  const double alone_p99 = alone.at("p99_us").get<double>();
  figures->Add(
      "  a local program's p99 beside them",
      Text("at most %.1f x alone", kMostDelay),
      Text("%.2f x (%.0f us, alone %.0f us)", p99 / alone_p99, p99, alone_p99),
      p99 <= kMostDelay * alone_p99,
      {{"alone", alone}, {"beside", beside}, {"crowd_runs", scheduled}});
  figures->AddBeside("  of the crowd's requests",
                     Text("%llu answered, %llu refused, %llu failed",
                          counts.at("done").get<unsigned long long>(),
                          counts.at("refused").get<unsigned long long>(),
                          counts.at("failed").get<unsigned long long>()),
                     counts);
}

}  // namespace rknnd::bench
