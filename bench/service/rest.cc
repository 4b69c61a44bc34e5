// See rest.h. The kernel's count of context switches is the witness of what
// wakes: a thread that is woken has at least one.

#include "bench/service/rest.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "base/posix/child_process.h"
#include "bench/common/measures.h"
#include "bench/service/stage.h"

namespace rknnd::bench {
namespace {

constexpr double kStartAllowed = 100;  // ms
constexpr double kRssAllowed = 20e6;
constexpr double kPackageAllowed = 2e6;
// A ping each half of it, and one of them at least is seen.
constexpr base::Nanoseconds kWatchdog = 2 * base::kSecond;
constexpr double kHear = 1;  // seconds
constexpr double kSettle = 3;

// Its installed bytes; 0: there is none.
double InstalledBytes(const std::string& package) {
  base::ChildProcess::Options options;
  options.arguments = {"/usr/bin/dpkg-deb", "-f", package, "Installed-Size"};
  auto dpkg = base::ChildProcess::Start(options);
  if (!dpkg) return 0;
  auto kib = dpkg->ReadLine(60 * base::kSecond);
  return kib ? std::strtod(kib->c_str(), nullptr) * 1024 : 0;
}

std::string FindPackage() {
  std::error_code error;
  const std::filesystem::directory_iterator files(
      RKNND_SOURCE_ROOT "/build/packages", error);
  for (const auto& file : files) {
    const std::string name = file.path().filename().string();
    if (name.rfind("librknnd1_", 0) == 0 && file.path().extension() == ".deb") {
      return file.path().string();
    }
  }
  return "";
}

}  // namespace

void MeasureStart(int starts, Figures* figures) {
  Stage stage({});
  std::vector<double> ready_ms;
  for (int i = 0; i < starts; ++i) {
    stage.service().Kill();
    stage.service().Start();
    stage.service().AwaitReady();
    ready_ms.push_back(static_cast<double>(stage.service().time_to_ready()) *
                       1e-6);
  }
  const double median = Percentile(ready_ms, 0.5);
  figures->Add(
      Text("start to READY, median of %d", starts),
      Text("<= %.0f ms", kStartAllowed),
      Text("%.1f ms (at most %.1f ms)", median, Percentile(ready_ms, 1)),
      median <= kStartAllowed,
      {{"median_ms", median}, {"max_ms", Percentile(ready_ms, 1)}});
}

void MeasureIdle(double seconds, Figures* figures) {
  Stage::Options options;
  options.watchdog = kWatchdog;
  Stage stage(options);
  SleepFor(kSettle);
  stage.service().Hear();
  const uint64_t pings = stage.service().watchdog_pings();
  const torture::ProcessUse before = torture::UseOf(stage.service().pid());
  // A socket holds few pings that nobody has heard.
  for (const double end = SecondsNow() + seconds; SecondsNow() < end;) {
    SleepFor(std::min(kHear, std::max(0.0, end - SecondsNow())));
    stage.service().Hear();
  }
  const torture::ProcessUse after = torture::UseOf(stage.service().pid());
  stage.service().Hear();
  const uint64_t heard = stage.service().watchdog_pings() - pings;
  const uint64_t wakes = after.switches - before.switches;
  figures->Add("idle, no models: resident",
               Text("<= %.0f MB", kRssAllowed / 1e6),
               Text("%.1f MB", static_cast<double>(after.rss) / 1e6),
               static_cast<double>(after.rss) <= kRssAllowed,
               {{"rss", after.rss}, {"threads", after.threads}});
  figures->Add(
      Text("idle: wake-ups in %.0f s", seconds), "one for each watchdog ping",
      Text("%llu for %llu pings", static_cast<unsigned long long>(wakes),
           static_cast<unsigned long long>(heard)),
      // A ping may fall between the two looks.
      heard > 0 && wakes <= heard + 1,
      {{"wake_ups", wakes}, {"pings", heard}, {"seconds", seconds}});
}

void MeasurePackage(Figures* figures) {
  const std::string package = FindPackage();
  if (package.empty()) {
    figures->AddBeside("installed size of librknnd1",
                       "no package: ./dev package makes it", {});
    return;
  }
  const double bytes = InstalledBytes(package);
  if (bytes == 0) throw std::runtime_error("cannot read '" + package + "'");
  figures->Add("installed size of librknnd1",
               Text("<= %.0f MB", kPackageAllowed / 1e6),
               Text("%.2f MB", bytes / 1e6), bytes <= kPackageAllowed,
               {{"bytes", bytes}});
}

}  // namespace rknnd::bench
