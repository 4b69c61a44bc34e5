// What the two sides were measured to take, by level of CPU and threads, and
// how it is told: as lines while it is measured, as JSON, and as the tables of
// docs/peers.md.

#ifndef BENCH_PEERS_COMPARISON_H_
#define BENCH_PEERS_COMPARISON_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rknnd::bench {

// A model.
struct Row {
  std::string model;
  std::string precision;
  bool is_int8 = false;
  double our_microseconds = 0;
  double their_microseconds = 0;
  // The largest difference between the outputs, over the largest of theirs.
  double apart = 0;
  // Instead of all that, what went wrong.
  std::string error;

  [[nodiscard]] double ratio() const {
    return our_microseconds / their_microseconds;
  }
};

// Geometric means of ratios, each that no more may be than is asked.
struct Means {
  std::optional<double> floats, int8;
};

struct Table {
  std::string level;
  int threads = 1;
  std::vector<Row> rows;

  [[nodiscard]] Means means() const;
  // What is asked of them; of no other levels than two.
  [[nodiscard]] Means asked() const;
  // The row of the largest ratio.
  [[nodiscard]] const Row* worst() const;
};

struct Circumstances {
  std::string peer;
  std::string cpu;
  int rounds = 0;
  int turn_milliseconds = 0;
};

void PrintHead(const Table& table, const std::string& cpu);
void PrintRow(const Row& row);
void PrintSummary(const Table& table);

nlohmann::json ToJson(const std::vector<Table>& tables,
                      const Circumstances& circumstances);
void WriteMarkdown(const std::string& path, const std::vector<Table>& tables,
                   const Circumstances& circumstances);

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_COMPARISON_H_
