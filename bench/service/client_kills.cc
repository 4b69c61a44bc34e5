// See kills.h. Killed at random moments, while the job of a killed client may
// be on a core: the daemon cannot take that job's memory before its end.

#include <csignal>
#include <random>
#include <stdexcept>

#include "bench/common/measures.h"
#include "bench/service/kills.h"
#include "bench/service/stage.h"
#include "client/ctl/control_connection.h"
#include "tests/torture/network_files.h"

namespace rknnd::bench {
namespace {

// 8 us each by an RK3588: jobs of 10 ms, which a CPU has no work with.
constexpr uint32_t kLayers = 1250;
constexpr int kClients = 8;
constexpr double kPatience = 60, kLook = 0.0002, kMostAge = 0.02;
constexpr double kAllowed = 10;  // ms beside one job
// By then each of the daemon's threads has had to allocate, and has its heap.
constexpr int kWarmUpKills = 1000;

// The daemon as an operator sees it, over one connection.
class Look {
 public:
  explicit Look(const std::string& target) {
    auto line = client::ControlConnection::Open(target);
    if (!line) throw std::runtime_error(line.error().message);
    line_.emplace(*std::move(line));
  }

  // 0: it has none.
  uint64_t SessionOf(pid_t pid) {
    for (const auto& session :
         Ask(rknnd_v1_ReportKind_REPORT_SESSIONS).sessions) {
      if (session.pid == pid) return session.id;
    }
    return 0;
  }
  bool HasContextOf(uint64_t session) {
    for (const auto& context :
         Ask(rknnd_v1_ReportKind_REPORT_CONTEXTS).contexts) {
      if (context.session == session) return true;
    }
    return false;
  }
  double RunMilliseconds() {
    const auto models = Ask(rknnd_v1_ReportKind_REPORT_MODELS).models;
    if (models.empty()) throw std::runtime_error("the daemon has no model");
    return static_cast<double>(models.at(0).run_ns) * 1e-6;
  }

 private:
  wire::Report Ask(rknnd_v1_ReportKind kind) {
    auto report = line_->Ask(kind);
    if (!report) throw std::runtime_error(report.error().message);
    return *std::move(report);
  }

  std::optional<client::ControlConnection> line_;
};

// Kills one that runs and starts another in its place. Milliseconds until
// nothing of it was left.
double KillOne(Stage& stage, Look& look, std::minstd_rand& random) {
  torture::Clients& clients = stage.clients();
  const double deadline = SecondsNow() + kPatience;
  size_t place = random() % clients.size();
  while (clients.page(place).ready == 0) {
    place = (place + 1) % clients.size();
    if (SecondsNow() > deadline) throw std::runtime_error("no client runs");
    SleepFor(kLook);
  }
  SleepFor(kMostAge * static_cast<double>(random() % 1000) / 1000);
  const pid_t pid = clients.pid(place);
  const uint64_t session = look.SessionOf(pid);
  if (session == 0) throw std::runtime_error("a client has no session");
  const double start = SecondsNow();
  clients.Signal(place, SIGKILL);
  while (look.SessionOf(pid) != 0 || look.HasContextOf(session)) {
    if (SecondsNow() > deadline) {
      throw std::runtime_error("a client that died is not let go");
    }
    SleepFor(kLook);
  }
  const double ms = (SecondsNow() - start) * 1e3;
  clients.Kill(place);
  clients.Start(place);
  return ms;
}

// All clients gone, and what the daemon has then.
torture::ProcessUse UseWithoutClients(Stage& stage) {
  for (size_t i = 0; i < stage.clients().size(); ++i) stage.clients().Kill(i);
  stage.AwaitNothingHeld();
  return torture::SettledUseOf(stage.service().pid());
}

}  // namespace

void MeasureClientKills(int kills, Figures* figures) {
  Stage::Options options;
  options.paced = true;
  options.config = "grace = 0\n";  // a model goes with its last context
  Stage stage(options);
  stage.AddClients(
      kClients, {torture::WriteNetwork(stage.folder(), {1, 16, kLayers})}, 0);
  std::minstd_rand random(1);
  // The same on a small scale first: heaps and stacks are as large as they get.
  stage.StartClients();
  {
    Look look(stage.service().target());
    for (int i = 0; i < kWarmUpKills; ++i) KillOne(stage, look, random);
  }
  const torture::ProcessUse before = UseWithoutClients(stage);

  stage.StartClients();
  std::vector<double> release_ms;
  double job_ms = 0;
  {
    Look look(stage.service().target());
    job_ms = look.RunMilliseconds();
    for (int i = 0; i < kills; ++i) {
      release_ms.push_back(KillOne(stage, look, random));
    }
  }
  const torture::ProcessUse after = UseWithoutClients(stage);
  const auto held = torture::HoldingsOf(stage.service().target());
  if (!held) throw std::runtime_error(held.error().message);

  const auto number = [](uint64_t value) {
    return static_cast<unsigned long long>(value);
  };
  const bool same = held->nothing() && after.fds <= before.fds &&
                    after.mappings <= before.mappings &&
                    after.threads <= before.threads;
  figures->Add(Text("%d clients killed: left in the daemon", kills),
               "no byte, fd, mapping, thread",
               Text("%llu bytes, %+lld fds, %+lld mappings, %+lld threads",
                    number(held->bytes()),
                    static_cast<long long>(after.fds - before.fds),
                    static_cast<long long>(after.mappings - before.mappings),
                    static_cast<long long>(after.threads - before.threads)),
               same,
               {{"kills", kills},
                {"bytes", held->bytes()},
                {"fds", {before.fds, after.fds}},
                {"mappings", {before.mappings, after.mappings}},
                {"threads", {before.threads, after.threads}},
                {"rss", {before.rss, after.rss}}});
  const double p50 = Percentile(release_ms, 0.5);
  const double p99 = Percentile(release_ms, 0.99);
  figures->Add("  from death to release, p99",
               Text("<= a job of %.1f ms + %.0f ms", job_ms, kAllowed),
               Text("%.1f ms (p50 %.1f ms)", p99, p50),
               p99 <= job_ms + kAllowed,
               {{"p50_ms", p50}, {"p99_ms", p99}, {"job_ms", job_ms}});
}

}  // namespace rknnd::bench
