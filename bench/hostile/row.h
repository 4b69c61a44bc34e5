// One attack, measured: the neighbour and the daemon beside it, beside nothing,
// and beside processes that burn as much of the CPUs and leave the daemon
// alone.

#ifndef BENCH_HOSTILE_ROW_H_
#define BENCH_HOSTILE_ROW_H_

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/common/cpu_use.h"
#include "bench/hostile/attack.h"
#include "bench/hostile/neighbour.h"

namespace rknnd::bench {

// Of all rounds: the median of their times, so that what else the machine does
// in one of them decides nothing, and all of their trouble.
class Rounds {
 public:
  void Add(const Serving& serving);
  [[nodiscard]] const Serving& all() const { return all_; }
  [[nodiscard]] const std::vector<double>& p99s_ms() const { return p99s_; }

 private:
  Serving all_;
  std::vector<double> p50s_, p99s_;
};

struct Row {
  std::string name, cpus, announced;
  Rounds quiet;  // nothing beside it
  Rounds burnt, attacked;
  // In a second, for the attack; the most of the rounds.
  CpuUse attackers, daemons;
  double peak_mib = 0, allowed_mib = 0;
  double back_ms = -1, next_ms = -1;  // the longest; -1: not at all
  std::string misses;                 // "" where all of it holds
  bool for_contrast = false;          // nothing of the daemon's is measured

  [[nodiscard]] bool holds() const { return misses.empty(); }
  // What the p99 may be while nobody attacks.
  [[nodiscard]] double undisturbed_ms() const {
    return std::max(quiet.all().p99_ms, burnt.all().p99_ms);
  }
  // The p99 beside the attack, of that; 0: there is none.
  [[nodiscard]] double ratio() const {
    const double undisturbed = undisturbed_ms();
    return undisturbed > 0 ? attacked.all().p99_ms / undisturbed : 0;
  }
};

// In rounds of so many seconds each, on the CPUs that this process has.
Row MeasureAttack(const Attack& attack, const std::string& cpus,
                  double seconds);

// Thread: one.
class Table {
 public:
  static void PrintHead();
  void Add(const Row& row);
  [[nodiscard]] const nlohmann::json& rows() const { return rows_; }
  [[nodiscard]] bool all_hold() const { return all_hold_; }

 private:
  nlohmann::json rows_ = nlohmann::json::array();
  bool all_hold_ = true;
};

}  // namespace rknnd::bench

#endif  // BENCH_HOSTILE_ROW_H_
