// The emulator of the NPU on published programs: the CPU time of one run on one
// core, best of several, by both engines, and what the hardware is estimated to
// take. --by-kind: where the time goes, by kind of node.
//
//   rknnd-bench-emulator [--out FILE] [--by-kind] [--plain] [RUNS]

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/emulator/testing/loaded_program.h"
#include "driver/soft/tiles/cpu_level.h"

namespace {

using rknnd::rknpu::Engine;
using rknnd::rknpu::Machine;
using rknnd::rknpu::RunOptions;
using rknnd::rknpu::TaskReport;
using rknnd::rknpu::testing::LoadedProgram;

// Of this thread: other work on the machine does not count.
double CpuMilliseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 +
         static_cast<double>(now.tv_nsec) * 1e-6;
}

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::exit(1);
}

double Measure(LoadedProgram& program, Machine& machine, Engine engine,
               int runs) {
  RunOptions options;
  options.engine = engine;
  double best = 1e300;
  for (int i = 0; i < runs; ++i) {
    const double start = CpuMilliseconds();
    Require(program.Run(machine, 1, options));
    best = std::min(best, CpuMilliseconds() - start);
  }
  return best;
}

void PrintKinds(LoadedProgram& program, Machine& machine) {
  std::map<std::string, double> times;
  double last = 0.0;
  for (int i = 0; i < 2; ++i) {
    times.clear();
    last = CpuMilliseconds();
    Require(program.RunByNode(machine, 1, {}, [&](uint32_t node) {
      const double now = CpuMilliseconds();
      times[program.file().nodes[node].type] += now - last;
      last = CpuMilliseconds();
    }));
  }
  for (const auto& [type, time] : times) {
    std::printf("    %-32s %8.2f ms\n", type.c_str(), time);
  }
}

}  // namespace

int main(int count, char** arguments) {
  bool by_kind = false, plain = false;
  int runs = 5;
  std::string out;
  nlohmann::json rows = nlohmann::json::array();
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--by-kind") == 0) {
      by_kind = true;
    } else if (std::strcmp(arguments[i], "--plain") == 0) {
      plain = true;
    } else if (std::strcmp(arguments[i], "--out") == 0 && i + 1 < count) {
      out = arguments[++i];
    } else {
      runs = std::max(1, std::atoi(arguments[i]));
    }
  }
  std::printf("level %s\n%-32s %10s %10s %10s %10s\n",
              rknnd::soft::CpuLevelName(rknnd::soft::CurrentCpuLevel()), "",
              "fast ms", "plain ms", "NPU ms", "GMAC");
  for (const char* name :
       {"mobilenetv2_rk3588.rknn", "yolov8n_algae_rk3588.rknn",
        "ppocrv4_det_rk3588.rknn"}) {
    const auto program = LoadedProgram::Load(name);
    if (!program) {
      std::printf("%-32s is not there (set RKNND_SHARED)\n", name);
      continue;
    }
    Machine machine;
    std::vector<TaskReport> report;
    RunOptions options;
    options.report = &report;
    Require(program->Run(machine, 1, options));
    double cycles = 0, macs = 0;
    for (const TaskReport& task : report) {
      cycles += static_cast<double>(task.cycles);
      macs += static_cast<double>(task.macs);
    }
    const double fast = Measure(*program, machine, Engine::kFast, runs);
    const double slow =
        plain ? Measure(*program, machine, Engine::kPlain, 1) : 0.0;
    // The NPU's clock is 1 GHz.
    std::printf("%-32s %10.1f %10.1f %10.2f %10.2f\n", name, fast, slow,
                cycles * 1e-6, macs * 1e-9);
    rows.push_back({{"program", name},
                    {"fast_ms", fast},
                    {"plain_ms", slow},
                    {"npu_ms_at_least", cycles * 1e-6},
                    {"gmac", macs * 1e-9}});
    if (by_kind) PrintKinds(*program, machine);
  }
  if (out.empty()) return 0;
  std::ofstream file(out);
  file << rows.dump(1) << '\n';
  file.close();
  return file ? 0 : 1;
}
