// What `isolate = "strict"` costs a frame whose core is needed again at once:
// nothing, as long as no other session's job was there meanwhile.

#ifndef BENCH_HOTPATH_ISOLATION_H_
#define BENCH_HOTPATH_ISOLATION_H_

#include <nlohmann/json.hpp>
#include <string>

namespace rknnd::bench {

// The model that is measured; empty where ../shared is not there.
std::string IsolationModel();

// One row: a context on one core that runs back to back, with a daemon of its
// own. For a process of its own: the client library has one session.
nlohmann::json MeasureIsolation(const std::string& model, bool isolate,
                                int runs);

}  // namespace rknnd::bench

#endif  // BENCH_HOTPATH_ISOLATION_H_
