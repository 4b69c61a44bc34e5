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

// The attack and what it is compared with by turns, so that what else the
// machine does meets all of them.
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

CpuUse Largest(const CpuUse& a, const CpuUse& b) {
  return {std::max(a.cpu, b.cpu), std::max(a.sleeps, b.sleeps)};
}

// Returns what the daemon takes in a second for the neighbour alone.
CpuUse MeasureQuiet(const Attack& attack, double seconds, Row* row) {
  Arena arena(attack);
  const CpuUse before = UseOf(arena.stage.pid());
  arena.neighbour.Begin();
  SleepFor(seconds);
  row->quiet.Add(arena.neighbour.End());
  return (UseOf(arena.stage.pid()) - before) / seconds;
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

// What it took in a second.
struct Taken {
  CpuUse attackers, daemons;
};

Taken MeasureBeside(const Attack& attack, double seconds,
                    const CpuUse& daemons_own, Row* row) {
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
  const CpuUse own_before = attackers.use();
  const CpuUse daemons_before = UseOf(arena.stage.pid());
  bool too_much = false;
  while (!too_much && SecondsNow() - start < seconds) {
    SleepFor(kLook);
    too_much = arena.stage.resident() > most + kTooMuch;
  }
  const double took = SecondsNow() - start;
  const Taken taken = {
      (attackers.use() - own_before) / took,
      (UseOf(arena.stage.pid()) - daemons_before) / took - daemons_own};
  const std::string ended = attackers.EndedBy();
  row->attacked.Add(arena.neighbour.End());
  attackers.Kill();
  const double killed = SecondsNow();
  const double peak = static_cast<double>(arena.stage.peak()) / kMiB;
  row->peak_mib = std::max(row->peak_mib, peak);
  row->attackers = Largest(row->attackers, taken.attackers);
  row->daemons = Largest(row->daemons, taken.daemons);
  if (!ended.empty()) Miss(row, ended);
  if (too_much) {
    Miss(row, Text("ended after %.1f s: too much memory", took));
  }
  JudgeRecovery(arena, before, killed, row);
  return taken;
}

void MeasureBurnt(const Attack& attack, double seconds, const Taken& taken,
                  Row* row) {
  Arena arena(attack);
  const Attackers burner(taken.attackers, taken.daemons);
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
    for (int round = 0; round < kRounds; ++round) {
      const CpuUse daemons_own = MeasureQuiet(attack, seconds, &row);
      const Taken taken = MeasureBeside(attack, seconds, daemons_own, &row);
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
      "burner of the attack's\nCPU time that sleeps as often, and beside the "
      "attack, whose p99 is to be at most %.1f x the larger\nof these. The "
      "daemon is to be as before within %.0f ms.\n\n",
      kMostRatio, kMostBack * 1e3);
  std::printf(kFormat, "attack", "CPUs", "quiet", "burner", "attack", "x",
              "gap, ms", "errors", "RSS/most MiB", "CPU: +d", "back ms",
              "holds");
}

void Table::Add(const Row& row) {
  const auto times = [](const Rounds& rounds) {
    return Text("%.2f/%.2f", rounds.all().p50_ms, rounds.all().p99_ms);
  };
  const double back = row.back_ms < 0 || row.next_ms < 0
                          ? -1
                          : std::max(row.back_ms, row.next_ms);
  std::printf(kFormat, row.name.c_str(), row.cpus.c_str(),
              times(row.quiet).c_str(), times(row.burnt).c_str(),
              times(row.attacked).c_str(), Text("%.2f", row.ratio()).c_str(),
              Text("%.0f", row.attacked.all().gap_ms).c_str(),
              Text("%d/%d", row.attacked.all().errors, row.attacked.all().wrong)
                  .c_str(),
              Text("%.0f/%.0f", row.peak_mib, row.allowed_mib).c_str(),
              Text("%.2f+%.2f", row.attackers.cpu, row.daemons.cpu).c_str(),
              back < 0 ? "-" : Text("%.0f", back).c_str(),
              Verdict(row).c_str());
  std::fflush(stdout);
  all_hold_ = all_hold_ && (row.holds() || row.for_contrast);
  rows_.push_back({{"attack", row.name},
                   {"cpus", row.cpus},
                   {"announced", row.announced},
                   {"quiet", ToJson(row.quiet)},
                   {"burner", ToJson(row.burnt)},
                   {"attacked", ToJson(row.attacked)},
                   {"p99_ratio", row.ratio()},
                   {"attackers_cpus", row.attackers.cpu},
                   {"attackers_sleeps", row.attackers.sleeps},
                   {"daemons_cpus", row.daemons.cpu},
                   {"daemons_sleeps", row.daemons.sleeps},
                   {"peak_mib", row.peak_mib},
                   {"allowed_mib", row.allowed_mib},
                   {"as_before_ms", row.back_ms},
                   {"next_frame_ms", row.next_ms},
                   {"holds", row.holds()},
                   {"misses", row.misses}});
}

}  // namespace rknnd::bench
