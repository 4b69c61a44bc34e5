#include "client/ctl/models/run_by.h"

#include <utility>

#include "client/ctl/control_connection.h"
#include "client/ctl/models/push.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {

using base::Expected;

Expected<RunBy> AskWhoRuns(const std::string& target, const std::string& file) {
  const Expected<Output> pushed = Push({target, file, /*json=*/true});
  if (!pushed) return pushed.error();
  Expected<ControlConnection> daemon = ControlConnection::Open(target);
  if (!daemon) return std::move(daemon).error();
  const Expected<wire::Report> report =
      daemon->Ask(rknnd_v1_ReportKind_REPORT_MODELS);
  if (!report) return report.error();
  for (const wire::ModelReport& model : report->models) {
    if (HexOf(model.sha256) != pushed->json["sha256"]) continue;
    return RunBy{model.run_by, model.run_by_because};
  }
  return RunBy{};
}

}  // namespace rknnd::client
