// The memory table of the published measurement of rknn_dup_context, so many
// streams of so many contexts each, measured here row by row: NPU memory, and
// what the processes themselves take. For the demo and the benchmark of memory.

#ifndef CLIENT_LAUNCH_MEMORY_ROWS_H_
#define CLIENT_LAUNCH_MEMORY_ROWS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/include/rknnd.h"
#include "client/launch/launcher.h"

namespace rknnd::client {

struct MemoryRow {
  std::string key;   // in the JSON
  std::string name;  // in the table
  rknnd_memory memory{};
  // Proportional set size of all its processes together, the daemon included;
  // 0: not measured.
  uint64_t process_bytes = 0;

  // Weights and internal memory. Inputs, outputs and frames are the program's
  // own and the same in every row.
  [[nodiscard]] uint64_t npu_bytes() const {
    return memory.weight + memory.internal;
  }
};

// Throws as `launcher` does.

// The rows of programs without a daemon, in one process of the target local:
// that shares only what the vendor's library does, and the one of a daemon
// whose streams have a model each.
std::vector<MemoryRow> MeasureRows(const Launcher& launcher,
                                   const std::string& model, int streams,
                                   int contexts);
// Without reuse, but each stream in a process of its own.
MemoryRow MeasureProcessesRow(const Launcher& launcher,
                              const std::string& model, int streams,
                              int contexts);
// The row of a daemon with one model: each stream a process, whose contexts are
// all made by rknn_init. The demo's comes from its cameras.
MemoryRow MeasureSharedRow(const Launcher& launcher, const std::string& model,
                           int streams, int contexts);

// `rknnd-holder` (holder.cc) tells what is held as one line of JSON, and a
// camera of the demo does.
nlohmann::json ToJson(const rknnd_memory& memory);
// Nothing for a line that is none.
std::optional<rknnd_memory> ToMemory(const std::string& line);

}  // namespace rknnd::client

#endif  // CLIENT_LAUNCH_MEMORY_ROWS_H_
