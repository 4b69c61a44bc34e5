// The board's clocks while something is measured: what they are, and pinned to
// their highest where the user wants that. Asked of the daemon, which has them
// back as they were as soon as the connection ends, however that ends.

#ifndef CLIENT_CTL_BOARD_CLOCKS_H_
#define CLIENT_CTL_BOARD_CLOCKS_H_

#include <optional>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/reports/report.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

// Thread: any, one at a time.
class BoardClocks {
 public:
  // `fix`: pins them until this ends. A board that shows no clocks, or none
  // that can be set, is no failure; one that others must not set is.
  static base::Expected<BoardClocks> Open(const std::string& target, bool fix);

  // As they are now. Their last known values when the daemon does not answer.
  const std::vector<wire::BoardClock>& Look();
  [[nodiscard]] const std::vector<wire::BoardClock>& clocks() const {
    return clocks_;
  }
  // What the kernel told of the NPU at the last look; may be empty.
  [[nodiscard]] const std::string& npu() const { return npu_; }
  [[nodiscard]] bool fixed() const { return fixed_; }
  // Why there are none, or why they could not be fixed; "" if all is well.
  [[nodiscard]] const std::string& why() const { return why_; }
  // Has them back as they were before this returns, and not a moment later.
  void Release();

 private:
  std::optional<ControlConnection> daemon_;  // none: there is none to ask
  std::vector<wire::BoardClock> clocks_;
  std::string npu_;
  bool fixed_ = false;
  std::string why_;
};

Json ClocksJson(const std::vector<wire::BoardClock>& clocks);
// "npu 1.00 GHz (rknpu_ondemand), ddr 2.11 GHz, pinned".
std::string ClocksText(const std::vector<wire::BoardClock>& clocks);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_CLOCKS_H_
