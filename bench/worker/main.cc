// What hosting the vendor's library in processes of its own costs, measured
// with the stand-in for it:
//
//   hop        a job whose library does nothing, beside an eventfd ping-pong
//   recovery   from a crash under a job to that job's answer
//   memory     what workers hold, where models have one each and where all
//   share losses     workers that crash and hang at random under eight programs
//
//   rknnd-bench-worker [--out FILE] [--only PART] [--deaths N]
//
// Exits with 1 when a figure is not what is asked.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/clock.h"
#include "bench/common/failure.h"
#include "bench/common/figures.h"
#include "bench/common/measures.h"
#include "bench/common/one_operator.h"
#include "bench/common/placement.h"
#include "bench/hotpath/floor.h"
#include "bench/hotpath/samples.h"
#include "bench/worker/client.h"
#include "driver/device.h"
#include "driver/rknnrt/testing/hosted_standin.h"
#include "driver/rknnrt/testing/wrapped_model.h"
#include "driver/soft/testing/run_model.h"

namespace rknnd::bench {
namespace {

using driver::TensorType;
using rknnrt::testing::Trouble;
using soft::testing::BoundModel;
using soft::testing::PlainFormat;

constexpr double kMostPingPongs = 2;
constexpr double kMostRecoveryMs = 50;
constexpr int kPrograms = 8;
constexpr int kRounds = 20, kJobsOfARound = 1000;

std::vector<std::byte> Model() {
  const std::string onnx = OneOperatorModel();
  return rknnrt::testing::Wrap(std::as_bytes(std::span(onnx)));
}

template <class T>
T Require(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  throw std::runtime_error(std::string(result.status().message()));
}

// A device of this process with the model in it, bound.
struct Hosted {
  Hosted() {
    const base::MonotonicClock clock;
    const std::vector<std::byte> file = Model();
    device = Require(
        driver::OpenDevice(rknnrt::testing::HostedStandin(RKNND_BINARY_ROOT)));
    const base::Nanoseconds begun = clock.Now();
    model = Require(
        device->Load({.bytes = file, .options = "", .name = "one.rknn"}));
    load_ns = clock.Now() - begun;
    const driver::ProgramInfo& program = model->info().programs[0];
    bound = Require(BoundModel::Make(
        *device, *model, {PlainFormat(program.inputs[0], TensorType::kFloat32)},
        {PlainFormat(program.outputs[0], TensorType::kFloat32)}));
  }
  // One job; how long it took.
  base::Nanoseconds Run() {
    const base::MonotonicClock clock;
    const base::Nanoseconds begun = clock.Now();
    const driver::JobResult result = bound->Run();
    if (!result.status.ok()) {
      throw std::runtime_error(std::string(result.status.message()));
    }
    return clock.Now() - begun;
  }

  std::unique_ptr<driver::Device> device;
  std::unique_ptr<driver::Model> model;
  std::unique_ptr<BoundModel> bound;
  base::Nanoseconds load_ns = 0;  // by a worker that was there
};

double Median(std::vector<double> values) { return Percentile(values, 0.5); }

// Turns of both, so that whatever else the machine does meets both.
void MeasureHop(const Placement& placement, Figures& figures) {
  const Trouble nothing("instant=1");
  // Workers inherit where they may run.
  PinTo(placement.server_cpu);
  Hosted hosted;
  PinTo(placement.client_cpu);
  PingPong floor(placement.server_cpu);
  Samples jobs;
  Samples turns;
  for (int i = 0; i < 1000; ++i) hosted.Run();
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kJobsOfARound; ++i) jobs.Add(hosted.Run());
    floor.Round(kJobsOfARound, &turns);
  }
  const double job = jobs.Percentile(0.5);
  const double turn = turns.Percentile(0.5);
  figures.Add("job of a worker, " + placement.name,
              Text("at most %.1f ping-pongs", kMostPingPongs),
              Text("%.2f (%.1f us, %.1f us)", job / turn, job, turn),
              job <= kMostPingPongs * turn,
              {{"job_us", job}, {"ping_pong_us", turn}});
}

void MeasureRecovery(Figures& figures) {
  const Trouble trouble("crash_run=20");
  Hosted hosted;
  std::vector<double> recoveries;
  for (int i = 0; i < 800; ++i) {
    const auto ns = static_cast<double>(hosted.Run());
    if (i % 19 == 0 && i > 0) recoveries.push_back(ns / 1e6);
  }
  const double load = static_cast<double>(hosted.load_ns) / 1e6;
  const double median = Median(recoveries);
  const double worst = *std::max_element(recoveries.begin(), recoveries.end());
  figures.Add("crash under a job until its answer",
              Text("at most %.0f ms + load (%.1f ms)", kMostRecoveryMs, load),
              Text("%.1f ms, at most %.1f ms", median, worst),
              worst <= kMostRecoveryMs + load,
              {{"load_ms", load},
               {"median_ms", median},
               {"worst_ms", worst},
               {"crashes", recoveries.size()}});
}

// Of the workers of this process, in MiB: what each has for itself, and its
// part of what they share.
double WorkersMiB() {
  uint64_t sum = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (pid_t pid = 0; children >> pid;) {
      std::ifstream rollup("/proc/" + std::to_string(pid) + "/smaps_rollup");
      for (std::string line; std::getline(rollup, line);) {
        if (!line.starts_with("Pss: ")) continue;
        sum += std::strtoull(line.c_str() + 4, nullptr, 10);
      }
    }
  }
  return static_cast<double>(sum) / 1024;
}

// Four models, in a worker each or in one: what the option brings.
void MeasureMemory(Figures& figures) {
  constexpr int kModels = 4;
  double measured[2] = {};
  for (const bool one : {false, true}) {
    driver::DeviceOptions options =
        rknnrt::testing::HostedStandin(RKNND_BINARY_ROOT);
    options.library.one_for_all = one;
    const auto device = Require(driver::OpenDevice(options));
    const std::vector<std::byte> file = Model();
    std::vector<std::unique_ptr<driver::Model>> models;
    for (int i = 0; i < kModels; ++i) {
      models.push_back(Require(device->Load(
          {.bytes = file, .options = "", .name = std::to_string(i)})));
    }
    measured[one ? 1 : 0] = WorkersMiB();
  }
  figures.AddBeside(Text("%d models, a worker each / one for all", kModels),
                    Text("%.1f / %.1f MiB", measured[0], measured[1]),
                    {{"each_mib", measured[0]}, {"one_mib", measured[1]}});
}

size_t CountIn(const std::string& file, const std::string& text) {
  std::ifstream stream(file);
  std::stringstream all;
  all << stream.rdbuf();
  const std::string log = all.str();
  size_t count = 0;
  for (size_t at = 0; (at = log.find(text, at)) != std::string::npos; ++at) {
    ++count;
  }
  return count;
}

size_t Descriptors(pid_t pid) {
  const auto folder = std::filesystem::directory_iterator(
      "/proc/" + std::to_string(pid) + "/fd");
  return static_cast<size_t>(std::distance(begin(folder), end(folder)));
}

base::ChildProcess StartOrThrow(const base::ChildProcess::Options& options) {
  auto child = base::ChildProcess::Start(options);
  if (!child) throw std::runtime_error(child.error().message);
  return *std::move(child);
}

void MeasureLosses(size_t deaths, Figures& figures) {
  auto folder = base::TemporaryFolder::Make();
  if (!folder) throw std::runtime_error(folder.error().message);
  const std::string socket = folder->path() + "/session.sock";
  const std::string log = folder->path() + "/log";
  const std::string config = folder->path() + "/rknnd.toml";
  const std::string model = folder->path() + "/one.rknn";
  std::ofstream(config) << "device = \"rknnrt\"\n[vendor]\nlibrary = \""
                        << RKNND_BINARY_ROOT
                        << "/lib/librknnrt_standin_2_3_2.so\"\n"
                           "[scheduler]\nhang = 1.5\n";
  const std::vector<std::byte> file = Model();
  std::ofstream(model, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()),
             static_cast<std::streamsize>(file.size()));
  base::ChildProcess::Options options;
  options.arguments = {RKNND_BINARY_ROOT "/bin/rknnd", "--config", config,
                       "--socket", socket};
  options.environment = {{"RKNND_STANDIN", "random=200"}};
  options.error_file = log;
  options.dies_with_parent = true;
  base::ChildProcess daemon = StartOrThrow(options);
  if (!base::WaitForServer(socket, daemon, 20 * base::kSecond)) {
    throw std::runtime_error("rknnd does not come up: see '" + log + "'");
  }
  const size_t before = Descriptors(daemon.pid());
  std::vector<base::ChildProcess> programs;
  for (int i = 0; i < kPrograms; ++i) {
    base::ChildProcess::Options program;
    program.arguments = {"/proc/self/exe", "--client", model};
    program.environment = {{"RKNND_TARGET", "unix:" + socket}};
    program.dies_with_parent = true;
    programs.push_back(StartOrThrow(program));
  }
  constexpr char kEnded[] = "; the model is loaded again";
  size_t ended = 0;
  while ((ended = CountIn(log, kEnded)) < deaths) SleepFor(0.2);
  ClientCounts sum;
  for (base::ChildProcess& program : programs) {
    // What it waits for: anything on its stdin.
    (void)program.WriteLine("").ok();
    const auto line = program.ReadLine(60 * base::kSecond);
    if (!line) throw std::runtime_error(line.error().message);
    const auto told = nlohmann::json::parse(*line);
    sum.right += told["right"].get<uint64_t>();
    sum.wrong += told["wrong"].get<uint64_t>();
    sum.failed += told["failed"].get<uint64_t>();
    sum.longest_ns =
        std::max(sum.longest_ns, told["longest_ns"].get<int64_t>());
    if (sum.error.empty()) sum.error = told["error"];
    (void)program.Wait(20 * base::kSecond).ok();
  }
  // What sessions held goes with them, in the daemon's own time.
  size_t after = Descriptors(daemon.pid());
  for (int look = 0; look < 100 && after > before + 8; ++look) {
    SleepFor(0.1);
    after = Descriptors(daemon.pid());
  }
  const size_t hangs = CountIn(log, "a job did not end within");
  figures.Add(Text("%zu workers lost under %d programs", ended, kPrograms),
              "no job failed or wrong",
              Text("%llu right, %llu wrong, %llu failed",
                   static_cast<unsigned long long>(sum.right),
                   static_cast<unsigned long long>(sum.wrong),
                   static_cast<unsigned long long>(sum.failed)),
              sum.wrong == 0 && sum.failed == 0,
              {{"deaths", ended},
               {"hangs", hangs},
               {"right", sum.right},
               {"wrong", sum.wrong},
               {"failed", sum.failed},
               {"error", sum.error},
               {"longest_ms", static_cast<double>(sum.longest_ns) / 1e6}});
  // A model that is kept for a while has a worker, with a few of its own.
  figures.Add("descriptors of the daemon after it", Text("%zu + 8", before),
              Text("%zu", after), after <= before + 8,
              {{"before", before}, {"after", after}});
  if (!sum.error.empty()) std::printf("  %s\n", sum.error.c_str());
}

int Main(int argc, char** argv) {
  CLI::App app("What hosting the vendor's library in workers costs.");
  std::string out;
  std::string only;
  std::string client;
  size_t deaths = 1000;
  app.add_option("--out", out, "JSON file of the figures");
  app.add_option("--only", only, "hop, recovery, memory or losses");
  app.add_option("--deaths", deaths, "workers that are to be lost");
  app.add_option("--client", client, "be a program that runs this model");
  CLI11_PARSE(app, argc, argv);
  if (!client.empty()) return RunClient(client);
  const auto wanted = [&](const char* part) {
    return only.empty() || only == part;
  };
  const std::vector<Placement> placements = Placements();
  std::vector<int> cpus;
  for (const Placement& placement : placements) {
    cpus = {placement.client_cpu, placement.server_cpu};
  }
  Figures figures;
  Figures::PrintHead();
  if (wanted("hop")) {
    for (const Placement& placement : placements)
      MeasureHop(placement, figures);
    PinTo(cpus);
  }
  if (wanted("recovery")) MeasureRecovery(figures);
  if (wanted("memory")) MeasureMemory(figures);
  if (wanted("losses")) MeasureLosses(deaths, figures);
  if (!out.empty()) WriteFigures(out, figures.rows());
  return figures.all_hold() ? 0 : 1;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("worker",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
