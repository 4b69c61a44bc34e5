// See kills.h. A new daemon is started when systemd would do so; models come
// from its descriptor store and its cache, buffers from the clients.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "bench/common/measures.h"
#include "bench/service/kills.h"
#include "bench/service/stage.h"
#include "tests/torture/network_files.h"

namespace rknnd::bench {
namespace {

constexpr int kClients = 8;
// So that two CPUs are enough for all of them.
constexpr base::Nanoseconds kPeriod = 10 * base::kMillisecond;
constexpr double kAllowed = 150;  // ms
constexpr double kMostAge = 0.03;
constexpr uint64_t kAnswers = 3;
constexpr size_t kTold = 10;

// The time that our unit has systemd wait before it starts the next one.
double RestartSeconds() {
  std::ifstream unit(RKNND_SOURCE_ROOT "/systemd/rknnd.service");
  const std::string key = "RestartSec=";
  for (std::string line; std::getline(unit, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::string value = line.substr(key.size());
    const double number = std::strtod(value.c_str(), nullptr);
    return value.find("ms") != std::string::npos ? number / 1000 : number;
  }
  return 0.1;  // systemd's own
}

}  // namespace

void MeasureDaemonKills(int kills, Figures* figures) {
  Stage::Options options;
  options.cache = true;
  Stage stage(options);
  // A small one, a deep one, and one with 2 MB of weights.
  stage.AddClients(kClients,
                   {torture::WriteNetwork(stage.folder(), {1, 1000, 5}),
                    torture::WriteNetwork(stage.folder(), {2, 64, 100}),
                    torture::WriteNetwork(stage.folder(), {3, 65536, 8})},
                   kPeriod);
  stage.StartClients();
  torture::Clients& clients = stage.clients();
  const double restart_seconds = RestartSeconds();
  std::minstd_rand random(1);
  std::vector<double> gaps_ms, ready_ms;
  for (int i = 0; i < kills; ++i) {
    SleepFor(kMostAge * static_cast<double>(random() % 1000) / 1000);
    for (size_t place = 0; place < clients.size(); ++place) {
      clients.page(place).longest_gap = 0;
    }
    stage.service().Kill();
    SleepFor(restart_seconds);
    stage.service().Start();
    stage.AwaitAnswers(kAnswers);
    stage.service().AwaitReady();
    ready_ms.push_back(static_cast<double>(stage.service().time_to_ready()) *
                       1e-6);
    for (size_t place = 0; place < clients.size(); ++place) {
      gaps_ms.push_back(static_cast<double>(clients.page(place).longest_gap) *
                        1e-6);
    }
  }
  const int bad_ends = stage.EndClients();
  const std::vector<std::string> notes = stage.TakeNotes();
  const torture::Counts counts = clients.counts();
  for (size_t i = 0; i < std::min(notes.size(), kTold); ++i) {
    std::fprintf(stderr, "  %s\n", notes.at(i).c_str());
  }
  const auto begins = [&](const char* kind) {
    return std::count_if(notes.begin(), notes.end(), [&](const auto& note) {
      return note.rfind(kind, 0) == 0;
    });
  };
  const auto errors = begins("error");
  const auto wrong = counts.answered - counts.right;
  const auto lost = counts.accepted - counts.answered;
  figures->Add(
      Text("%d daemons killed under %d processes", kills, kClients),
      "0 lost, 0 wrong, 0 errors",
      Text("%llu lost, %llu wrong, %llu errors, %llu notes in %llu frames",
           static_cast<unsigned long long>(lost),
           static_cast<unsigned long long>(wrong),
           static_cast<unsigned long long>(errors),
           static_cast<unsigned long long>(counts.notes),
           static_cast<unsigned long long>(counts.answered)),
      lost == 0 && wrong == 0 && counts.notes == 0 && bad_ends == 0,
      {{"kills", kills},
       {"frames", counts.answered},
       {"lost", lost},
       {"wrong", wrong},
       {"errors", errors},
       {"notes", counts.notes},
       {"clients_that_did_not_end_well", bad_ends}});
  const double p50 = Percentile(gaps_ms, 0.5);
  const double p99 = Percentile(gaps_ms, 0.99);
  figures->Add("  gap seen by a client, three models, p50",
               Text("<= %.0f ms", kAllowed),
               Text("%.0f ms (p99 %.0f ms; of it RestartSec %.0f, start %.0f)",
                    p50, p99, restart_seconds * 1e3, Percentile(ready_ms, 0.5)),
               p50 <= kAllowed,
               {{"p50_ms", p50},
                {"p99_ms", p99},
                {"restart_ms", restart_seconds * 1e3},
                {"ready_p50_ms", Percentile(ready_ms, 0.5)}});
}

}  // namespace rknnd::bench
