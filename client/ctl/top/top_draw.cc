#include "client/ctl/top/top_draw.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "client/ctl/reports/report.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using Align = Table::Align;

// A core this busy has no room for more streams; this idle, plenty.
constexpr double kFull = 0.9;
constexpr double kBusy = 0.6;

// From here on lines have room for what is good to know.
constexpr size_t kWide = 100, kVeryWide = 120;
// Beside a bar: load, jobs, and who has the core.
constexpr size_t kMostTail = 60;

// A client's counters may say anything: more than fits is the most that does.
uint64_t ToCount(double value) {
  constexpr double kEnd = 18446744073709551616.0;  // 2^64
  if (!(value > 0)) return 0;
  return value < kEnd ? static_cast<uint64_t>(value) : UINT64_MAX;
}

std::string WholePercent(double share) {
  return Printed("%.0f %%", share * 100);
}

// "0", "0.5", "9.8", "312": three digits at most are worth reading.
std::string Rate(double per_second) {
  return per_second == 0   ? "0"
         : per_second < 10 ? Printed("%.1f", per_second)
                           : Printed("%.0f", per_second);
}

std::string PidOf(const wire::SessionReport& session) {
  // 0: a process of another container
  return session.pid == 0 ? "-" : std::to_string(session.pid);
}

const char* ColorOf(double load) {
  return load >= kFull ? kRed : load >= kBusy ? kYellow : kGreen;
}

// Who has a core: what it is lent to, or the model and the program whose job it
// has or had last.
std::string UserOf(const CoreRates& core) {
  const wire::CoreReport& report = *core.report;
  if (*report.lent_to != '\0') {
    return "lent to '" + Printable(report.lent_to) + "'";
  }
  if (core.load == 0 || report.session == 0) return "idle";
  std::string user = Printable(report.model);
  for (const std::string_view suffix : {".onnx", ".rknn"}) {
    if (user.ends_with(suffix)) user.resize(user.size() - suffix.size());
  }
  if (core.session != nullptr) {
    user += "  " + Printable(core.session->comm) + " (" + PidOf(*core.session) +
            ")";
  }
  return user;
}

void DrawCores(const TopRates& rates, const TopView& view,
               const TopOptions& options, Screen& screen) {
  // The same at every look, so that bars compare; names are cut where they are
  // longer than what is left of 80 columns.
  const size_t tail =
      view.width < 60 ? 20 : std::min(view.width - 31, kMostTail);
  for (size_t i = 0; i < rates.cores.size(); ++i) {
    const CoreRates& core = rates.cores[i];
    screen.Gauge("core " + std::to_string(i), core.load,
                 Printed("%5s  %4s/s  ", WholePercent(core.load).c_str(),
                         Rate(core.jobs_per_s).c_str()) +
                     UserOf(core),
                 tail, ColorOf(core.load));
  }
  if (options.history.empty()) return;
  screen.History("NPU", options.history,
                 Printed("%5s", WholePercent(rates.load).c_str()), tail,
                 ColorOf(rates.load));
}

void DrawBoard(const TopSample& sample, const TopRates& rates,
               const TopView& view, const TopOptions& options, Screen& screen) {
  const wire::Report& board = sample.board;
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
  for (const wire::ForeignUser& user : board.foreign_users) {
    screen.Line("WARNING: '" + Printable(user.comm) + "' (pid " +
                    std::to_string(user.pid) + ") uses " +
                    Printable(user.device) + " beside rknnd",
                kRed);
  }
  screen.Blank();
  DrawCores(rates, view, options, screen);
  // What the kernel counts and measures, beside what the daemon does.
  if (!sample.npu.empty()) screen.Line("kernel   " + Printable(sample.npu));
  screen.Blank();
  std::string jobs = Rate(rates.done_per_s) + "/s done, " +
                     std::to_string(board.jobs_running) + " running, " +
                     std::to_string(board.jobs_queued) + " queued, " +
                     std::to_string(board.jobs_failed) + " failed of " +
                     std::to_string(board.jobs_done + board.jobs_failed);
  if (board.jobs_dropped > 0) {
    jobs += ", " + Rate(rates.dropped_per_s) + "/s dropped";
  }
  if (board.jobs_shared > 0) {
    jobs += ", " + std::to_string(board.jobs_shared) + " shared";
  }
  screen.Labelled("jobs", jobs);
  screen.Labelled(
      "latency",
      !rates.ran ? "no run ended in this interval"
                 : "p50 " + FormatMicroseconds(rates.latency.p50_us) +
                       ", p99 " + FormatMicroseconds(rates.latency.p99_us) +
                       "; means: waits " + FormatMicroseconds(rates.queue_us) +
                       ", runs " + FormatMicroseconds(rates.run_us));
  const uint64_t total = Total(board.memory);
  screen.Labelled("memory",
                  FormatBytes(total) + ": weights " +
                      FormatBytes(board.memory.weight) + ", internal " +
                      FormatBytes(board.memory.internal) + ", I/O " +
                      FormatBytes(board.memory.io) +
                      (board.memory.other == 0
                           ? ""
                           : ", other " + FormatBytes(board.memory.other)));
  std::string more;
  if (board.unshared_total > total) {
    const double saved = static_cast<double>(board.unshared_total - total) /
                         static_cast<double>(board.unshared_total);
    more = FormatBytes(board.unshared_total) +
           " without sharing: " + WholePercent(saved) + " saved";
  }
  if (board.sram_total > 0) {
    more += (more.empty() ? "SRAM: " : "; SRAM: ") +
            FormatBytes(board.sram_total - board.sram_free) + " of " +
            FormatBytes(board.sram_total) + " used";
  }
  if (!more.empty()) screen.Labelled("", more);
}

// A table of the first `rows` of `all` lines, and how many are left out.
void DrawTable(const Table& table, const std::vector<const char*>& colors,
               const std::string& left_out, Screen& screen) {
  const std::string text = table.ToString();
  size_t line = 0;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin);
    screen.Line(text.substr(begin, end - begin),
                line == 0 ? kDim : colors[line - 1]);
    begin = end + 1;
  }
  if (!left_out.empty()) screen.Line(left_out, kDim);
}

// Of so many lines in so much room: how many are shown, when the last line of
// the room is to say how many are not.
size_t ShownOf(size_t lines, size_t room) {
  return lines <= room ? lines : std::max<size_t>(room, 1) - 1;
}

std::string LeftOut(size_t all, size_t shown, const char* what) {
  if (all == shown) return "";
  return "and " + FormatCount(all - shown, what) + " more";
}

void DrawSessions(const TopRates& rates, const TopView& view, size_t room,
                  Screen& screen) {
  std::vector<Table::Column> columns = {{"PID", Align::kRight}, {"PROGRAM"}};
  const bool wide = view.width >= kWide;
  const bool very_wide = view.width >= kVeryWide;
  if (wide) columns.push_back({"CTX", Align::kRight});
  for (const char* title : {"FPS", "NPU", "QUEUE"}) {
    columns.push_back({title, Align::kRight});
  }
  if (wide) columns.push_back({"WAIT", Align::kRight});
  if (wide) columns.push_back({"RUN", Align::kRight});
  for (const char* title : {"P50", "P99", "DROPS"}) {
    columns.push_back({title, Align::kRight});
  }
  if (very_wide) columns.push_back({"COPIED/RUN", Align::kRight});
  columns.push_back({"MEMORY", Align::kRight});
  Table table(std::move(columns));
  std::vector<const char*> colors;
  const size_t shown = ShownOf(rates.sessions.size(), room);
  for (size_t i = 0; i < shown; ++i) {
    const SessionRates& line = rates.sessions[i];
    const wire::SessionReport& session = *line.report;
    const bool ran = line.runs_per_s > 0;
    const auto time = [ran](double us) {
      return ran ? FormatMicroseconds(us) : "-";
    };
    // Two programs of one name on two machines are told apart.
    const std::string from =
        *session.address == '\0' ? "" : " at " + Printable(session.address);
    std::vector<std::string> cells = {
        PidOf(session), Cut(Printable(session.comm) + from, very_wide ? 40
                                                            : wide    ? 24
                                                                      : 14)};
    if (wide) cells.push_back(std::to_string(session.contexts));
    cells.push_back(Rate(line.runs_per_s));
    cells.push_back(WholePercent(line.load));
    cells.push_back(std::to_string(line.queued));
    if (wide) cells.push_back(time(line.queue_us));
    if (wide) cells.push_back(time(line.run_us));
    cells.push_back(time(line.latency.p50_us));
    cells.push_back(time(line.latency.p99_us));
    cells.push_back(line.drops_per_s == 0 ? "-"
                                          : Rate(line.drops_per_s) + "/s");
    if (very_wide) {
      cells.push_back(ran ? FormatBytes(ToCount(line.copied_per_run)) : "-");
    }
    cells.push_back(FormatBytes(session.memory));
    table.Add(std::move(cells));
    colors.push_back(line.drops_per_s > 0 ? kYellow : kNoColor);
  }
  DrawTable(table, colors, LeftOut(rates.sessions.size(), shown, "session"),
            screen);
}

// A model's name, and where another one has it too, the beginning of its hash,
// by which `rknnctl models` tells them apart.
std::string NameAmong(const std::vector<ModelRates>& models,
                      const wire::ModelReport& model, size_t width) {
  const std::string name = Printable(model.name);
  const auto same = [&](const ModelRates& other) {
    return Printable(other.report->name) == name;
  };
  if (std::count_if(models.begin(), models.end(), same) < 2) {
    return Cut(name, width);
  }
  const std::string digits = " " + HexOf(model.sha256).substr(0, 8);
  return Cut(name, width - digits.size()) + digits;
}

void DrawModels(const TopRates& rates, const TopView& view, size_t room,
                Screen& screen) {
  std::vector<Table::Column> columns = {{"MODEL"}};
  const bool wide = view.width >= kWide;
  for (const char* title : {"FPS", "NPU", "RUN", "WAIT", "CTX"}) {
    columns.push_back({title, Align::kRight});
  }
  if (wide) columns.push_back({"DROPS", Align::kRight});
  columns.push_back({"WEIGHTS", Align::kRight});
  if (wide) columns.push_back({"INTERNAL", Align::kRight});
  Table table(std::move(columns));
  const size_t shown = ShownOf(rates.models.size(), room);
  for (size_t i = 0; i < shown; ++i) {
    const ModelRates& line = rates.models[i];
    const wire::ModelReport& model = *line.report;
    std::vector<std::string> cells = {
        NameAmong(rates.models, model, wide ? 40 : 28),
        Rate(line.runs_per_s),
        WholePercent(line.load),
        model.run_ns == 0
            ? "-"
            : FormatMicroseconds(static_cast<double>(model.run_ns) / 1e3),
        line.runs_per_s > 0 ? FormatMicroseconds(line.queue_us) : "-",
        std::to_string(model.contexts)};
    if (wide) {
      cells.push_back(line.drops_per_s == 0 ? "-"
                                            : Rate(line.drops_per_s) + "/s");
    }
    cells.push_back(FormatBytes(model.weight_held));
    if (wide) cells.push_back(FormatBytes(model.internal));
    table.Add(std::move(cells));
  }
  DrawTable(table, std::vector<const char*>(shown, kNoColor),
            LeftOut(rates.models.size(), shown, "model"), screen);
}

std::string KeysText(TopOrder order) {
  constexpr std::pair<TopOrder, const char*> kKeys[] = {
      {TopOrder::kNpu, "n NPU"},
      {TopOrder::kFps, "f FPS"},
      {TopOrder::kLatency, "l latency"},
      {TopOrder::kDrops, "d drops"},
      {TopOrder::kMemory, "m memory"}};
  std::string text = "q quits; sorted by";
  for (const auto& [other, name] : kKeys) {
    text += other == order ? std::string(" [") + name + "]"
                           : std::string(" ") + name;
  }
  return text;
}

}  // namespace

std::string DrawTop(const TopSample& sample, const TopRates& rates,
                    const TopView& view, const TopOptions& options) {
  Screen screen(view);
  DrawBoard(sample, rates, view, options, screen);
  // A blank line and titles above each table, the keys below.
  const bool endless = view.height == 0;
  const size_t sessions = rates.sessions.size();
  const size_t models = rates.models.size();
  size_t room = screen.room();
  const bool keys = options.keys && room >= 6;
  if (keys) room -= 2;
  const size_t lines = room > 4 ? room - 4 : 0;
  // Both tables have what they need, or the models a third, of three at least.
  const size_t least = std::min(models, std::max<size_t>(3, lines / 3));
  const size_t for_sessions =
      endless ? sessions
              : std::min(sessions, lines > least ? lines - least : lines);
  const size_t for_models = endless ? models : lines - for_sessions;
  screen.Blank();
  if (sessions == 0) {
    screen.Line("nobody uses the NPU", kDim);
  } else {
    DrawSessions(rates, view, for_sessions, screen);
  }
  if (models > 0 && for_models > 0) {
    screen.Blank();
    DrawModels(rates, view, for_models, screen);
  }
  if (keys) {
    while (screen.room() > 1) screen.Blank();
    screen.Line(KeysText(options.order), kDim);
  }
  return screen.text();
}

}  // namespace rknnd::client
