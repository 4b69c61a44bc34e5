// The verbs that look at a daemon: reports, the live view, the timeline.

#include <memory>

#include "client/ctl/control_connection.h"
#include "client/ctl/models/model_memory.h"
#include "client/ctl/reports/sram.h"
#include "client/ctl/reports/trace.h"
#include "client/ctl/text/terminal.h"
#include "client/ctl/top/watch.h"
#include "client/ctl/verbs/finite_range.h"
#include "client/ctl/verbs/verb.h"

namespace rknnd::client {
namespace {

using base::Expected;

// What one report says; `show`: of it and our own session.
template <class Show>
Expected<Output> Report(const std::string& target, rknnd_v1_ReportKind kind,
                        Show show) {
  Expected<ControlConnection> daemon = ControlConnection::Open(target);
  if (!daemon) return std::move(daemon).error();
  const Expected<wire::Report> report = daemon->Ask(kind);
  if (!report) return report.error();
  return show(*report, *daemon);
}

RunVerb DeclareStatus(CLI::App& /*verb*/) {
  return [](const Common& common) -> VerbEnd {
    return {Report(common.target, rknnd_v1_ReportKind_REPORT_STATUS,
                   [](const wire::Report& report,
                      ControlConnection& daemon) -> Expected<Output> {
                     const Expected<wire::Report> sessions =
                         daemon.Ask(rknnd_v1_ReportKind_REPORT_SESSIONS);
                     if (!sessions) return sessions.error();
                     return StatusOutput(report, *sessions, daemon.session(),
                                         daemon.AskNpu());
                   })};
  };
}

RunVerb DeclareSessions(CLI::App& /*verb*/) {
  return [](const Common& common) -> VerbEnd {
    return {Report(common.target, rknnd_v1_ReportKind_REPORT_SESSIONS,
                   [](const wire::Report& report, ControlConnection& daemon) {
                     return SessionsOutput(report, daemon.session());
                   })};
  };
}

// Of a report that says all.
template <rknnd_v1_ReportKind kKind, Output (*kShow)(const wire::Report&)>
RunVerb DeclareReport(CLI::App& /*verb*/) {
  return [](const Common& common) -> VerbEnd {
    return {Report(
        common.target, kKind,
        [](const wire::Report& report, const ControlConnection& /*daemon*/) {
          return kShow(report);
        })};
  };
}

RunVerb DeclareMemory(CLI::App& verb) {
  struct Options {
    std::string model;
    bool sram = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::Option* model =
      verb.add_option("MODEL", options->model,
                      "what this model takes: weights, internal, other, total");
  verb.add_flag("--sram", options->sram,
                "the NPU's SRAM page by page, and who holds it")
      ->excludes(model);
  return [options](const Common& common) -> VerbEnd {
    if (!options->model.empty()) return {MemoryOfModel(options->model)};
    if (!options->sram) {
      return {Report(common.target, rknnd_v1_ReportKind_REPORT_MEMORY,
                     [](const wire::Report& report, ControlConnection& daemon) {
                       return MemoryOutput(report, daemon.session());
                     })};
    }
    return {Report(
        common.target, rknnd_v1_ReportKind_REPORT_SRAM,
        [](const wire::Report& report, const ControlConnection& /*daemon*/) {
          return SramOutput(report,
                            report.sram_total == 0 ? WhyNoSram(report) : "");
        })};
  };
}

RunVerb DeclareTop(CLI::App& verb) {
  struct Options {
    WatchOptions watch;
    bool once = false;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("--interval", options->watch.interval_s,
                  "seconds between two looks")
      ->check(FiniteRange(0.05, 3600))
      ->capture_default_str();
  verb.add_flag("--once", options->once,
                "one frame, and end; also where stdout is no terminal");
  verb.footer(
      "q or Ctrl-C ends it; n, f, l, d and m sort by NPU time, frames, "
      "latency,\n"
      "drops and memory.");
  return [options](const Common& common) -> VerbEnd {
    options->watch.target = common.target;
    if (common.json || options->once || !Terminal::IsOne()) {
      return {LookOnce(options->watch)};
    }
    const Expected<void> watched = Watch(options->watch);
    if (!watched) return {watched.error()};
    return {Output{}, kOk, /*printed=*/true};
  };
}

RunVerb DeclareTrace(CLI::App& verb) {
  const auto options = std::make_shared<TraceOptions>();
  verb.add_option("--output", options->output,
                  "the file to write; rknnd-trace-<time>.json if not given")
      ->type_name("FILE");
  verb.add_option("--seconds", options->seconds,
                  "record so long from now on, and leave out what was before")
      ->check(FiniteRange(0.01, 3600));
  return [options](const Common& common) -> VerbEnd {
    options->target = common.target;
    return {Trace(*options)};
  };
}

constexpr Verb kReportVerbs[] = {
    {"status", "the device, what uses it, memory in all", DeclareStatus},
    {"sessions", "connected processes", DeclareSessions},
    {"models", "loaded models",
     DeclareReport<rknnd_v1_ReportKind_REPORT_MODELS, ModelsOutput>},
    {"contexts", "contexts of all processes",
     DeclareReport<rknnd_v1_ReportKind_REPORT_CONTEXTS, ContextsOutput>},
    {"buffers", "memory that processes allocated or imported",
     DeclareReport<rknnd_v1_ReportKind_REPORT_BUFFERS, BuffersOutput>},
    {"mem", "memory by kind, model and process, and without sharing",
     DeclareMemory},
    {"top", "live view: load of each core, jobs, latency, memory, sessions",
     DeclareTop},
    {"trace", "timeline of the jobs of late, for https://ui.perfetto.dev",
     DeclareTrace},
};

}  // namespace

std::span<const Verb> ReportVerbs() { return kReportVerbs; }

}  // namespace rknnd::client
