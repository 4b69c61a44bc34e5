// rknnctl doctor: what keeps programs from using the NPU well, each with its
// remedy. The daemon looks at its board; this side at the way to the daemon and
// at what programs would load, so that it works without a daemon, too.

#ifndef CLIENT_CTL_BOARD_DOCTOR_H_
#define CLIENT_CTL_BOARD_DOCTOR_H_

#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/board/finding.h"
#include "client/ctl/reports/report.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

struct Diagnosis {
  std::vector<Finding> findings;
  [[nodiscard]] Severity worst() const;
};

// `target` as in RKNND_TARGET.
Diagnosis Diagnose(const std::string& target);

// Why there is no answer at `target`: what is missing, and who may change it.
Finding WhyNoDaemon(const std::string& target, const base::Error& error);
// The versions of both sides, and which one to update.
Finding CompareVersions(const std::string& client, const wire::Welcome& daemon);

// Worst first; of equals, in their order.
Output DiagnosisOutput(const Diagnosis& diagnosis, bool color);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_DOCTOR_H_
