// Memories and contexts that come and go, a hundred thousand times each: what
// is left of them in the daemon and in this process, which is the client.

#ifndef BENCH_MEMORY_CHURN_H_
#define BENCH_MEMORY_CHURN_H_

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>

namespace rknnd::bench {

inline constexpr int kChurnRounds = 100'000;

// With the daemon of RKNND_TARGET, whose process is `daemon`. Prints a line for
// each kind; "holds" says whether descriptors, mappings and resident bytes of
// both ended where they began. Throws std::runtime_error.
nlohmann::json MeasureChurn(const std::string& model, pid_t daemon, int rounds);

}  // namespace rknnd::bench

#endif  // BENCH_MEMORY_CHURN_H_
