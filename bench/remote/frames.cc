// The C API with eight frames in flight on a paced NPU: a process that runs
// here, and the same process with the target tcp://. And what a local program
// notices of a crowd at the gRPC port.

#include <atomic>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/child_process.h"
#include "bench/common/failure.h"
#include "bench/common/measures.h"
#include "bench/remote/board.h"
#include "bench/remote/calls.h"
#include "bench/remote/local_runs.h"
#include "bench/remote/networks.h"
#include "bench/remote/rows.h"
#include "client/include/rknnd.h"

namespace rknnd::bench {
namespace {

constexpr int kFrames = 8;
// 8 us each: 24 ms a frame, as a detector of 640 x 640.
constexpr int kDetectorLayers = 3000;
constexpr double kLeastRate = 0.95;
constexpr base::Nanoseconds kPatience = 120 * base::kSecond;

nlohmann::json RunProcess(const std::vector<std::string>& arguments,
                          const std::string& target) {
  const client::Launcher launcher;
  std::vector<std::string> all = {"rknnd-bench-remote"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  base::ChildProcess process = launcher.Start(all, {{"RKNND_TARGET", target}});
  return nlohmann::json::parse(
      launcher.NextLine(process, "a measuring process", kPatience));
}

double FramesPerSecond(RemoteBoard& board, const std::string& target,
                       double seconds, double* busy) {
  const auto look = [&] {
    double sum = 0;
    for (const auto& core :
         board.Ask(rknnd_v1_ReportKind_REPORT_STATUS).core_reports) {
      sum += static_cast<double>(core.busy_ns) * 1e-9;
    }
    return sum;
  };
  const double before = look();
  const auto said =
      RunProcess({"--role", "frames", "--frames", std::to_string(kFrames),
                  "--seconds", std::to_string(seconds)},
                 target);
  *busy = (look() - before) / seconds;
  return said.at("fps").get<double>();
}

}  // namespace

int RunFrames(const RolePlan& plan) {
  // A thread and a context for each frame in flight.
  std::atomic<uint64_t> done{0};
  std::atomic<int> ready{0};
  std::atomic<bool> counts{false}, ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < plan.frames; ++i) {
    threads.emplace_back([&] {
      LocalContext context(ByteImageModel(kDetectorLayers), RKNN_TENSOR_UINT8);
      context.Run();
      ++ready;
      while (!ends) {
        context.Run();
        if (counts) ++done;
      }
    });
  }
  while (ready < plan.frames) SleepFor(0.01);
  SleepFor(0.3);
  counts = true;
  const double begin = SecondsNow();
  SleepFor(plan.seconds);
  counts = false;
  const double took = SecondsNow() - begin;
  std::printf("{\"fps\": %f}\n", static_cast<double>(done) / took);
  std::fflush(stdout);
  ends = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}

void MeasureFrames(double seconds, Figures* figures) {
  RemoteBoard board(/*paced=*/true);
  double local_busy = 0, remote_busy = 0;
  const double local =
      FramesPerSecond(board, board.local_target(), seconds, &local_busy);
  const double remote =
      FramesPerSecond(board, board.tcp_target(), seconds, &remote_busy);
  figures->Add("C API over tcp://, 8 frames of 1.2 MB in flight",
               Text("at least %.0f %% of local", kLeastRate * 100),
               Text("%.1f %% (%.1f fps, local %.1f)", remote / local * 100,
                    remote, local),
               remote >= kLeastRate * local,
               {{"fps", remote}, {"local_fps", local}});
}

int RunBeat(const RolePlan& plan) {
  LocalContext context(ByteImageModel(0), RKNN_TENSOR_UINT8);
  context.Run();
  std::vector<double> us;
  double next = SecondsNow();
  for (const double end = next + plan.seconds; next < end;
       next += plan.period_ms * 1e-3) {
    if (next > SecondsNow()) SleepFor(next - SecondsNow());
    context.Run();
    rknnd_run_report report{};
    if (rknnd_last_run(context.get(), &report) != RKNN_SUCC) {
      Fail("rknnd_last_run");
    }
    us.push_back(static_cast<double>(report.total_ns) * 1e-3);
  }
  const nlohmann::json said = {{"p50_us", Percentile(us, 0.5)},
                               {"p99_us", Percentile(us, 0.99)}};
  std::puts(said.dump().c_str());
  std::fflush(stdout);
  return 0;
}

}  // namespace rknnd::bench
