// The processes of an attack, and those that only burn as much of the CPUs.
// Where the benchmark is root they are another user's than the neighbour.

#ifndef BENCH_HOSTILE_ATTACKERS_H_
#define BENCH_HOSTILE_ATTACKERS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "bench/hostile/attack.h"

namespace rknnd::bench {

// What such a process does; its exit code.
int RunAttack(const std::string& name, const Scene& scene);
int RunBurner(double cpus);

// Thread: one. Throws std::runtime_error. Killed with the object.
class Attackers {
 public:
  Attackers(const Attack& attack, const Scene& scene);
  explicit Attackers(double burnt_cpus);
  Attackers(const Attackers&) = delete;
  Attackers& operator=(const Attackers&) = delete;
  ~Attackers() { Kill(); }

  // SIGKILL for all of them; they are gone when this returns.
  void Kill();
  // How they ended by themselves, and their last word; "" where they have not.
  std::string EndedBy();
  // Of CPUs, all of them together, since their start.
  [[nodiscard]] double cpu_seconds() const;
  // What the attack got, as it says.
  [[nodiscard]] const std::string& announced() const { return announced_; }

 private:
  void Start(std::vector<std::string> arguments, const std::string& target);

  base::TemporaryFolder folder_;
  base::ChildProcess process_;
  std::string announced_;
};

// What one process has used of CPUs since its start.
double CpuSecondsOf(pid_t pid);

}  // namespace rknnd::bench

#endif  // BENCH_HOSTILE_ATTACKERS_H_
