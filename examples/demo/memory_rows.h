// The memory table of the published measurement of rknn_dup_context, four
// streams of three contexts each, measured here row by row.

#ifndef EXAMPLES_DEMO_MEMORY_ROWS_H_
#define EXAMPLES_DEMO_MEMORY_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/include/rknnd.h"
#include "client/launch/launcher.h"

namespace rknnd::demo {

// The slowest step of a child is the load of twelve detectors on a small board.
inline constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

struct MemoryRow {
  std::string key;   // in the JSON
  std::string name;  // in the table
  rknnd_memory memory{};

  // Weights and internal memory. Inputs, outputs and frames are the program's
  // own and the same in every row.
  [[nodiscard]] uint64_t npu_bytes() const {
    return memory.weight + memory.internal;
  }
};

// The rows of programs without a daemon, in one process of the target local:
// that shares only what the vendor's library does, and the one of a daemon
// whose streams have a model each. The demo's own row comes from its cameras.
// Throws as `launcher` does.
std::vector<MemoryRow> MeasureRows(const client::Launcher& launcher,
                                   const std::string& model, int streams,
                                   int contexts);

void PrintRows(const std::vector<MemoryRow>& rows, int streams, int contexts);

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_MEMORY_ROWS_H_
