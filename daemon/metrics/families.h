// The board's figures as Prometheus has them: names, units and types by its
// conventions (seconds and bytes, _total for what only grows). Names and labels
// are part of the interface: dashboards and alerts are written against them
// (docs/metrics.md). Pure function.

#ifndef DAEMON_METRICS_FAMILIES_H_
#define DAEMON_METRICS_FAMILIES_H_

#include <vector>

#include "daemon/metrics/board_figures.h"
#include "prometheus/metric_family.h"

namespace rknnd::metrics {

std::vector<prometheus::MetricFamily> ToFamilies(const BoardFigures& figures);

}  // namespace rknnd::metrics

#endif  // DAEMON_METRICS_FAMILIES_H_
