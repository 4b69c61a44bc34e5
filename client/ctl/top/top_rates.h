// What happened between two looks at a daemon, in numbers: the arithmetic of
// rknnctl top. Pure functions.

#ifndef CLIENT_CTL_TOP_TOP_RATES_H_
#define CLIENT_CTL_TOP_TOP_RATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/wire/codec.h"

namespace rknnd::client {

// One look.
struct TopSample {
  wire::Report board;     // of kind REPORT_MEMORY
  wire::Report contexts;  // of kind REPORT_CONTEXTS
  std::string npu = {};   // ControlConnection::AskNpu
};

// By which number lists are sorted, the greatest first.
enum class TopOrder { kNpu, kFps, kLatency, kDrops, kMemory };

// Half of all, and all but one of a hundred, did not take longer; 0 without
// any.
struct TopLatency {
  double p50_us = 0, p99_us = 0;
};

struct CoreRates {
  double load = 0;  // 0 to 1
  double jobs_per_s = 0;
  // What it has now, or had last; null: nothing yet, or it has gone.
  const wire::CoreReport* report = nullptr;
  const wire::SessionReport* session = nullptr;
};

struct SessionRates {
  const wire::SessionReport* report = nullptr;
  double runs_per_s = 0;
  double load = 0;                  // of all cores
  double queue_us = 0, run_us = 0;  // mean of one good run; 0 without any
  double copied_per_s = 0, copied_per_run = 0;
  double drops_per_s = 0;
  uint64_t queued = 0;  // now
  TopLatency latency;
};

struct ModelRates {
  const wire::ModelReport* report = nullptr;
  double runs_per_s = 0;
  double load = 0;  // of all cores
  double queue_us = 0;
  double drops_per_s = 0;
};

struct TopRates {
  double seconds = 0;
  double done_per_s = 0, failed_per_s = 0, dropped_per_s = 0;
  double load = 0;  // of all cores
  bool ran = false;
  double queue_us = 0, run_us = 0;
  TopLatency latency;
  std::vector<CoreRates> cores;
  std::vector<SessionRates> sessions;
  std::vector<ModelRates> models;
};

// Both looks at the same daemon; `own_session` is left out. What the answer
// points to is in `now`.
TopRates CompareLooks(const TopSample& before, const TopSample& now,
                      uint64_t own_session, TopOrder order);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TOP_TOP_RATES_H_
