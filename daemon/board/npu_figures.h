// What the kernel tells of the NPU at this moment: load, clock, voltage,
// temperature, SRAM, power. Read from files that do not wake the NPU; what
// drivers are known to get wrong is put right here. For `rknnctl doctor`.

#ifndef DAEMON_BOARD_NPU_FIGURES_H_
#define DAEMON_BOARD_NPU_FIGURES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/board/files.h"

namespace rknnd::board {

// What cannot be read is not there.
struct NpuFigures {
  // Busy share of the last full second by core, in percent, at most 100.
  std::vector<uint32_t> load;
  // The driver counted more: it does where a job never ended.
  bool load_was_wrong = false;
  std::optional<uint64_t> hertz, microvolts;
  std::optional<double> celsius;
  // Bytes, by the driver's own bitmap.
  std::optional<uint64_t> sram_used, sram_total;
  std::string power;  // "active", "suspended"; "" where nobody says
};

NpuFigures ReadNpuFigures(const Files& files);
// "load 0 %, 37 %, 100 %; 1000 MHz; 0.85 V; 45 C; SRAM 144 of 956 KiB; active";
// empty where nothing is known.
std::string Describe(const NpuFigures& figures);

}  // namespace rknnd::board

#endif  // DAEMON_BOARD_NPU_FIGURES_H_
