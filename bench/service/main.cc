// What the service keeps when its clients and itself are killed, and what it
// costs when nothing happens, beside what was asked of it.
//
//   rknnd-bench-service [--out FILE] [--kills N] [--daemon-kills N]
//                       [--idle-seconds N] [--only WORD]
//
// Ends with 1 where a figure does not hold.

#include <CLI/CLI.hpp>
#include <string>

#include "bench/common/failure.h"
#include "bench/common/figures.h"
#include "bench/service/kills.h"
#include "bench/service/rest.h"

namespace rknnd::bench {
namespace {

constexpr int kStarts = 20;

int Main(int argc, char** argv) {
  CLI::App app("What the service keeps");
  std::string out, only;
  int kills = 10'000, daemon_kills = 1000;
  double idle_seconds = 20;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--kills", kills, "of clients (10000)")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--daemon-kills", daemon_kills, "of daemons (1000)")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--idle-seconds", idle_seconds, "of the idle row (20)")
      ->check(CLI::Range(2.0, 3600.0));
  app.add_option("--only", only,
                 "one of package, start, idle, clients, daemons")
      ->check(
          CLI::IsMember({"package", "start", "idle", "clients", "daemons"}));
  CLI11_PARSE(app, argc, argv);
  Figures figures;
  Figures::PrintHead();
  const auto wanted = [&](const char* row) {
    return only.empty() || only == row;
  };
  if (wanted("package")) MeasurePackage(&figures);
  if (wanted("start")) MeasureStart(kStarts, &figures);
  if (wanted("idle")) MeasureIdle(idle_seconds, &figures);
  if (wanted("clients")) MeasureClientKills(kills, &figures);
  if (wanted("daemons")) MeasureDaemonKills(daemon_kills, &figures);
  if (!out.empty()) WriteFigures(out, {{"rows", figures.rows()}});
  return figures.all_hold() ? 0 : 1;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("service",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
