// rknnctl mem --sram: the map of the NPU's SRAM as the kernel driver's debug
// file draws it, who holds what of it, and why there is none. Pure, but for the
// look at this machine that the last of these takes.

#ifndef CLIENT_CTL_REPORTS_SRAM_H_
#define CLIENT_CTL_REPORTS_SRAM_H_

#include <string>

#include "client/ctl/reports/report.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

// `why_none` is told where the report has none.
Output SramOutput(const wire::Report& report, const std::string& why_none);

// What keeps the daemon's device from having SRAM: the SoC, or on a board the
// kernel driver's version, the kernel's options, the device tree. `root` is
// where the system's files are, "" but in tests; `release` is uname's.
std::string WhyNoSram(const wire::Report& report, const std::string& root,
                      const std::string& release);
// Of this machine.
std::string WhyNoSram(const wire::Report& report);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_REPORTS_SRAM_H_
