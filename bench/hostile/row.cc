// See row.h.

#include "bench/hostile/row.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "bench/common/figures.h"
#include "bench/common/measures.h"
#include "bench/hostile/attackers.h"
#include "bench/hostile/stage.h"

namespace rknnd::bench {
namespace {

// The attack and the burner by turns, so that what else the machine does meets
// both.
constexpr int kRounds = 5;
constexpr double kMostRatio = 1.2, kMostBack = 1, kPatience = 5;
constexpr double kMiB = 1 << 20;
constexpr uint64_t kMargin = uint64_t{64} << 20;
// An attack that gets so far beyond is ended before the machine is.
constexpr uint64_t kTooMuch = uint64_t{1} << 30;
constexpr double kSettle = 0.2, kLook = 0.02;

// A daemon and its good client, for one measurement: what an attack leaves in a
// daemon is no other measurement's.
struct Arena {
  Stage stage;
  Neighbour neighbour;

  explicit Arena(const Attack& attack)
      : stage(attack.by_grpc), neighbour(stage.scene().target()) {
    SleepFor(kSettle);
  }
};

void Miss(Row* row, const std::string& what) {
  if (row->misses.find(what) != std::string::npos) return;
  row->misses += (row->misses.empty() ? "" : "; ") + what;
}

// Returns how much of a CPU the daemon takes for the neighbour alone.
double MeasureQuiet(const Attack& attack, double seconds, Row* row) {
  Arena arena(attack);
  const double cpu = CpuSecondsOf(arena.stage.pid());
  arena.neighbour.Begin();
  SleepFor(seconds);
  row->quiet = arena.neighbour.End();
  return (CpuSecondsOf(arena.stage.pid()) - cpu) / seconds;
}

void JudgeRecovery(Arena& arena, const Look& before, double killed, Row* row) {
  if (arena.neighbour.AwaitAnswer(kPatience) < 0) {
    Miss(row, "the neighbour has no answer after it");
    return;
  }
  row->next_ms = std::max(row->next_ms, (SecondsNow() - killed) * 1e3);
  const Recovery recovery = arena.stage.AwaitAsBefore(before, kPatience);
  if (recovery.seconds < 0) {
    Miss(row, "not as before: " + recovery.rest);
    return;
  }
  const double back = SecondsNow() - killed;
  row->back_ms = std::max(row->back_ms, back * 1e3);
  if (back > kMostBack) Miss(row, "late as before: " + recovery.rest);
}

// Returns how many CPUs it took, in the attackers and in the daemon together.
double MeasureBeside(const Attack& attack, double seconds, double daemons_own,
                     Row* row) {
  Arena arena(attack);
  const Look before = arena.stage.Settled();
  const uint64_t most = before.use.rss + Stage::Allowed(attack.holds) + kMargin;
  row->allowed_mib = static_cast<double>(most) / kMiB;
  arena.stage.ForgetPeak();
  arena.neighbour.Begin();
  Attackers attackers(attack, arena.stage.scene());
  row->announced = attackers.announced();
  arena.neighbour.BeginTimes();
  const double start = SecondsNow();
  const double own = attackers.cpu_seconds();
  const double daemons = CpuSecondsOf(arena.stage.pid());
  bool too_much = false;
  while (!too_much && SecondsNow() - start < seconds) {
    SleepFor(kLook);
    too_much = arena.stage.resident() > most + kTooMuch;
  }
  const double took = SecondsNow() - start;
  const double own_cpu = (attackers.cpu_seconds() - own) / took;
  const double daemons_cpu = std::max(
      0.0, (CpuSecondsOf(arena.stage.pid()) - daemons) / took - daemons_own);
  const std::string ended = attackers.EndedBy();
  row->attacked.Add(arena.neighbour.End());
  attackers.Kill();
  const double killed = SecondsNow();
  const double peak = static_cast<double>(arena.stage.peak()) / kMiB;
  row->peak_mib = std::max(row->peak_mib, peak);
  row->attackers_cpu = std::max(row->attackers_cpu, own_cpu);
  row->daemons_cpu = std::max(row->daemons_cpu, daemons_cpu);
  if (!ended.empty()) Miss(row, ended);
  if (too_much) {
    Miss(row, Text("ended after %.1f s: too much memory", took));
  }
  JudgeRecovery(arena, before, killed, row);
  return own_cpu + daemons_cpu;
}

void MeasureBurnt(const Attack& attack, double seconds, double cpus, Row* row) {
  Arena arena(attack);
  const Attackers burner(cpus);
  SleepFor(kSettle);
  arena.neighbour.Begin();
  SleepFor(seconds);
  row->burnt.Add(arena.neighbour.End());
}

void Judge(Row* row) {
  if (row->ratio() > kMostRatio) Miss(row, Text("p99 %.1f x", row->ratio()));
  const Serving& attacked = row->attacked.all();
  if (attacked.errors > 0) {
    Miss(row, Text("%d errors: ", attacked.errors) + attacked.reason);
  }
  if (attacked.wrong > 0) Miss(row, Text("%d wrong answers", attacked.wrong));
  if (row->peak_mib > row->allowed_mib) Miss(row, "too much memory");
  if (row->next_ms > kMostBack * 1e3) Miss(row, "next frame late");
}

nlohmann::json ToJson(const Serving& serving) {
  return {{"p50_ms", serving.p50_ms}, {"p99_ms", serving.p99_ms},
          {"gap_ms", serving.gap_ms}, {"runs", serving.runs},
          {"errors", serving.errors}, {"wrong", serving.wrong},
          {"reason", serving.reason}};
}

nlohmann::json ToJson(const Rounds& rounds) {
  nlohmann::json json = ToJson(rounds.all());
  json["p99s_ms"] = rounds.p99s_ms();
  return json;
}

std::string Verdict(const Row& row) {
  if (row.for_contrast) return "(for contrast)";
  return row.holds() ? "yes" : "NO: " + row.misses;
}

constexpr char kFormat[] =
    "%-14s %-5s %13s %13s %13s %6s %8s %7s %13s %11s %7s  %s\n";

}  // namespace

void Rounds::Add(const Serving& serving) {
  p50s_.push_back(serving.p50_ms);
  p99s_.push_back(serving.p99_ms);
  all_.p50_ms = Percentile(p50s_, 0.5);
  all_.p99_ms = Percentile(p99s_, 0.5);
  all_.gap_ms = std::max(all_.gap_ms, serving.gap_ms);
  all_.runs += serving.runs;
  all_.errors += serving.errors;
  all_.wrong += serving.wrong;
  if (all_.reason.empty()) all_.reason = serving.reason;
}

Row MeasureAttack(const Attack& attack, const std::string& cpus,
                  double seconds) {
  Row row;
  row.name = attack.name;
  row.cpus = cpus;
  row.for_contrast = attack.for_contrast;
  // A daemon that is gone or silent is a figure, too.
  try {
    const double daemons_own = MeasureQuiet(attack, seconds, &row);
    for (int round = 0; round < kRounds; ++round) {
      const double taken = MeasureBeside(attack, seconds, daemons_own, &row);
      MeasureBurnt(attack, seconds, taken, &row);
    }
    Judge(&row);
  } catch (const std::runtime_error& error) {
    Miss(&row, error.what());
  }
  return row;
}

void Table::PrintHead() {
  std::printf(
      "The neighbour's run in ms, p50/p99: with nothing beside it, beside a "
      "burner of the attack's\nCPU time, and beside the attack, whose p99 is "
      "to be at most %.1f x. The daemon is to be as before\nwithin %.0f "
      "ms.\n\n",
      kMostRatio, kMostBack * 1e3);
  std::printf(kFormat, "attack", "CPUs", "quiet", "burner", "attack", "x",
              "gap, ms", "errors", "RSS/most MiB", "CPU: +d", "back ms",
              "holds");
}

void Table::Add(const Row& row) {
  const auto times = [](const Serving& serving) {
    return Text("%.2f/%.2f", serving.p50_ms, serving.p99_ms);
  };
  const double back = row.back_ms < 0 || row.next_ms < 0
                          ? -1
                          : std::max(row.back_ms, row.next_ms);
  std::printf(
      kFormat, row.name.c_str(), row.cpus.c_str(), times(row.quiet).c_str(),
      times(row.burnt.all()).c_str(), times(row.attacked.all()).c_str(),
      Text("%.2f", row.ratio()).c_str(),
      Text("%.0f", row.attacked.all().gap_ms).c_str(),
      Text("%d/%d", row.attacked.all().errors, row.attacked.all().wrong)
          .c_str(),
      Text("%.0f/%.0f", row.peak_mib, row.allowed_mib).c_str(),
      Text("%.2f+%.2f", row.attackers_cpu, row.daemons_cpu).c_str(),
      back < 0 ? "-" : Text("%.0f", back).c_str(), Verdict(row).c_str());
  std::fflush(stdout);
  all_hold_ = all_hold_ && (row.holds() || row.for_contrast);
  rows_.push_back({{"attack", row.name},
                   {"cpus", row.cpus},
                   {"announced", row.announced},
                   {"quiet", ToJson(row.quiet)},
                   {"burner", ToJson(row.burnt)},
                   {"attacked", ToJson(row.attacked)},
                   {"p99_ratio", row.ratio()},
                   {"attackers_cpus", row.attackers_cpu},
                   {"daemons_cpus", row.daemons_cpu},
                   {"peak_mib", row.peak_mib},
                   {"allowed_mib", row.allowed_mib},
                   {"as_before_ms", row.back_ms},
                   {"next_frame_ms", row.next_ms},
                   {"holds", row.holds()},
                   {"misses", row.misses}});
}

}  // namespace rknnd::bench
