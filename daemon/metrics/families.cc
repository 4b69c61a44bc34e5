// Words in labels came from clients as far as `comm` and model names go; the
// text format escapes them, and a scrape that is not UTF-8 is refused whole.

#include "daemon/metrics/families.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/posix/clock.h"
#include "base/posix/latency_buckets.h"
#include "daemon/core/terms/status_numbers.h"
#include "daemon/core/terms/utf8.h"

namespace rknnd::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// A bound of buckets for each power of two up to 8 s: four times as many, which
// core counts, would be four times the series and tell a dashboard no more.
constexpr size_t kBucketsPerBound = 4;
constexpr size_t kBounds = 24;

double Seconds(base::Nanoseconds time) {
  return static_cast<double>(time) / base::kSecond;
}

double SecondsOfUs(uint64_t us) { return static_cast<double>(us) / 1e6; }

class Family {
 public:
  Family(const char* name, MetricType type, const char* help) {
    family_.name = absl::StrCat("rknnd_", name);
    family_.help = help;
    family_.type = type;
  }

  Family&& With(double value, Labels labels = {}) && {
    Add(value, std::move(labels));
    return std::move(*this);
  }
  void Add(double value, Labels labels = {}) {
    ClientMetric metric;
    for (ClientMetric::Label& label : labels) {
      label.value = core::Utf8(std::move(label.value));
    }
    metric.label = std::move(labels);
    (family_.type == MetricType::Counter ? metric.counter.value
                                         : metric.gauge.value) = value;
    family_.metric.push_back(std::move(metric));
  }
  void Add(const core::TimesReport& times) {
    ClientMetric metric;
    uint64_t count = 0;
    size_t bucket = 0;
    for (size_t bound = 1; bound <= kBounds; ++bound) {
      const size_t end = bound * kBucketsPerBound;
      for (; bucket < end && bucket < times.counts.size(); ++bucket) {
        count += times.counts[bucket];
      }
      // The last of core's buckets holds all that is longer.
      const bool last = bound == kBounds;
      metric.histogram.bucket.push_back(
          {count, last ? std::numeric_limits<double>::infinity()
                       : base::LatencyBucketBegin(end) / 1e6});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = Seconds(times.sum);
    family_.metric.push_back(std::move(metric));
  }

  MetricFamily Take() && { return std::move(family_); }

 private:
  MetricFamily family_;
};

static_assert(kBounds * kBucketsPerBound == base::kLatencyBuckets);

Family Counter(const char* name, const char* help) {
  return {name, MetricType::Counter, help};
}

Family Gauge(const char* name, const char* help) {
  return {name, MetricType::Gauge, help};
}

class Families {
 public:
  void Add(Family family) { all_.push_back(std::move(family).Take()); }
  std::vector<MetricFamily> Take() && { return std::move(all_); }

 private:
  std::vector<MetricFamily> all_;
};

// "deadline_exceeded"
std::string CodeName(size_t code) {
  return absl::AsciiStrToLower(
      absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
}

// Of all codes but OK, also those that never came: an alert on a rate needs
// the 0 before the 1.
Family ByCode(Family family,
              const std::array<uint64_t, core::kStatusCodes>& counts) {
  for (size_t code = 1; code < counts.size(); ++code) {
    family.Add(static_cast<double>(counts[code]), {{"code", CodeName(code)}});
  }
  return family;
}

Family Times(const char* name, const char* help,
             const core::TimesReport& times) {
  Family family{name, MetricType::Histogram, help};
  family.Add(times);
  return family;
}

void AddBoard(const BoardFigures& figures, Families& families) {
  const core::StatusReport& status = figures.status;
  families.Add(Gauge("build_info", "1; what runs here.")
                   .With(1, {{"version", figures.version},
                             {"device", status.device.kind},
                             {"soc", status.device.soc},
                             {"driver", status.device.driver}}));
  families.Add(Gauge("uptime_seconds", "Since the daemon started.")
                   .With(Seconds(status.uptime)));
  families.Add(Gauge("admitted_load_ratio",
                     "Part of all cores that admitted streams need.")
                   .With(static_cast<double>(status.admitted_ppm) / 1e6));
  Family syncs = Counter("cache_syncs_total",
                         "CPU cache synchronisations that jobs had or could "
                         "do without.");
  syncs.Add(static_cast<double>(status.cache_syncs.done), {{"kind", "done"}});
  syncs.Add(static_cast<double>(status.cache_syncs.skipped),
            {{"kind", "skipped"}});
  families.Add(std::move(syncs));
  families.Add(ByCode(Counter("request_failures_total",
                              "Requests and connections that failed, by code."),
                      figures.failures));
}

// What the kernel does not tell is left out.
void AddNpu(const board::NpuFigures& npu, Families& families) {
  if (!npu.load.empty()) {
    Family load =
        Gauge("npu_kernel_load_ratio",
              "Busy share of the last second by the driver, by core.");
    for (size_t core = 0; core < npu.load.size(); ++core) {
      load.Add(npu.load[core] / 100.0, {{"core", absl::StrCat(core)}});
    }
    families.Add(std::move(load));
  }
  const auto add = [&families](const char* name, const char* help,
                               double value) {
    families.Add(Gauge(name, help).With(value));
  };
  if (npu.hertz.has_value()) {
    add("npu_clock_hertz", "The NPU's clock.", static_cast<double>(*npu.hertz));
  }
  if (npu.microvolts.has_value()) {
    add("npu_volts", "The NPU's supply.",
        static_cast<double>(*npu.microvolts) / 1e6);
  }
  if (npu.celsius.has_value()) {
    add("npu_celsius", "The NPU's temperature.", *npu.celsius);
  }
  if (npu.sram_used.has_value()) {
    add("npu_kernel_sram_used_bytes", "SRAM in use by the driver's bitmap.",
        static_cast<double>(*npu.sram_used));
  }
  if (!npu.power.empty()) {
    add("npu_powered", "1: the NPU is switched on.",
        npu.power == "suspended" ? 0 : 1);
  }
}

void AddNumbers(const core::StatusReport& status, Families& families) {
  for (const core::StatusNumber& number : core::StatusNumbers()) {
    Family family{number.name,
                  number.is_counter() ? MetricType::Counter : MetricType::Gauge,
                  number.help};
    family.Add(static_cast<double>(number.value(status)));
    families.Add(std::move(family));
  }
}

void AddCores(const core::StatusReport& status, Families& families) {
  Family busy =
      Counter("npu_busy_seconds_total", "Time a core had a job, by core.");
  Family jobs = Counter("npu_jobs_total", "Jobs that left a core, by core.");
  Family lent = Gauge("npu_lent", "1: the core is lent to a program.");
  for (size_t core = 0; core < status.cores.size(); ++core) {
    const core::CoreReport& report = status.cores[core];
    const Labels labels = {{"core", absl::StrCat(core)}};
    busy.Add(Seconds(report.busy), labels);
    jobs.Add(static_cast<double>(report.jobs), labels);
    lent.Add(report.lent_to.empty() ? 0 : 1, labels);
  }
  families.Add(std::move(busy));
  families.Add(std::move(jobs));
  families.Add(std::move(lent));
}

void AddJobs(const BoardFigures& figures, Families& families) {
  families.Add(ByCode(Counter("job_failures_total",
                              "Jobs answered with an error, by code; aborted: "
                              "dropped for a newer frame or for age."),
                      figures.jobs.answers));
  families.Add(Times("job_queue_seconds",
                     "From submission to the start on a core.",
                     figures.jobs.queue));
  families.Add(Times("job_run_seconds", "On a core.", figures.jobs.run));
  families.Add(Times("job_latency_seconds", "From submission to the answer.",
                     figures.jobs.total));
}

void AddMemory(const BoardFigures& figures, Families& families) {
  const core::MemoryKinds& kinds = figures.status.memory;
  Family memory = Gauge("memory_bytes", "NPU memory, by kind.");
  memory.Add(static_cast<double>(kinds.weight), {{"kind", "weight"}});
  memory.Add(static_cast<double>(kinds.internal), {{"kind", "internal"}});
  memory.Add(static_cast<double>(kinds.io), {{"kind", "io"}});
  memory.Add(static_cast<double>(kinds.other), {{"kind", "other"}});
  families.Add(std::move(memory));
  families.Add(Gauge("memory_unshared_bytes",
                     "What the same contexts would need without sharing.")
                   .With(static_cast<double>(figures.memory.unshared_total)));
  families.Add(Gauge("memory_budget_bytes", "What all may hold together.")
                   .With(static_cast<double>(figures.memory.budget)));
  families.Add(Gauge("memory_budget_used_bytes", "Of it, what is held.")
                   .With(static_cast<double>(figures.memory.budget_used)));
}

void AddSessions(const std::vector<core::SessionReport>& sessions,
                 Families& families) {
  Family npu = Counter("session_npu_seconds_total",
                       "Time on a core, of a connected program.");
  Family jobs = Counter("session_jobs_total", "Jobs that succeeded.");
  Family queue = Counter("session_queue_seconds_total",
                         "Time those jobs waited for a core.");
  Family drops = Counter("session_frames_dropped_total",
                         "Frames dropped for newer ones or for their age.");
  Family memory = Gauge("session_memory_bytes", "NPU memory it is charged.");
  Family contexts = Gauge("session_contexts", "Its contexts.");
  for (const core::SessionReport& session : sessions) {
    const Labels labels = {{"session", absl::StrCat(session.id)},
                           {"pid", absl::StrCat(session.peer.pid)},
                           {"uid", absl::StrCat(session.peer.uid)},
                           {"comm", session.peer.comm},
                           {"unit", session.peer.unit},
                           {"container", session.peer.container},
                           {"address", session.peer.address}};
    npu.Add(SecondsOfUs(session.npu_us), labels);
    jobs.Add(static_cast<double>(session.jobs), labels);
    queue.Add(SecondsOfUs(session.queue_us), labels);
    drops.Add(static_cast<double>(session.drops), labels);
    memory.Add(static_cast<double>(session.memory), labels);
    contexts.Add(session.contexts, labels);
  }
  for (Family* family : {&npu, &jobs, &queue, &drops, &memory, &contexts}) {
    families.Add(std::move(*family));
  }
}

void AddModels(const std::vector<core::ModelReport>& models,
               Families& families) {
  Family npu = Counter("model_npu_seconds_total", "Time on a core, by model.");
  Family jobs = Counter("model_jobs_total", "Jobs that succeeded.");
  Family queue = Counter("model_queue_seconds_total",
                         "Time those jobs waited for a core.");
  Family drops = Counter("model_frames_dropped_total",
                         "Frames dropped for newer ones or for their age.");
  Family weight = Gauge("model_weight_bytes",
                        "Weights that no other loaded model pays for.");
  Family contexts = Gauge("model_contexts", "Contexts of it.");
  Family run = Gauge("model_run_seconds", "One run, as measured lately.");
  for (const core::ModelReport& model : models) {
    const Labels labels = {
        {"model", model.name},
        {"sha256",
         absl::BytesToHexString({reinterpret_cast<const char*>(model.id.data()),
                                 model.id.size()})}};
    npu.Add(SecondsOfUs(model.npu_us), labels);
    jobs.Add(static_cast<double>(model.jobs), labels);
    queue.Add(SecondsOfUs(model.queue_us), labels);
    drops.Add(static_cast<double>(model.drops), labels);
    weight.Add(static_cast<double>(model.weight_held), labels);
    contexts.Add(model.contexts, labels);
    if (model.run != 0) run.Add(Seconds(model.run), labels);
  }
  for (Family* family :
       {&npu, &jobs, &queue, &drops, &weight, &contexts, &run}) {
    families.Add(std::move(*family));
  }
}

}  // namespace

std::vector<MetricFamily> ToFamilies(const BoardFigures& figures) {
  Families families;
  AddBoard(figures, families);
  AddNpu(figures.npu, families);
  AddNumbers(figures.status, families);
  AddCores(figures.status, families);
  AddJobs(figures, families);
  AddMemory(figures, families);
  AddSessions(figures.memory.sessions, families);
  AddModels(figures.memory.models, families);
  return std::move(families).Take();
}

}  // namespace rknnd::metrics
