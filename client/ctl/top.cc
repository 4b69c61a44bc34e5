#include "client/ctl/top.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "client/ctl/table.h"
#include "client/ctl/text.h"

namespace rknnd::client {
namespace {

using Align = Table::Align;

// A core this busy has no room for more streams; this idle, plenty.
constexpr double kFull = 0.9;
constexpr double kBusy = 0.6;

struct CoreLoad {
  double load = 0;  // 0 to 1
  double jobs_per_s = 0;
};

struct SessionRates {
  const wire::SessionReport* report = nullptr;
  double runs_per_s = 0;
  double load = 0;                  // of all cores
  double queue_us = 0, run_us = 0;  // mean of one good run; 0 without any
  double copied_per_s = 0, copied_per_run = 0;
};

struct Rates {
  double seconds = 0;
  double done_per_s = 0, failed_per_s = 0;
  bool ran = false;
  double queue_us = 0, run_us = 0;
  std::vector<CoreLoad> cores;
  std::vector<SessionRates> sessions;  // the busiest first
};

// How much a counter grew: 0 where it went back, as after a new start.
uint64_t Growth(uint64_t before, uint64_t now) {
  return now > before ? now - before : 0;
}

// A client's counters may say anything: more than fits is the most that does.
uint64_t ToCount(double value) {
  constexpr double kEnd = 18446744073709551616.0;  // 2^64
  if (!(value > 0)) return 0;
  return value < kEnd ? static_cast<uint64_t>(value) : UINT64_MAX;
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

Rates Compare(const TopSample& before, const TopSample& now,
              uint64_t own_session) {
  const wire::Report& old = before.board;
  const wire::Report& board = now.board;
  Rates rates;
  rates.seconds =
      static_cast<double>(Growth(old.uptime_ns, board.uptime_ns)) / 1e9;
  const auto per_second = [&rates](double amount) {
    return Each(amount, rates.seconds);
  };
  rates.done_per_s =
      per_second(static_cast<double>(Growth(old.jobs_done, board.jobs_done)));
  rates.failed_per_s = per_second(
      static_cast<double>(Growth(old.jobs_failed, board.jobs_failed)));

  for (size_t i = 0; i < board.core_reports.size(); ++i) {
    const wire::CoreReport& core = board.core_reports[i];
    const wire::CoreReport first =
        i < old.core_reports.size() ? old.core_reports[i] : wire::CoreReport{};
    CoreLoad load;
    // Jobs on a core are counted up to a moment that is not quite the look's.
    load.load = std::min(
        1.0,
        per_second(static_cast<double>(Growth(first.busy_ns, core.busy_ns))) /
            1e9);
    load.jobs_per_s =
        per_second(static_cast<double>(Growth(first.jobs, core.jobs)));
    rates.cores.push_back(load);
  }

  std::map<uint64_t, const wire::SessionReport*> known;
  for (const wire::SessionReport& session : old.sessions) {
    known[session.id] = &session;
  }
  std::map<uint64_t, uint64_t> copied_before = CopiedBySession(before.contexts);
  std::map<uint64_t, uint64_t> copied = CopiedBySession(now.contexts);
  const double cores = std::max<double>(1, board.cores);
  double runs = 0;
  double queued = 0;
  double ran = 0;
  for (const wire::SessionReport& session : board.sessions) {
    if (session.id == own_session) continue;
    const auto found = known.find(session.id);
    const wire::SessionReport first =
        found != known.end() ? *found->second : wire::SessionReport{};
    const auto jobs = static_cast<double>(Growth(first.jobs, session.jobs));
    // Also of jobs that failed, which the means below leave out.
    const auto npu_us =
        static_cast<double>(Growth(first.npu_us, session.npu_us));
    const auto run_us =
        static_cast<double>(Growth(first.run_us, session.run_us));
    const auto queue_us =
        static_cast<double>(Growth(first.queue_us, session.queue_us));
    const auto bytes = static_cast<double>(
        Growth(copied_before[session.id], copied[session.id]));
    SessionRates line;
    line.report = &session;
    line.runs_per_s = per_second(jobs);
    line.load = std::min(1.0, per_second(npu_us) / 1e6 / cores);
    line.queue_us = Each(queue_us, jobs);
    line.run_us = Each(run_us, jobs);
    line.copied_per_s = per_second(bytes);
    line.copied_per_run = Each(bytes, jobs);
    rates.sessions.push_back(line);
    runs += jobs;
    queued += queue_us;
    ran += run_us;
  }
  rates.ran = runs > 0;
  rates.queue_us = Each(queued, runs);
  rates.run_us = Each(ran, runs);
  std::stable_sort(rates.sessions.begin(), rates.sessions.end(),
                   [](const SessionRates& a, const SessionRates& b) {
                     return a.load > b.load;
                   });
  return rates;
}

// Enough digits for a reader of numbers, few enough for a reader of text.
double Rounded(double value) { return std::round(value * 1000) / 1000; }

Json ToJson(const wire::Report& board, const Rates& rates) {
  Json json = {
      {"uptime_s", board.uptime_s},
      {"interval_s", Rounded(rates.seconds)},
      {"cores", Json::array()},
      {"jobs",
       {{"queued", board.jobs_queued},
        {"running", board.jobs_running},
        {"done", board.jobs_done},
        {"failed", board.jobs_failed},
        {"done_per_s", Rounded(rates.done_per_s)},
        {"failed_per_s", Rounded(rates.failed_per_s)}}},
      {"latency_us",
       {{"queue", Rounded(rates.queue_us)}, {"run", Rounded(rates.run_us)}}},
      {"memory", KindsJson(board.memory)},
      {"sessions", Json::array()}};
  json["memory"]["total"] = Total(board.memory);
  json["memory"]["unshared_total"] = board.unshared_total;
  for (size_t i = 0; i < rates.cores.size(); ++i) {
    json["cores"].push_back(
        {{"core", i},
         {"load", Rounded(rates.cores[i].load)},
         {"jobs_per_s", Rounded(rates.cores[i].jobs_per_s)}});
  }
  for (const SessionRates& line : rates.sessions) {
    const wire::SessionReport& session = *line.report;
    json["sessions"].push_back({{"id", session.id},
                                {"pid", session.pid},
                                {"comm", session.comm},
                                {"contexts", session.contexts},
                                {"runs_per_s", Rounded(line.runs_per_s)},
                                {"load", Rounded(line.load)},
                                {"queue_us", Rounded(line.queue_us)},
                                {"run_us", Rounded(line.run_us)},
                                {"copied_per_s", Rounded(line.copied_per_s)},
                                {"memory", session.memory}});
  }
  return json;
}

template <class... Args>
std::string Print(const char* format, Args... args) {
  char text[128];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

std::string Percent(double share) { return Print("%.0f %%", share * 100); }

// "0", "0.5", "9.8", "312": three digits at most are worth reading.
std::string Rate(double per_second) {
  return per_second == 0   ? "0"
         : per_second < 10 ? Print("%.1f", per_second)
                           : Print("%.0f", per_second);
}

void DrawBoard(const wire::Report& board, const Rates& rates, Screen& screen) {
  screen.Line(
      "rknnd  " + Printable(board.soc) + " (" + Printable(board.device) + ", " +
          FormatCount(board.cores, "core") + "), up " +
          (board.uptime_s < 60
               ? std::to_string(board.uptime_s) + " s"
               : FormatMicroseconds(static_cast<double>(board.uptime_s) *
                                    1e6)) +
          ": " + FormatCount(rates.sessions.size(), "session") + ", " +
          FormatCount(board.model_count, "model") + ", " +
          FormatCount(board.context_count, "context"),
      kBold);
  screen.Blank();
  for (size_t i = 0; i < rates.cores.size(); ++i) {
    const CoreLoad& core = rates.cores[i];
    screen.Gauge("core " + std::to_string(i), core.load,
                 Print("%5s  %6s jobs/s", Percent(core.load).c_str(),
                       Rate(core.jobs_per_s).c_str()),
                 20,
                 core.load >= kFull   ? kRed
                 : core.load >= kBusy ? kYellow
                                      : kGreen);
  }
  screen.Blank();
  screen.Labelled("jobs",
                  Rate(rates.done_per_s) + "/s done, " +
                      std::to_string(board.jobs_running) + " running, " +
                      std::to_string(board.jobs_queued) + " queued, " +
                      std::to_string(board.jobs_failed) + " failed of " +
                      std::to_string(board.jobs_done + board.jobs_failed));
  screen.Labelled(
      "latency", !rates.ran
                     ? "no run ended in this interval"
                     : FormatMicroseconds(rates.queue_us + rates.run_us) +
                           " = " + FormatMicroseconds(rates.queue_us) +
                           " waiting for a core + " +
                           FormatMicroseconds(rates.run_us) + " on it (means)");
  const uint64_t total = Total(board.memory);
  screen.Labelled("memory",
                  FormatBytes(total) + ": weights " +
                      FormatBytes(board.memory.weight) + ", internal " +
                      FormatBytes(board.memory.internal) + ", I/O " +
                      FormatBytes(board.memory.io) +
                      (board.memory.other == 0
                           ? ""
                           : ", other " + FormatBytes(board.memory.other)));
  if (board.unshared_total > total) {
    const double saved = static_cast<double>(board.unshared_total - total) /
                         static_cast<double>(board.unshared_total);
    screen.Labelled("", FormatBytes(board.unshared_total) +
                            " without sharing: " + Percent(saved) + " saved");
  }
}

void DrawSessions(const Rates& rates, Screen& screen) {
  screen.Blank();
  if (rates.sessions.empty()) {
    screen.Line("nobody uses the NPU", kDim);
    return;
  }
  Table table({{"PID", Align::kRight},
               {"PROGRAM"},
               {"CTX", Align::kRight},
               {"RUNS/S", Align::kRight},
               {"NPU", Align::kRight},
               {"WAIT", Align::kRight},
               {"RUN", Align::kRight},
               {"COPIED/RUN", Align::kRight},
               {"MEMORY", Align::kRight}});
  // Below the title; where not all fit, the last line says so.
  const size_t room = std::max<size_t>(screen.room(), 1) - 1;
  const size_t all = rates.sessions.size();
  const size_t shown = all <= room ? all : std::max<size_t>(room, 1) - 1;
  for (size_t i = 0; i < shown; ++i) {
    const SessionRates& line = rates.sessions[i];
    const wire::SessionReport& session = *line.report;
    const bool ran = line.runs_per_s > 0;
    table.Add({session.pid == 0 ? "-" : std::to_string(session.pid),
               Printable(session.comm), std::to_string(session.contexts),
               Rate(line.runs_per_s), Percent(line.load),
               ran ? FormatMicroseconds(line.queue_us) : "-",
               ran ? FormatMicroseconds(line.run_us) : "-",
               ran ? FormatBytes(ToCount(line.copied_per_run)) : "-",
               FormatBytes(session.memory)});
  }
  const std::string text = table.ToString();
  bool title = true;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    screen.Line(text.substr(begin, end - begin), title ? kDim : kNoColor);
    title = false;
    begin = end + 1;
  }
  if (shown < all) {
    screen.Line("and " + FormatCount(all - shown, "session") +
                    " more that used it less",
                kDim);
  }
}

}  // namespace

Output TopOutput(const TopSample& before, const TopSample& now,
                 uint64_t own_session, const TopView& view) {
  const Rates rates = Compare(before, now, own_session);
  Output output;
  output.json = ToJson(now.board, rates);
  Screen screen(view);
  DrawBoard(now.board, rates, screen);
  DrawSessions(rates, screen);
  output.text = screen.text();
  return output;
}

std::string NoticeText(const std::string& notice, const TopView& view) {
  Screen screen(view);
  screen.Line(Printable(notice));
  screen.Blank();
  screen.Line("waiting for it; q ends");
  return screen.text();
}

}  // namespace rknnd::client
