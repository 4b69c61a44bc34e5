// rknnctl admit: whether streams of a model's frames fit beside those that were
// admitted. Asks by a context of its own, like any program, and measures where
// nobody has yet; keeps no room.

#ifndef CLIENT_CTL_BOARD_ADMIT_H_
#define CLIENT_CTL_BOARD_ADMIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"
#include "rknn_api.h"
#include "rknnd.h"

namespace rknnd::client {

struct AdmitOptions {
  std::string model;
  double rate = 0;  // frames a second of each stream
  uint32_t streams = 1;
  std::string priority = "medium";
  rknn_core_mask core_mask = RKNN_NPU_CORE_AUTO;
};

// RKNN_FLAG_PRIOR_*.
std::optional<uint32_t> ParsePriority(std::string_view text);

struct AdmitAnswer {
  bool fits = false;
  Output output;
};

base::Expected<AdmitAnswer> Admit(const AdmitOptions& options);
// Its forms.
Output AdmissionOutput(const AdmitOptions& options,
                       const rknnd_admission& admission);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_ADMIT_H_
