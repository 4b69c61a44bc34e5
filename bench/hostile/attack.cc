// See attack.h.

#include "bench/hostile/attack.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>

namespace rknnd::bench {

const std::vector<Attack>& AllAttacks() {
  static const std::vector<Attack> all = {
      {"verbs",
       "four sessions make contexts that cannot run, set their cores, run them "
       "and destroy them",
       Holds::kNothing, false, AttackByVerbs},
      {"long-runs",
       "three processes run products of 4000 x 4000 on masks 1, 2 and 4, as "
       "long ones as are accepted",
       Holds::kAddressSpace, false, AttackByLongRuns},
      {"loads",
       "five sessions load models of a few bytes that take seconds to compile, "
       "each time other ones",
       Holds::kAddressSpace, false, AttackByLoads},
      {"large-memory",
       "imports the largest memfd that is taken, and releases it",
       Holds::kAddressSpace, false, AttackByLargeMemory},
      {"holding",
       "holds as many sessions, imports and fences as one user may have",
       Holds::kAddressSpace, false, AttackByHolding},
      {"socket-crowd",
       "32 threads poll the session socket 20,000 times each while it asks for "
       "reports",
       Holds::kNothing, false, AttackBySocketCrowd},
      {"fence-crowd",
       "32 threads poll the far end of a fence 20,000 times each while jobs "
       "signal it",
       Holds::kNothing, false, AttackByFenceCrowd},
      {"own-crowd",
       "32 threads poll a socket of their own 20,000 times each while it is "
       "written to; the daemon has no part in it",
       Holds::kNothing, false, AttackTheKernel, true},
      {"greed", "an honest program that runs a small model without a pause",
       Holds::kNothing, false, AttackByGreed},
      {"ring-noise", "doorbells and noise in the rings of two sessions",
       Holds::kNothing, false, AttackByRingNoise},
      {"datagrams", "datagrams of noise with more descriptors than are taken",
       Holds::kNothing, false, AttackByDatagrams},
      {"silent", "connections that never say Hello", Holds::kNothing, false,
       AttackBySilence},
      {"lingering", "sends descriptors that take an hour to close",
       Holds::kNothing, false, AttackByLingering},
      {"continuations", "gRPC: headers that never end, on four connections",
       Holds::kGrpcMemory, true, AttackByContinuations},
      {"endless-header",
       "gRPC: one header of 2 GB, in pieces, on four connections",
       Holds::kGrpcMemory, true, AttackByEndlessHeader},
      {"resets", "gRPC: calls that are taken back at once, on four connections",
       Holds::kGrpcMemory, true, AttackByResets},
      {"half-open", "gRPC: connections that say nothing, as many as there are",
       Holds::kGrpcMemory, true, AttackByHalfOpen},
      {"tokens", "gRPC: 200 connections call with tokens that are refused",
       Holds::kGrpcMemory, true, AttackByTokens},
  };
  return all;
}

void Announce(const std::string& what) {
  std::printf("ready %s\n", what.c_str());
  std::fflush(stdout);
}

void InProcesses(int count, const std::function<void(int)>& work) {
  const pid_t parent = getpid();
  for (int i = 1; i < count; ++i) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) std::_Exit(0);
    work(i);
    WaitForDeath();
  }
  work(0);
}

void InThreads(int count, const std::function<void(int)>& work) {
  for (int i = 0; i < count; ++i) {
    std::thread([work, i] {
      try {
        work(i);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rknnd-bench-hostile: %s\n", error.what());
        std::_Exit(1);
      }
    }).detach();
  }
}

void WaitForDeath() {
  for (;;) pause();
}

}  // namespace rknnd::bench
