// A camera that does not wait: frames are submitted at their times, and their
// completions counted.

#ifndef BENCH_SCHEDULER_STREAMS_H_
#define BENCH_SCHEDULER_STREAMS_H_

#include <nlohmann/json.hpp>

#include "bench/scheduler/clients.h"
#include "client/include/rknn_api.h"

namespace rknnd::bench {

// In a client process; `context` is bound. Ages are of frames that were
// answered, from their submission to their answer.
nlohmann::json RunStream(const ClientPlan& plan, rknn_context context);

}  // namespace rknnd::bench

#endif  // BENCH_SCHEDULER_STREAMS_H_
