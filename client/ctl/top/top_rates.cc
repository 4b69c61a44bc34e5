#include "client/ctl/top/top_rates.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "base/posix/latency_buckets.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {
namespace {

using Counts = std::array<uint64_t, base::kLatencyBuckets>;

// How much a counter grew: 0 where it went back, as after a new start.
double Growth(uint64_t before, uint64_t now) {
  return now > before ? static_cast<double>(now - before) : 0;
}

double Each(double sum, double count) { return count > 0 ? sum / count : 0; }

std::map<uint64_t, uint64_t> CopiedBySession(const wire::Report& contexts) {
  std::map<uint64_t, uint64_t> copied;
  for (const wire::ContextReport& context : contexts.contexts) {
    uint64_t& sum = copied[context.session];
    sum = AddUp(sum, TotalCopied(context.copied));
  }
  return copied;
}

std::map<uint64_t, uint64_t> QueuedBySession(const wire::Report& contexts) {
  std::map<uint64_t, uint64_t> queued;
  for (const wire::ContextReport& context : contexts.contexts) {
    queued[context.session] += context.queued;
  }
  return queued;
}

// Jobs by bucket since the look before; counts go on from 0 after 2^32.
Counts NewJobs(const wire::SessionReport& before,
               const wire::SessionReport& now) {
  Counts counts{};
  const size_t known = std::min<size_t>(before.latency_count, counts.size());
  const size_t size = std::min<size_t>(now.latency_count, counts.size());
  for (size_t i = 0; i < size; ++i) {
    counts[i] = now.latency[i] - (i < known ? before.latency[i] : 0U);
  }
  return counts;
}

TopLatency LatencyOf(const Counts& counts) {
  return {base::LatencyPercentile(counts, 0.5),
          base::LatencyPercentile(counts, 0.99)};
}

// Compares two looks; what it has is its input.
class Comparison {
 public:
  Comparison(const TopSample& before, const TopSample& now,
             uint64_t own_session)
      : old_(before), now_(now), own_session_(own_session) {
    rates_.seconds = Growth(old_.board.uptime_ns, now_.board.uptime_ns) / 1e9;
  }

  TopRates Compare() {
    const wire::Report& old = old_.board;
    const wire::Report& board = now_.board;
    rates_.done_per_s = PerSecond(Growth(old.jobs_done, board.jobs_done));
    rates_.failed_per_s = PerSecond(Growth(old.jobs_failed, board.jobs_failed));
    rates_.dropped_per_s =
        PerSecond(Growth(old.jobs_dropped, board.jobs_dropped));
    CompareCores();
    CompareSessions();
    CompareModels();
    return std::move(rates_);
  }

 private:
  [[nodiscard]] double PerSecond(double amount) const {
    return Each(amount, rates_.seconds);
  }
  // Of all cores.
  [[nodiscard]] double Load(double npu_us) const {
    const double cores = std::max<double>(1, now_.board.cores);
    return std::min(1.0, PerSecond(npu_us) / 1e6 / cores);
  }

  void CompareCores();
  void CompareSessions();
  void CompareModels();

  const TopSample& old_;
  const TopSample& now_;
  const uint64_t own_session_;
  TopRates rates_;
};

void Comparison::CompareCores() {
  const auto& before = old_.board.core_reports;
  const auto& now = now_.board.core_reports;
  for (size_t i = 0; i < now.size(); ++i) {
    const wire::CoreReport first =
        i < before.size() ? before[i] : wire::CoreReport{};
    CoreRates core;
    // Jobs on a core are counted up to a moment that is not quite the look's.
    core.load =
        std::min(1.0, PerSecond(Growth(first.busy_ns, now[i].busy_ns)) / 1e9);
    core.jobs_per_s = PerSecond(Growth(first.jobs, now[i].jobs));
    core.report = &now[i];
    for (const wire::SessionReport& session : now_.board.sessions) {
      if (session.id == now[i].session && session.id != 0) {
        core.session = &session;
      }
    }
    rates_.load += core.load / static_cast<double>(now.size());
    rates_.cores.push_back(core);
  }
}

void Comparison::CompareSessions() {
  std::map<uint64_t, const wire::SessionReport*> known;
  for (const wire::SessionReport& session : old_.board.sessions) {
    known[session.id] = &session;
  }
  std::map<uint64_t, uint64_t> copied_before = CopiedBySession(old_.contexts);
  std::map<uint64_t, uint64_t> copied = CopiedBySession(now_.contexts);
  std::map<uint64_t, uint64_t> queued = QueuedBySession(now_.contexts);
  Counts all{};
  double runs = 0;
  for (const wire::SessionReport& session : now_.board.sessions) {
    if (session.id == own_session_) continue;
    const auto found = known.find(session.id);
    const wire::SessionReport first =
        found != known.end() ? *found->second : wire::SessionReport{};
    const double jobs = Growth(first.jobs, session.jobs);
    const double run_us = Growth(first.run_us, session.run_us);
    const double queue_us = Growth(first.queue_us, session.queue_us);
    const double bytes = Growth(copied_before[session.id], copied[session.id]);
    const Counts counts = NewJobs(first, session);
    SessionRates line;
    line.report = &session;
    line.runs_per_s = PerSecond(jobs);
    // Also of jobs that failed, which the means below leave out.
    line.load = Load(Growth(first.npu_us, session.npu_us));
    line.queue_us = Each(queue_us, jobs);
    line.run_us = Each(run_us, jobs);
    line.copied_per_s = PerSecond(bytes);
    line.copied_per_run = Each(bytes, jobs);
    line.drops_per_s = PerSecond(Growth(first.drops, session.drops));
    line.queued = queued[session.id];
    line.latency = LatencyOf(counts);
    rates_.sessions.push_back(line);
    runs += jobs;
    rates_.queue_us += queue_us;
    rates_.run_us += run_us;
    for (size_t i = 0; i < all.size(); ++i) all[i] += counts[i];
  }
  rates_.ran = runs > 0;
  rates_.queue_us = Each(rates_.queue_us, runs);
  rates_.run_us = Each(rates_.run_us, runs);
  rates_.latency = LatencyOf(all);
}

void Comparison::CompareModels() {
  using Hash = std::array<uint8_t, sizeof wire::ModelReport::sha256>;
  const auto hash_of = [](const wire::ModelReport& model) {
    Hash hash;
    std::copy(std::begin(model.sha256), std::end(model.sha256), hash.begin());
    return hash;
  };
  std::map<Hash, const wire::ModelReport*> known;
  for (const wire::ModelReport& model : old_.board.models) {
    known[hash_of(model)] = &model;
  }
  for (const wire::ModelReport& model : now_.board.models) {
    const auto found = known.find(hash_of(model));
    const wire::ModelReport first =
        found != known.end() ? *found->second : wire::ModelReport{};
    const double jobs = Growth(first.jobs, model.jobs);
    ModelRates line;
    line.report = &model;
    line.runs_per_s = PerSecond(jobs);
    line.load = Load(Growth(first.npu_us, model.npu_us));
    line.queue_us = Each(Growth(first.queue_us, model.queue_us), jobs);
    line.drops_per_s = PerSecond(Growth(first.drops, model.drops));
    rates_.models.push_back(line);
  }
}

double KeyOf(const SessionRates& line, TopOrder order) {
  switch (order) {
    case TopOrder::kNpu:
      return line.load;
    case TopOrder::kFps:
      return line.runs_per_s;
    case TopOrder::kLatency:
      return line.latency.p99_us;
    case TopOrder::kDrops:
      return line.drops_per_s;
    case TopOrder::kMemory:
      return static_cast<double>(line.report->memory);
  }
  return 0;
}

double KeyOf(const ModelRates& line, TopOrder order) {
  switch (order) {
    case TopOrder::kNpu:
      return line.load;
    case TopOrder::kFps:
      return line.runs_per_s;
    case TopOrder::kLatency:
      return static_cast<double>(line.report->run_ns);
    case TopOrder::kDrops:
      return line.drops_per_s;
    case TopOrder::kMemory:
      return static_cast<double>(line.report->weight_held);
  }
  return 0;
}

// Lines that are equal keep their order, so that an idle screen stands still.
template <class Line>
void Sort(std::vector<Line>& lines, TopOrder order) {
  std::stable_sort(lines.begin(), lines.end(),
                   [order](const Line& a, const Line& b) {
                     return KeyOf(a, order) > KeyOf(b, order);
                   });
}

}  // namespace

TopRates CompareLooks(const TopSample& before, const TopSample& now,
                      uint64_t own_session, TopOrder order) {
  TopRates rates = Comparison(before, now, own_session).Compare();
  Sort(rates.sessions, order);
  Sort(rates.models, order);
  return rates;
}

}  // namespace rknnd::client
