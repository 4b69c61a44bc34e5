// Will it fit: how many frames a second of a model the cores can still take
// beside the streams that were admitted. Arithmetic alone: no state, no clock.
// Called by sessions (session_admission.cc) and reports, on the loop.
//
// Counted is what a stream takes of its cores' time: rate times the time of one
// run. Frames that nobody declared are not counted: who wants to be sure of
// room reserves it, and the others get what is left.
//
//   on one core     takes of that core
//   on any core     is spread, so that what is full last is filled evenly
//   as a gang       takes of each of its cores, and besides what the others
//                   stand idle until the last of them is free
//
// A stream fits when its cores can be shared out among all streams of its
// class and of higher ones so that none is given away beyond the ceiling. Lower
// classes give way, which the answer says where it happens.

#ifndef DAEMON_CORE_SCHEDULING_ADMISSION_H_
#define DAEMON_CORE_SCHEDULING_ADMISSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/models/loaded_model.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// What of a core's time is given to streams. The rest is for what no plan
// knows: what lies between two jobs, run times that grow when all cores want
// memory at once. And a queue before a core that is never free has no end: at
// nine tenths a frame waits five run times in the mean, at all of it for ever.
inline constexpr double kAdmissionCeiling = 0.9;

// So many alike may be asked for at once.
inline constexpr uint32_t kMostStreams = 4096;

// Frames of a model, at a steady rate.
struct Stream {
  std::string model;  // its name, for words
  CoreChoice cores;
  Priority priority = Priority::kMedium;
  uint64_t rate_mhz = 0;      // frames in 1000 seconds
  base::Nanoseconds run = 0;  // of one on its core; of a gang, on each
  uint32_t count = 1;         // alike, each with its own context
};

// Which cores there are to share out.
struct Board {
  uint32_t cores = 0;   // as bits
  uint32_t lent = 0;    // of them, for now somebody else's
  std::string lent_to;  // who that is, in words
};

// Whether `asked` fits beside `admitted`, which it is not among.
Admission PlanStream(const std::vector<Stream>& admitted, const Stream& asked,
                     const Board& board);

// Of all cores that are there, what streams take, in millionths.
uint64_t AdmittedPpm(const std::vector<Stream>& admitted, const Board& board);

// How long a run takes on these cores.
struct RunEstimate {
  base::Nanoseconds run = 0;  // 0: nobody knows
  bool measured = false;      // else by the SoC's timing model
};
RunEstimate EstimateRun(const LoadedModel& model, uint32_t row,
                        const CoreChoice& cores);

// "core 0", "cores 0 and 2", "cores 0 to 2".
std::string NameCores(uint32_t cores);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SCHEDULING_ADMISSION_H_
