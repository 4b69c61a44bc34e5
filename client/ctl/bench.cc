#include "client/ctl/bench.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "client/ctl/latency.h"
#include "client/ctl/network.h"
#include "client/ctl/table.h"

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
  std::optional<Error> error;
};

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
    lane->latency.Add(static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(after - before)
            .count()));
    before = after;
    next = (next + 1) % lane->networks.size();
  }
}

Expected<std::vector<std::unique_ptr<Network>>> MakeNetworks(
    const BenchOptions& options) {
  std::vector<std::unique_ptr<Network>> networks;
  Expected<std::unique_ptr<Network>> first = Network::Load(options.model);
  if (!first) return std::move(first).error();
  networks.push_back(*std::move(first));
  while (networks.size() < static_cast<size_t>(options.contexts)) {
    Expected<std::unique_ptr<Network>> copy = networks.front()->Duplicate();
    if (!copy) return std::move(copy).error();
    networks.push_back(*std::move(copy));
  }
  std::vector<TensorInput> inputs;
  for (const rknn_tensor_attr& attr : networks.front()->inputs()) {
    inputs.push_back(NoiseInput(attr, static_cast<uint32_t>(inputs.size())));
  }
  for (const auto& network : networks) {
    if (options.core_mask != RKNN_NPU_CORE_AUTO) {
      if (Expected<void> set = network->SetCoreMask(options.core_mask); !set) {
        return std::move(set).error();
      }
    }
    if (Expected<void> set = network->SetInputs(inputs); !set) {
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
  const Expected<std::vector<std::unique_ptr<Network>>> networks =
      MakeNetworks(options);
  if (!networks) return networks.error();
  std::vector<Lane> lanes(static_cast<size_t>(
      options.threads > 0 ? options.threads : options.contexts));
  for (size_t i = 0; i < networks->size(); ++i) {
    lanes[i % lanes.size()].networks.push_back((*networks)[i].get());
  }

  std::atomic<bool> stop = false;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(options.seconds));
  std::vector<std::thread> threads;
  threads.reserve(lanes.size());
  for (Lane& lane : lanes) {
    threads.emplace_back(RunLane, &lane, end, &stop);
  }
  for (std::thread& thread : threads) thread.join();
  const double elapsed =
      std::chrono::duration<double>(Clock::now() - start).count();

  Latency latency;
  for (const Lane& lane : lanes) {
    if (lane.error) return *lane.error;
    latency.Add(lane.latency);
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
  const auto time = [](double us) { return FormatMicroseconds(us); };
  output.text = FormatCount(latency.count(), "run") + " in " +
                time(elapsed * 1e6) + ", " +
                FormatCount(networks->size(), "context") + " on " +
                FormatCount(lanes.size(), "thread") + ": " + FormatValue(fps) +
                " runs per second\n";
  Table table({{"LATENCY"},
               {"MEAN", Table::Align::kRight},
               {"P50", Table::Align::kRight},
               {"P90", Table::Align::kRight},
               {"P99", Table::Align::kRight},
               {"MAX", Table::Align::kRight}});
  table.Add({"", time(latency.MeanMicroseconds()),
             time(latency.PercentileMicroseconds(0.5)),
             time(latency.PercentileMicroseconds(0.9)),
             time(latency.PercentileMicroseconds(0.99)),
             time(latency.MaxMicroseconds())});
  output.text += table.ToString();
  return output;
}

}  // namespace rknnd::client
