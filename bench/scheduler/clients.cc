// See clients.h. The C API is used as any program uses it; only the flood
// reaches below it, for the doorbell.

#include "bench/scheduler/clients.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/posix/clock.h"
#include "bench/common/failure.h"
#include "bench/common/measures.h"
#include "bench/scheduler/board.h"
#include "bench/scheduler/streams.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/launch/launcher.h"

namespace rknnd::bench {
namespace {

constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

// Bound to memory of its own; freed with the process.
rknn_context MakeContext(const ClientPlan& plan) {
  rknn_context context = 0;
  std::string path = plan.model;
  if (rknn_init(&context, path.data(), 0, static_cast<uint32_t>(plan.priority),
                nullptr) != RKNN_SUCC) {
    Fail("rknn_init");
  }
  if (plan.core_mask != 0 &&
      rknn_set_core_mask(
          context, static_cast<rknn_core_mask>(plan.core_mask)) != RKNN_SUCC) {
    Fail("rknn_set_core_mask");
  }
  for (const rknn_query_cmd which :
       {RKNN_QUERY_INPUT_ATTR, RKNN_QUERY_OUTPUT_ATTR}) {
    rknn_tensor_attr attr{};
    if (rknn_query(context, which, &attr, sizeof attr) != RKNN_SUCC) {
      Fail("rknn_query");
    }
    attr.type = RKNN_TENSOR_FLOAT32;
    rknn_tensor_mem* mem = rknn_create_mem(
        context, attr.n_elems * static_cast<uint32_t>(sizeof(float)));
    if (mem == nullptr || rknn_set_io_mem(context, mem, &attr) != RKNN_SUCC) {
      Fail("rknn_set_io_mem");
    }
  }
  return context;
}

struct Samples {
  std::mutex mutex;
  std::vector<double> queue_ms, run_ms;
};

// One frame after the other, or one each period, until the time is over.
void RunContext(const ClientPlan& plan, rknn_context context,
                Samples* samples) {
  const base::MonotonicClock clock;
  const base::Nanoseconds start = clock.Now();
  const auto since = [&] {
    return static_cast<double>(clock.Now() - start) * 1e-9;
  };
  std::vector<double> queue_ms, run_ms;
  double next = 0;
  while (since() < plan.seconds) {
    if (plan.period_ms > 0) {
      next += plan.period_ms * 1e-3;
      if (next > since()) SleepFor(next - since());
    }
    if (rknn_run(context, nullptr) != RKNN_SUCC) Fail("rknn_run");
    if (since() < plan.warm_up) continue;
    rknnd_run_report report{};
    if (rknnd_last_run(context, &report) != RKNN_SUCC) Fail("rknnd_last_run");
    queue_ms.push_back(static_cast<double>(report.queue_ns) * 1e-6);
    run_ms.push_back(static_cast<double>(report.run_ns) * 1e-6);
  }
  const std::lock_guard<std::mutex> lock(samples->mutex);
  auto& all = *samples;
  all.queue_ms.insert(all.queue_ms.end(), queue_ms.begin(), queue_ms.end());
  all.run_ms.insert(all.run_ms.end(), run_ms.begin(), run_ms.end());
}

// Eventfds of this process: the library's doorbell is among them.
std::vector<int> Eventfds() {
  std::vector<int> found;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    char target[64] = {};
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    if (readlink(path.c_str(), target, sizeof target - 1) > 0 &&
        std::string(target) == "anon_inode:[eventfd]") {
      found.push_back(std::atoi(entry->d_name));
    }
  }
  closedir(folder);
  return found;
}

nlohmann::json RunLoad(const ClientPlan& plan,
                       const std::vector<rknn_context>& contexts) {
  Samples samples;
  std::atomic<bool> over{false};
  std::thread flood;
  uint64_t rings = 0;
  if (plan.work == "flood") {
    flood = std::thread([&] {
      const std::vector<int> doorbells = Eventfds();
      const uint64_t one = 1;
      while (!over) {
        for (const int doorbell : doorbells) {
          if (write(doorbell, &one, sizeof one) == sizeof one) ++rings;
        }
      }
    });
  }
  std::vector<std::thread> threads;
  threads.reserve(contexts.size());
  for (const rknn_context context : contexts) {
    threads.emplace_back([&, context] {
      const int code = RunMain("scheduler", [&] {
        RunContext(plan, context, &samples);
        return 0;
      });
      if (code != 0) std::_Exit(code);
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  if (flood.joinable()) flood.join();
  return {{"jobs", samples.run_ms.size()},
          {"rings", rings},
          {"run_p50_ms", Percentile(samples.run_ms, 0.5)},
          {"run_max_ms", Percentile(samples.run_ms, 1)},
          {"queue_p50_ms", Percentile(samples.queue_ms, 0.5)},
          {"queue_p99_ms", Percentile(samples.queue_ms, 0.99)},
          {"queue_max_ms", Percentile(samples.queue_ms, 1)}};
}

}  // namespace

int RunClient(const ClientPlan& plan) {
  std::vector<rknn_context> contexts;
  for (int i = 0; i < plan.contexts; ++i) {
    contexts.push_back(MakeContext(plan));
  }
  if (plan.work == "idle" && rknn_run(contexts.at(0), nullptr) != RKNN_SUCC) {
    Fail("rknn_run");
  }
  std::puts("ready");
  std::fflush(stdout);
  std::string line;
  if (!std::getline(std::cin, line)) return 0;
  nlohmann::json said = nlohmann::json::object();
  if (plan.work == "newest" || plan.work == "fifo") {
    said = RunStream(plan, contexts.at(0));
  } else if (plan.work == "idle") {
    SleepFor(plan.seconds);
  } else {
    said = RunLoad(plan, contexts);
  }
  std::puts(said.dump().c_str());
  std::fflush(stdout);
  return 0;
}

void Clients::Add(const ClientPlan& plan) {
  const client::Launcher launcher;
  processes_.push_back(launcher.Start(
      {"rknnd-bench-scheduler", "--client", plan.work, "--model", plan.model,
       "--contexts", std::to_string(plan.contexts), "--priority",
       std::to_string(plan.priority), "--core-mask",
       std::to_string(plan.core_mask), "--period-ms",
       std::to_string(plan.period_ms), "--seconds",
       std::to_string(plan.seconds), "--warm-up", std::to_string(plan.warm_up)},
      {{"RKNND_TARGET", target_}}));
  const std::string line =
      launcher.NextLine(processes_.back(), "a client", kPatience);
  if (line != "ready") throw std::runtime_error("a client said: " + line);
}

void Clients::Go() {
  for (base::ChildProcess& process : processes_) {
    if (!process.WriteLine("go")) throw std::runtime_error("a client ended");
  }
}

std::vector<nlohmann::json> Clients::Finish() {
  const client::Launcher launcher;
  std::vector<nlohmann::json> said;
  for (base::ChildProcess& process : processes_) {
    said.push_back(nlohmann::json::parse(
        launcher.NextLine(process, "a client", kPatience)));
  }
  for (base::ChildProcess& process : processes_) (void)process.Wait(kPatience);
  processes_.clear();
  return said;
}

}  // namespace rknnd::bench
