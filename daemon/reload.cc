// Reads everything, checks everything, then changes everything: an error on the
// way leaves the daemon as it was.

#include "daemon/reload.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status/status.h"
#include "daemon/config/changes.h"
#include "daemon/core/service.h"
#include "daemon/runtime_options.h"

namespace rknnd {

Reloader::Reloader(CommandLine line, Config running, Runtime& runtime,
                   Network& network, board::LogTail& log)
    : line_(std::move(line)),
      file_(ConfigFileOf(line_)),
      running_(std::move(running)),
      runtime_(runtime),
      network_(network),
      log_(log) {}

absl::Status Reloader::Reload() {
  const std::string file = ConfigFileOf(line_);
  if (file.empty() && !file_.empty()) {
    // Without it there would be no limits at all.
    return absl::NotFoundError(
        absl::StrCat("'", file_,
                     "', which this daemon was started with, is not there: put "
                     "it back, or an empty one for the defaults"));
  }
  RKNND_ASSIGN_OR_RETURN(const Config read, MakeConfig(line_));
  const ConfigChanges changes = CompareConfigs(running_, read);
  Config next = running_;
  TakeLive(read, next);

  // What may fail first. The service's cannot fail half done.
  RKNND_ASSIGN_OR_RETURN(Network::NewMetrics metrics,
                         network_.PrepareMetrics(next.metrics));
  RKNND_RETURN_IF_ERROR(runtime_.service().Reconfigure(LiveOptionsOf(next)));
  network_.TakeMetrics(std::move(metrics));
  runtime_.server().SetLimits(next.server_limits);
  // Else an operator's own (rknnctl log) stays.
  if (next.log_level != running_.log_level) log_.SetLevel(next.log_level);
  for (const std::string& warning : read.warnings) {
    // Said once of a file that stays as it is.
    if (std::find(running_.warnings.begin(), running_.warnings.end(),
                  warning) == running_.warnings.end()) {
      log_.Write(transport::Severity::kWarning, warning);
    }
  }
  next.warnings = read.warnings;
  running_ = std::move(next);

  const std::string of =
      file.empty() ? "no file" : absl::StrCat("'", file, "'");
  log_.Write(transport::Severity::kInfo,
             changes.live.empty()
                 ? absl::StrCat("configuration of ", of,
                                ": nothing has changed that is in force")
                 : absl::StrCat("configuration of ", of, ": now in force: ",
                                absl::StrJoin(changes.live, ", ")));
  if (!changes.restart.empty()) {
    log_.Write(transport::Severity::kWarning,
               absl::StrCat("configuration of ", of,
                            ": takes effect at the next restart: ",
                            absl::StrJoin(changes.restart, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace rknnd
