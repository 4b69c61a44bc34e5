// Layer times and dumps as messages. No decisions but what does not fit a
// message.

#ifndef DAEMON_TRANSPORT_SESSION_TRANSLATE_PROFILE_H_
#define DAEMON_TRANSPORT_SESSION_TRANSLATE_PROFILE_H_

#include <span>
#include <vector>

#include "daemon/core/contexts/layer_dump.h"
#include "daemon/core/reports/perf_report.h"
#include "driver/model_info.h"
#include "proto/wire/codec.h"

namespace rknnd::transport {

std::vector<wire::LayerReport> ToLayerReports(
    const std::vector<core::LayerRow>& rows);
// Of layers that need not have run: what the model says of them.
std::vector<wire::LayerReport> ToLayerReports(
    std::span<const driver::LayerInfo> layers);

wire::DumpReply ToDumpReply(const core::DumpReport& report);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_TRANSLATE_PROFILE_H_
