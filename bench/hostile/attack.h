// An attack: what a child process of the benchmark does to the daemon until it
// is killed. Each family of them is one file.

#ifndef BENCH_HOSTILE_ATTACK_H_
#define BENCH_HOSTILE_ATTACK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rknnd::bench {

// Where the daemon is, for whoever attacks it.
struct Scene {
  std::string socket;  // the session socket's path
  std::string grpc;    // "127.0.0.1:PORT", or empty: it serves none

  [[nodiscard]] std::string target() const { return "unix:" + socket; }
};

// What the configuration lets a program have of the daemon's resident memory
// by such means, beside what the daemon has anyway.
enum class Holds { kNothing, kAddressSpace, kGrpcMemory };

struct Attack {
  const char* name;   // for --only, and in the table
  const char* means;  // in words, for the JSON
  Holds holds;
  bool by_grpc;
  // Never comes back. Says Announce() once it is in full swing.
  void (*work)(const Scene&);
  // What anybody can do without a daemon.
  bool for_contrast = false;
};

const std::vector<Attack>& AllAttacks();

// ---- for attacks, in their process ------------------------------------------

// Tells the benchmark that the attack is in full swing, and what it has got.
void Announce(const std::string& what);
// So many processes of this program at the same work, this one among them.
void InProcesses(int count, const std::function<void(int)>& work);
// So many threads, which are this process's for the rest of its life.
void InThreads(int count, const std::function<void(int)>& work);
[[noreturn]] void WaitForDeath();

// ---- the families -----------------------------------------------------------

void AttackByVerbs(const Scene& scene);
void AttackByLongRuns(const Scene& scene);
void AttackByLoads(const Scene& scene);
void AttackByLargeMemory(const Scene& scene);
void AttackByHolding(const Scene& scene);
void AttackBySocketCrowd(const Scene& scene);
void AttackByFenceCrowd(const Scene& scene);
void AttackTheKernel(const Scene& scene);
void AttackByGreed(const Scene& scene);
void AttackByRingNoise(const Scene& scene);
void AttackByDatagrams(const Scene& scene);
void AttackBySilence(const Scene& scene);
void AttackByLingering(const Scene& scene);
void AttackByContinuations(const Scene& scene);
void AttackByEndlessHeader(const Scene& scene);
void AttackByResets(const Scene& scene);
void AttackByHalfOpen(const Scene& scene);
void AttackByTokens(const Scene& scene);

}  // namespace rknnd::bench

#endif  // BENCH_HOSTILE_ATTACK_H_
