// Prometheus' text format over HTTP, at /metrics of one address: for whoever
// can connect there, so loopback unless the configuration says otherwise.
// Changes nothing and takes no input but the request line. Made and ended by
// main on the loop's thread; requests are served by threads of the HTTP
// library, and ask the loop for the figures.

#ifndef DAEMON_METRICS_METRICS_SERVER_H_
#define DAEMON_METRICS_METRICS_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/event_loop.h"
#include "daemon/metrics/board_figures.h"

namespace rknnd::metrics {

struct MetricsOptions {
  std::string address;                 // "127.0.0.1:9464", "[::1]:9464"
  base::Executor* loop = nullptr;      // outlives the server
  std::function<BoardFigures()> look;  // called on the loop
  // Reads files; called on the server's threads, several at once.
  std::function<board::NpuFigures()> look_at_npu = nullptr;
};

// Thread: loop.
class MetricsServer {
 public:
  virtual ~MetricsServer() = default;

  // Whether Start could take it for an address at all.
  static absl::Status CheckAddress(const std::string& address);

  // INVALID_ARGUMENT: no address. UNAVAILABLE: nobody can listen there now.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const MetricsOptions& options);

  // With the port that the kernel chose, where 0 was asked for.
  [[nodiscard]] virtual std::string address() const = 0;
};

}  // namespace rknnd::metrics

#endif  // DAEMON_METRICS_METRICS_SERVER_H_
