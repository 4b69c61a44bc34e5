// How a measurement fails, and how its figures are written. All is exceptions,
// so that the daemons and folders of a failed one go with it.

#ifndef BENCH_COMMON_FAILURE_H_
#define BENCH_COMMON_FAILURE_H_

#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "client/include/rknnd.h"

namespace rknnd::bench {

// With rknnd_last_error()'s text.
[[noreturn]] inline void Fail(const std::string& what) {
  const std::string reason = rknnd_last_error();
  throw std::runtime_error(reason.empty() ? what : what + ": " + reason);
}

inline void WriteFigures(const std::string& path,
                         const nlohmann::json& figures) {
  std::ofstream file(path);
  file << figures.dump(1) << '\n';
  file.close();
  if (!file) throw std::runtime_error("cannot write '" + path + "'");
}

// main() of a benchmark: its exit code.
template <class Body>
int RunMain(const char* name, Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rknnd-bench-%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace rknnd::bench

#endif  // BENCH_COMMON_FAILURE_H_
