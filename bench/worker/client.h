// A program that runs one model again and again, with other numbers each time,
// and looks at each answer. The benchmark starts itself as several of it.

#ifndef BENCH_WORKER_CLIENT_H_
#define BENCH_WORKER_CLIENT_H_

#include <cstdint>
#include <string>

namespace rknnd::bench {

struct ClientCounts {
  uint64_t right = 0, wrong = 0, failed = 0;
  int64_t longest_ns = 0;  // of all runs
  std::string error;       // the first one's text
};

// Until its stdin is closed; then one line of JSON. For main().
int RunClient(const std::string& model);

}  // namespace rknnd::bench

#endif  // BENCH_WORKER_CLIENT_H_
