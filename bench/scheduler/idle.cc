// See idle.h. What the kernel counts of the daemon's threads is the witness.

#include "bench/scheduler/idle.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "bench/common/measures.h"
#include "bench/scheduler/clients.h"

namespace rknnd::bench {
namespace {

constexpr int kSessions = 64;
// The watch for jobs that hang looks a last time 5 s after the last job.
constexpr double kSettle = 6;

struct Process {
  uint64_t switches = 0;  // of all threads: at least one for each wake-up
  uint64_t threads = 0, fds = 0;
  double cpu_ms = 0;
};

Process LookAt(pid_t pid) {
  namespace fs = std::filesystem;
  Process process;
  const std::string proc = "/proc/" + std::to_string(pid);
  for (const auto& task : fs::directory_iterator(proc + "/task")) {
    ++process.threads;
    std::ifstream file(task.path() / "status");
    for (std::string line; std::getline(file, line);) {
      const size_t at = line.find("ctxt_switches:");
      if (at == std::string::npos) continue;
      process.switches += std::stoull(line.substr(at + 14));
    }
    // Nanoseconds on a CPU.
    std::ifstream schedstat(task.path() / "schedstat");
    uint64_t on_cpu = 0;
    schedstat >> on_cpu;
    process.cpu_ms += static_cast<double>(on_cpu) * 1e-6;
  }
  for ([[maybe_unused]] const auto& fd : fs::directory_iterator(proc + "/fd")) {
    ++process.fds;
  }
  return process;
}

}  // namespace

void MeasureIdle(Board& board, const Networks& networks, double seconds,
                 Figures* figures) {
  const Process alone = LookAt(board.pid());
  Clients clients(board.target());
  ClientPlan plan;
  plan.work = "idle";
  plan.model = networks.short_model;
  plan.seconds = 0;
  for (int i = 0; i < kSessions; ++i) clients.Add(plan);
  SleepFor(kSettle);
  const Process before = LookAt(board.pid());
  SleepFor(seconds);
  const Process after = LookAt(board.pid());
  clients.Go();
  clients.Finish();
  const uint64_t wakes = after.switches - before.switches;
  figures->Add(
      Text("%d idle sessions: wake-ups in %.0f s", kSessions, seconds),
      "0 (no watchdog)",
      Text("%llu, %.3f ms of a CPU", static_cast<unsigned long long>(wakes),
           after.cpu_ms - before.cpu_ms),
      wakes == 0,
      {{"wake_ups", wakes},
       {"cpu_ms", after.cpu_ms - before.cpu_ms},
       {"seconds", seconds},
       {"sessions", kSessions}});
  const uint64_t threads = before.threads - alone.threads;
  const double fds = static_cast<double>(before.fds - alone.fds) / kSessions;
  figures->Add("  what they cost: threads", "0",
               Text("%llu (and %.1f descriptors each)",
                    static_cast<unsigned long long>(threads), fds),
               threads == 0, {{"threads", threads}, {"fds_each", fds}});
}

void MeasureFlood(Board& board, const Networks& networks, double seconds,
                  Figures* figures) {
  double jobs[2] = {};
  uint64_t rings = 0;
  for (const bool floods : {false, true}) {
    Clients clients(board.target());
    ClientPlan plan;
    plan.model = networks.short_model;
    plan.seconds = seconds + 1;
    plan.warm_up = 0.5;
    plan.core_mask = 1;
    clients.Add(plan);
    plan.core_mask = 2;
    plan.work = floods ? "flood" : "load";
    clients.Add(plan);
    clients.Go();
    SleepFor(plan.seconds);
    const auto said = clients.Finish();
    jobs[floods ? 1 : 0] = said.at(0).at("jobs").get<double>();
    rings = said.at(1).at("rings").get<uint64_t>();
  }
  const double ratio = jobs[0] == 0 ? 0 : jobs[1] / jobs[0];
  figures->Add("beside a doorbell flood: a neighbour's jobs", ">= 98 %",
               Text("%.1f %% (%.0f rings/s)", 100 * ratio,
                    static_cast<double>(rings) / (seconds + 1)),
               ratio >= 0.98,
               {{"ratio", ratio},
                {"rings", rings},
                {"jobs_alone", jobs[0]},
                {"jobs_beside", jobs[1]}});
}

}  // namespace rknnd::bench
