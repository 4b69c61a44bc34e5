// One attack, measured: the neighbour and the daemon beside it, and beside
// processes that burn as much of the CPUs and leave the daemon alone.

#ifndef BENCH_HOSTILE_ROW_H_
#define BENCH_HOSTILE_ROW_H_

#include <nlohmann/json.hpp>
#include <string>

#include "bench/hostile/attack.h"
#include "bench/hostile/neighbour.h"

namespace rknnd::bench {

struct Row {
  std::string name, cpus, announced;
  Serving quiet;            // nothing beside it
  Serving burnt, attacked;  // the best of the rounds; errors of all of them
  double attackers_cpu = 0, daemons_cpu = 0;  // CPUs, for the attack
  double peak_mib = 0, allowed_mib = 0;
  double back_ms = -1, next_ms = -1;  // the longest; -1: not at all
  std::string misses;                 // "" where all of it holds
  bool for_contrast = false;          // nothing of the daemon's is measured

  [[nodiscard]] bool holds() const { return misses.empty(); }
};

// Two rounds of so many seconds each, on the CPUs that this process has.
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
