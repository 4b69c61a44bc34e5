// Each measurement in a process of its own: the client library holds one
// session for the life of its process, and threads keep the CPU they were made
// on.

#ifndef BENCH_HOTPATH_APART_H_
#define BENCH_HOTPATH_APART_H_

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "bench/common/failure.h"
#include "client/launch/launcher.h"

namespace rknnd::bench {

// body(folder), which is a folder of its own, gives the row.
template <class Body>
nlohmann::json MeasureApart(Body body) {
  const base::TemporaryFolder folder = client::MakeTemporaryFolder();
  const std::string result = folder.path() + "/row.json";
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    // What stands on this stack is the parent's to put away.
    std::_Exit(RunMain("hotpath", [&] {
      WriteFigures(result, body(folder.path()));
      return 0;
    }));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  std::ifstream file(result);
  nlohmann::json row = nlohmann::json::parse(file, nullptr, false);
  if (status != 0 || row.is_discarded()) {
    throw std::runtime_error("the measuring process failed");
  }
  return row;
}

}  // namespace rknnd::bench

#endif  // BENCH_HOTPATH_APART_H_
