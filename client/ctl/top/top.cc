#include "client/ctl/top/top.h"

#include <cmath>

#include "client/ctl/text/text.h"
#include "client/ctl/top/top_draw.h"

namespace rknnd::client {
namespace {

// Enough digits for a reader of numbers, few enough for a reader of text.
double Rounded(double value) { return std::round(value * 1000) / 1000; }

Json LatencyJson(const TopLatency& latency) {
  return {{"p50", Rounded(latency.p50_us)}, {"p99", Rounded(latency.p99_us)}};
}

Json CoreJson(size_t number, const CoreRates& core) {
  return {{"core", number},
          {"load", Rounded(core.load)},
          {"jobs_per_s", Rounded(core.jobs_per_s)},
          {"model", core.report->model},
          {"session", core.report->session},
          {"lent_to", core.report->lent_to}};
}

Json SessionJson(const SessionRates& line) {
  const wire::SessionReport& session = *line.report;
  return {{"id", session.id},
          {"pid", session.pid},
          {"comm", session.comm},
          {"contexts", session.contexts},
          {"runs_per_s", Rounded(line.runs_per_s)},
          {"load", Rounded(line.load)},
          {"queued", line.queued},
          {"queue_us", Rounded(line.queue_us)},
          {"run_us", Rounded(line.run_us)},
          {"latency_us", LatencyJson(line.latency)},
          {"drops_per_s", Rounded(line.drops_per_s)},
          {"copied_per_s", Rounded(line.copied_per_s)},
          {"memory", session.memory}};
}

Json ModelJson(const ModelRates& line) {
  const wire::ModelReport& model = *line.report;
  return {{"sha256", HexOf(model.sha256)},
          {"name", model.name},
          {"contexts", model.contexts},
          {"runs_per_s", Rounded(line.runs_per_s)},
          {"load", Rounded(line.load)},
          {"queue_us", Rounded(line.queue_us)},
          {"run_us", Rounded(static_cast<double>(model.run_ns) / 1e3)},
          {"drops_per_s", Rounded(line.drops_per_s)},
          {"weight_held", model.weight_held}};
}

Json ToJson(const wire::Report& board, const TopRates& rates) {
  Json json = {
      {"uptime_s", board.uptime_s},
      {"interval_s", Rounded(rates.seconds)},
      {"cores", Json::array()},
      {"jobs",
       {{"queued", board.jobs_queued},
        {"running", board.jobs_running},
        {"done", board.jobs_done},
        {"failed", board.jobs_failed},
        {"dropped", board.jobs_dropped},
        {"done_per_s", Rounded(rates.done_per_s)},
        {"failed_per_s", Rounded(rates.failed_per_s)},
        {"dropped_per_s", Rounded(rates.dropped_per_s)}}},
      {"latency_us",
       {{"queue", Rounded(rates.queue_us)},
        {"run", Rounded(rates.run_us)},
        {"p50", Rounded(rates.latency.p50_us)},
        {"p99", Rounded(rates.latency.p99_us)}}},
      {"memory", KindsJson(board.memory)},
      {"sram", {{"total", board.sram_total}, {"free", board.sram_free}}},
      {"sessions", Json::array()},
      {"models", Json::array()},
      {"foreign_users", ForeignUsersJson(board)}};
  json["memory"]["total"] = Total(board.memory);
  json["memory"]["unshared_total"] = board.unshared_total;
  for (size_t i = 0; i < rates.cores.size(); ++i) {
    json["cores"].push_back(CoreJson(i, rates.cores[i]));
  }
  for (const SessionRates& line : rates.sessions) {
    json["sessions"].push_back(SessionJson(line));
  }
  for (const ModelRates& line : rates.models) {
    json["models"].push_back(ModelJson(line));
  }
  return json;
}

}  // namespace

Output TopOutput(const TopSample& before, const TopSample& now,
                 uint64_t own_session, const TopView& view,
                 const TopOptions& options) {
  const TopRates rates = CompareLooks(before, now, own_session, options.order);
  Output output;
  output.json = ToJson(now.board, rates);
  if (!now.npu.empty()) output.json["npu"] = now.npu;
  output.text = DrawTop(now, rates, view, options);
  return output;
}

std::string NoticeText(const std::string& notice, const TopView& view) {
  Screen screen(view);
  screen.Line(Printable(notice));
  screen.Blank();
  screen.Line("waiting for it; q ends");
  return screen.text();
}

bool OrderOfKey(char key, TopOrder* order) {
  switch (key) {
    case 'n':
      *order = TopOrder::kNpu;
      return true;
    case 'f':
      *order = TopOrder::kFps;
      return true;
    case 'l':
      *order = TopOrder::kLatency;
      return true;
    case 'd':
      *order = TopOrder::kDrops;
      return true;
    case 'm':
      *order = TopOrder::kMemory;
      return true;
    default:
      return false;
  }
}

}  // namespace rknnd::client
