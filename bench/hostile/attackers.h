// The processes of an attack, and those that only burn as much of the CPUs and
// sleep as often.
// Where the benchmark is root they are another user's than the neighbour.

#ifndef BENCH_HOSTILE_ATTACKERS_H_
#define BENCH_HOSTILE_ATTACKERS_H_

#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "bench/common/cpu_use.h"
#include "bench/hostile/attack.h"

namespace rknnd::bench {

// What such a process does; its exit code.
int RunAttack(const std::string& name, const Scene& scene);
// Takes in a second what others took.
int RunBurner(const CpuUse& attackers, const CpuUse& daemons);

// Thread: one. Throws std::runtime_error. Killed with the object.
class Attackers {
 public:
  Attackers(const Attack& attack, const Scene& scene);
  // Burners in their place, and in the daemon's.
  Attackers(const CpuUse& attackers, const CpuUse& daemons);
  Attackers(const Attackers&) = delete;
  Attackers& operator=(const Attackers&) = delete;
  ~Attackers() { Kill(); }

  // SIGKILL for all of them; they are gone when this returns.
  void Kill();
  // How they ended by themselves, and their last word; "" where they have not.
  std::string EndedBy();
  // All of them together, since their start.
  [[nodiscard]] CpuUse use() const { return UseOfGroup(process_.pid()); }
  // What the attack got, as it says.
  [[nodiscard]] const std::string& announced() const { return announced_; }

 private:
  void Start(std::vector<std::string> arguments, const std::string& target);

  base::TemporaryFolder folder_;
  base::ChildProcess process_;
  std::string announced_;
};

}  // namespace rknnd::bench

#endif  // BENCH_HOSTILE_ATTACKERS_H_
