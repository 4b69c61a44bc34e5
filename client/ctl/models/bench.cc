#include "client/ctl/models/bench.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client/ctl/models/latency.h"
#include "client/ctl/models/network.h"
#include "client/ctl/text/table.h"

namespace rknnd::client {
namespace {

using base::Error;
using base::Expected;
using Clock = std::chrono::steady_clock;

// One thread's contexts and what it saw. Written by that thread alone, read
// after it ended.
struct Lane {
  std::vector<Network*> networks;
  Latency latency;
  Latency queue, run;     // of the same runs, as the daemon measured them
  Latency input, output;  // of further ones
  std::optional<Error> error;
};

uint64_t Nanoseconds(Clock::duration time) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

void RunLane(Lane* lane, Clock::time_point end, std::atomic<bool>* stop) {
  size_t next = 0;
  auto before = Clock::now();
  while (before < end && !stop->load(std::memory_order_relaxed)) {
    if (Expected<void> run = lane->networks[next]->Run(); !run) {
      lane->error = std::move(run).error();
      stop->store(true, std::memory_order_relaxed);
      return;
    }
    const auto after = Clock::now();
    lane->latency.Add(Nanoseconds(after - before));
    const Expected<rknnd_run_report> report = lane->networks[next]->LastRun();
    if (report) {
      lane->queue.Add(report->queue_ns);
      lane->run.Add(report->run_ns);
    }
    before = Clock::now();
    next = (next + 1) % lane->networks.size();
  }
}

// What a frame costs before and behind its run. Apart from the runs, so that
// these are counted alone; beside the other lanes, as a program's would be.
void RunWholeFrames(Lane* lane, const std::vector<TensorInput>* inputs,
                    Clock::duration time) {
  constexpr int kLeast = 3, kMost = 100;
  const auto end = Clock::now() + time;
  for (int i = 0; i < kMost && (i < kLeast || Clock::now() < end); ++i) {
    Network& network =
        *lane->networks[static_cast<size_t>(i) % lane->networks.size()];
    const auto begun = Clock::now();
    Expected<void> done = network.SetInputs(*inputs);
    lane->input.Add(Nanoseconds(Clock::now() - begun));
    if (done) done = network.Run();
    const Expected<uint64_t> output =
        done ? network.TimeOutputs() : Expected<uint64_t>(done.error());
    if (!output) {
      lane->error = output.error();
      return;
    }
    lane->output.Add(*output);
  }
}

// One of them for each lane, to their end.
template <class Work>
void OnThreads(std::vector<Lane>* lanes, const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(lanes->size());
  for (Lane& lane : *lanes) threads.emplace_back([&] { work(&lane); });
  for (std::thread& thread : threads) thread.join();
}

Expected<std::vector<std::unique_ptr<Network>>> MakeNetworks(
    const BenchOptions& options, std::vector<TensorInput>* inputs) {
  std::vector<std::unique_ptr<Network>> networks;
  Expected<std::unique_ptr<Network>> first = Network::Load(options.model);
  if (!first) return std::move(first).error();
  networks.push_back(*std::move(first));
  while (networks.size() < static_cast<size_t>(options.contexts)) {
    Expected<std::unique_ptr<Network>> copy = networks.front()->Duplicate();
    if (!copy) return std::move(copy).error();
    networks.push_back(*std::move(copy));
  }
  for (const rknn_tensor_attr& attr : networks.front()->inputs()) {
    inputs->push_back(NoiseInput(attr, static_cast<uint32_t>(inputs->size())));
  }
  for (const auto& network : networks) {
    if (options.core_mask != RKNN_NPU_CORE_AUTO) {
      if (Expected<void> set = network->SetCoreMask(options.core_mask); !set) {
        return std::move(set).error();
      }
    }
    if (Expected<void> set = network->SetInputs(*inputs); !set) {
      return std::move(set).error();
    }
    // The first run warms caches up; it is not counted.
    if (Expected<void> run = network->Run(); !run) {
      return std::move(run).error();
    }
  }
  return networks;
}

}  // namespace

std::optional<rknn_core_mask> ParseCoreMask(std::string_view text) {
  struct Name {
    std::string_view text;
    rknn_core_mask mask;
  };
  static constexpr Name kNames[] = {
      {"auto", RKNN_NPU_CORE_AUTO}, {"0", RKNN_NPU_CORE_0},
      {"1", RKNN_NPU_CORE_1},       {"2", RKNN_NPU_CORE_2},
      {"0_1", RKNN_NPU_CORE_0_1},   {"0_1_2", RKNN_NPU_CORE_0_1_2},
      {"all", RKNN_NPU_CORE_ALL},
  };
  for (const Name& name : kNames) {
    if (name.text == text) return name.mask;
  }
  return std::nullopt;
}

Expected<Output> Bench(const BenchOptions& options) {
  std::vector<TensorInput> inputs;
  const Expected<std::vector<std::unique_ptr<Network>>> networks =
      MakeNetworks(options, &inputs);
  if (!networks) return networks.error();
  std::vector<Lane> lanes(static_cast<size_t>(
      options.threads > 0 ? options.threads : options.contexts));
  for (size_t i = 0; i < networks->size(); ++i) {
    lanes[i % lanes.size()].networks.push_back((*networks)[i].get());
  }

  std::atomic<bool> stop = false;
  const auto start = Clock::now();
  const auto time = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options.seconds));
  OnThreads(&lanes, [&](Lane* lane) { RunLane(lane, start + time, &stop); });
  const double elapsed =
      std::chrono::duration<double>(Clock::now() - start).count();

  if (!stop) {
    OnThreads(&lanes,
              [&](Lane* lane) { RunWholeFrames(lane, &inputs, time / 10); });
  }

  Latency latency, input, queue, run, output_time;
  for (const Lane& lane : lanes) {
    if (lane.error) return *lane.error;
    latency.Add(lane.latency);
    input.Add(lane.input);
    queue.Add(lane.queue);
    run.Add(lane.run);
    output_time.Add(lane.output);
  }
  const double fps = static_cast<double>(latency.count()) / elapsed;
  Output output;
  output.json = {{"runs", latency.count()},
                 {"fps", fps},
                 {"latency_us",
                  {{"mean", latency.MeanMicroseconds()},
                   {"p50", latency.PercentileMicroseconds(0.5)},
                   {"p90", latency.PercentileMicroseconds(0.9)},
                   {"p99", latency.PercentileMicroseconds(0.99)},
                   {"max", latency.MaxMicroseconds()}}}};
  const std::pair<const char*, const Latency*> parts[] = {
      {"input", &input},
      {"queue", &queue},
      {"run", &run},
      {"output", &output_time}};
  for (const auto& [name, part] : parts) {
    output.json["split_us"][name] = {
        {"mean", part->MeanMicroseconds()},
        {"p99", part->PercentileMicroseconds(0.99)}};
  }
  output.text = FormatCount(latency.count(), "run") + " in " +
                FormatMicroseconds(elapsed * 1e6) + ", " +
                FormatCount(networks->size(), "context") + " on " +
                FormatCount(lanes.size(), "thread") + ": " + FormatValue(fps) +
                " runs per second\n";
  Table table({{""},
               {"MEAN", Table::Align::kRight},
               {"P50", Table::Align::kRight},
               {"P90", Table::Align::kRight},
               {"P99", Table::Align::kRight},
               {"MAX", Table::Align::kRight},
               {""}});
  const auto add = [&table](const char* name, const Latency& times,
                            const char* what) {
    table.Add({name, FormatMicroseconds(times.MeanMicroseconds()),
               FormatMicroseconds(times.PercentileMicroseconds(0.5)),
               FormatMicroseconds(times.PercentileMicroseconds(0.9)),
               FormatMicroseconds(times.PercentileMicroseconds(0.99)),
               FormatMicroseconds(times.MaxMicroseconds()), what});
  };
  add("LATENCY", latency, "rknn_run");
  add("  queue", queue, "of it: waiting for a core");
  add("  run", run, "of it: on the core");
  add("input", input, "rknn_inputs_set, before it");
  add("output", output_time, "rknn_outputs_get, behind it");
  output.text += table.ToString();
  return output;
}

}  // namespace rknnd::client
