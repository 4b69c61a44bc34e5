// The published measurement of rknn_dup_context, four streams of three contexts
// each: what the vendor's ways of sharing cost, and what rknnd costs, in NPU
// memory and in memory of all processes together.

#ifndef BENCH_MEMORY_PUBLISHED_H_
#define BENCH_MEMORY_PUBLISHED_H_

#include <nlohmann/json.hpp>
#include <string>

#include "client/launch/launcher.h"

namespace rknnd::bench {

enum class Processes {
  kMeasured,
  // All of rknnd's together are to take at most 40 % of what one takes that
  // shares nothing. That is for a network of some megabytes: with a very small
  // one, the programs themselves are larger than what they could share.
  kPromised,
};

// Measures with one model and prints the table; "holds" says whether all of
// what is promised does. Throws as `launcher` does.
nlohmann::json MeasurePublished(const client::Launcher& launcher,
                                const std::string& model, Processes processes);

}  // namespace rknnd::bench

#endif  // BENCH_MEMORY_PUBLISHED_H_
