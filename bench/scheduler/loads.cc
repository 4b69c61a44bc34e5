// See loads.h. Rows read the daemon's own counters over an interval in the
// midst of the load, and the times that clients were told with their answers.

#include "bench/scheduler/loads.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "bench/common/measures.h"
#include "bench/scheduler/clients.h"

namespace rknnd::bench {
namespace {

// Until all clients are at it, and until the first of them ends.
constexpr double kWarmUp = 1.0, kTail = 0.5;
constexpr double kStarvationBoundMs = 1000;  // the default's
constexpr int kAllCores = 7;                 // RKNN_NPU_CORE_0_1_2
constexpr int kHigh = 0, kLow = 2;           // flags

ClientPlan PlanFor(const std::string& model, double seconds) {
  ClientPlan plan;
  plan.model = model;
  plan.seconds = kWarmUp + seconds + kTail;
  plan.warm_up = kWarmUp;
  return plan;
}

// What the board did while `clients` were at it.
Interval Watch(Board& board, Clients& clients, double seconds) {
  clients.Go();
  SleepFor(kWarmUp);
  const BoardLook first = board.Look();
  SleepFor(seconds);
  return Between(first, board.Look());
}

struct Spread {
  double least = 0, most = 0, mean = 0;
  // Of the mean, between the two furthest apart.
  [[nodiscard]] double part() const {
    return mean == 0 ? 1 : (most - least) / mean;
  }
};

Spread SpreadOf(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {*least, *most,
          std::accumulate(values.begin(), values.end(), 0.0) /
              static_cast<double>(values.size())};
}

// NPU seconds of those clients, in their order.
std::vector<double> NpuOf(const Interval& interval, const Clients& clients,
                          size_t first, size_t count) {
  std::vector<double> npu;
  for (size_t i = first; i < first + count; ++i) {
    npu.push_back(interval.npu.at(clients.all()[i].pid()));
  }
  return npu;
}

uint64_t FewestJobs(const Interval& interval, const Clients& clients) {
  uint64_t fewest = UINT64_MAX;
  for (const auto& client : clients.all()) {
    fewest = std::min(fewest, interval.jobs.at(client.pid()));
  }
  return fewest;
}

double Most(const std::vector<nlohmann::json>& said, size_t first, size_t count,
            const char* key) {
  double most = 0;
  for (size_t i = first; i < first + count; ++i) {
    most = std::max(most, said.at(i).at(key).get<double>());
  }
  return most;
}

}  // namespace

void MeasureShares(Board& board, const Networks& networks, double seconds,
                   Figures* figures) {
  Clients clients(board.target());
  ClientPlan plan = PlanFor(networks.short_model, seconds);
  plan.contexts = 3;
  for (int i = 0; i < 16; ++i) clients.Add(plan);
  const Interval interval = Watch(board, clients, seconds);
  const Spread spread = SpreadOf(NpuOf(interval, clients, 0, 16));
  const uint64_t jobs = FewestJobs(interval, clients);
  clients.Finish();
  figures->Add("16 processes x 3 contexts: cores busy", ">= 99 %",
               Text("%.2f %%", 100 * interval.busy), interval.busy >= 0.99,
               {{"busy", interval.busy}, {"seconds", interval.seconds}});
  figures->Add("  NPU time of equal sessions, furthest apart",
               "<= 2 % (>= 200 jobs)",
               Text("%.2f %% (>= %llu jobs)", 100 * spread.part(),
                    static_cast<unsigned long long>(jobs)),
               spread.part() <= 0.02 && jobs >= 200,
               {{"spread", spread.part()},
                {"least_s", spread.least},
                {"most_s", spread.most},
                {"fewest_jobs", jobs}});
}

void MeasureManyContexts(Board& board, const Networks& networks, double seconds,
                         Figures* figures) {
  // A single context has one core at most: with six processes that is twice
  // its share.
  Clients clients(board.target());
  ClientPlan plan = PlanFor(networks.short_model, seconds);
  for (int i = 0; i < 3; ++i) clients.Add(plan);
  plan.contexts = 12;
  for (int i = 0; i < 3; ++i) clients.Add(plan);
  const Interval interval = Watch(board, clients, seconds);
  const Spread one = SpreadOf(NpuOf(interval, clients, 0, 3));
  const Spread twelve = SpreadOf(NpuOf(interval, clients, 3, 3));
  const uint64_t jobs = FewestJobs(interval, clients);
  clients.Finish();
  const double ratio = twelve.mean / one.mean;
  figures->Add(
      "12 contexts against 1: NPU time", "1.00, within 2 %",
      Text("%.3f (>= %llu jobs)", ratio, static_cast<unsigned long long>(jobs)),
      ratio >= 0.98 && ratio <= 1.02,
      {{"ratio", ratio},
       {"one_s", one.mean},
       {"twelve_s", twelve.mean},
       {"fewest_jobs", jobs}});
}

void MeasureClasses(Board& board, const Networks& networks, double seconds,
                    Figures* figures) {
  constexpr size_t kMedium = 12, kLows = 4;
  Clients clients(board.target());
  ClientPlan plan = PlanFor(networks.short_model, seconds);
  plan.contexts = 3;
  for (size_t i = 0; i < kMedium; ++i) clients.Add(plan);
  plan.contexts = 1;
  plan.priority = kLow;
  for (size_t i = 0; i < kLows; ++i) clients.Add(plan);
  plan.priority = kHigh;
  plan.work = "beat";
  plan.period_ms = 1000 * seconds / 220;
  clients.Add(plan);
  Watch(board, clients, seconds);
  const auto said = clients.Finish();
  const double run = Most(said, 0, said.size(), "run_max_ms");
  const auto& high = said.back();
  const double high_wait = high.at("queue_max_ms").get<double>();
  const double low_wait = Most(said, kMedium, kLows, "queue_max_ms");
  // What a thread that was woken takes to get there is not the scheduler's.
  constexpr double kWakeMs = 1;
  figures->Add(
      "HIGH at full load: longest wait", Text("<= one job, %.1f ms", run),
      Text("%.2f ms (p50 %.2f, %llu jobs)", high_wait,
           high.at("queue_p50_ms").get<double>(),
           static_cast<unsigned long long>(high.at("jobs").get<uint64_t>())),
      high_wait <= run + kWakeMs, {{"client", high}, {"longest_job_ms", run}});
  uint64_t lows = 0;
  for (size_t i = kMedium; i < kMedium + kLows; ++i) {
    lows += said[i].at("jobs").get<uint64_t>();
  }
  figures->Add("LOW at full load: longest wait",
               Text("<= the bound, %.0f ms", kStarvationBoundMs),
               Text("%.1f ms (%llu jobs)", low_wait,
                    static_cast<unsigned long long>(lows)),
               lows > 0 && low_wait <= kStarvationBoundMs + kWakeMs,
               {{"longest_ms", low_wait}, {"jobs", lows}});
}

void MeasureGangs(Board& board, const Networks& networks, double seconds,
                  Figures* figures) {
  Clients clients(board.target());
  ClientPlan plan = PlanFor(networks.short_model, seconds);
  plan.contexts = 3;
  for (int i = 0; i < 4; ++i) {
    plan.model = i % 2 == 0 ? networks.short_model : networks.long_model;
    clients.Add(plan);
  }
  plan.model = networks.short_model;
  plan.core_mask = kAllCores;
  for (int i = 0; i < 2; ++i) clients.Add(plan);
  const Interval interval = Watch(board, clients, seconds);
  const std::vector<double> npu = NpuOf(interval, clients, 0, 6);
  clients.Finish();
  // No schedule of any kind does more than all cores all the time; sessions'
  // NPU time leaves out cores that were kept for a gang.
  const double done = std::accumulate(npu.begin(), npu.end(), 0.0);
  const double bound = 3 * interval.seconds;
  const double gangs = npu[4] + npu[5];
  figures->Add("gangs and single jobs of two lengths: done",
               ">= 95 % of the best",
               Text("%.2f %% (gangs had %.1f %%)", 100 * done / bound,
                    100 * gangs / done),
               done / bound >= 0.95,
               {{"npu_s", done},
                {"bound_s", bound},
                {"gangs_s", gangs},
                {"by_session_s", npu}});
}

void MeasureStreams(Board& board, const Networks& networks, double seconds,
                    Figures* figures) {
  for (const char* work : {"newest", "fifo"}) {
    Clients clients(board.target());
    ClientPlan plan = PlanFor(networks.short_model, seconds);
    plan.work = work;
    plan.core_mask = 1;
    plan.period_ms = networks.short_ms / 2;
    clients.Add(plan);
    clients.Go();
    SleepFor(plan.seconds);
    const nlohmann::json said = clients.Finish().at(0);
    const double age = said.at("age_p99_ms").get<double>();
    const std::string measured = Text(
        "%.1f ms (p50 %.1f, %llu answered)", age,
        said.at("age_p50_ms").get<double>(),
        static_cast<unsigned long long>(said.at("answered").get<uint64_t>()));
    if (plan.work == "fifo") {
      figures->AddBeside("  the same, first in first out", measured,
                         {{"client", said}});
      continue;
    }
    const double bound = 2 * networks.short_ms;
    figures->Add("newest frame wins, 2 x overload: age p99",
                 Text("<= two runs, %.1f ms", bound), measured,
                 age <= bound && said.at("answered").get<uint64_t>() >= 200,
                 {{"client", said}, {"bound_ms", bound}});
  }
}

}  // namespace rknnd::bench
