// The well-behaved program that is measured: a process of its own with the C
// API, which runs a small network each ten milliseconds and compares each
// answer with the right one.

#ifndef BENCH_HOSTILE_NEIGHBOUR_H_
#define BENCH_HOSTILE_NEIGHBOUR_H_

#include <sys/types.h>

#include <string>

#include "base/posix/child_process.h"

namespace rknnd::bench {

// Of a while. A run that has not ended counts as one that took until now.
struct Serving {
  double p50_ms = 0, p99_ms = 0;
  double gap_ms = 0;  // the longest without an answer
  int runs = 0, errors = 0, wrong = 0;
  std::string reason;  // of the first error
};

// What the process does, until its input ends; its exit code.
int RunNeighbour();

// Thread: one. Throws std::runtime_error.
class Neighbour {
 public:
  explicit Neighbour(const std::string& target);

  // Forgets all that was, or only the times of runs.
  void Begin();
  void BeginTimes();
  Serving End();
  // Until its next answer, so many seconds at most; how many they were, or -1.
  double AwaitAnswer(double seconds);
  [[nodiscard]] pid_t pid() const { return process_.pid(); }

 private:
  std::string Ask(const std::string& what, double patience);

  base::ChildProcess process_;
};

}  // namespace rknnd::bench

#endif  // BENCH_HOSTILE_NEIGHBOUR_H_
