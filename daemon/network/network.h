// What rknnd serves to networks: gRPC, metrics, and word of the port where
// others look for one. Used by main; a daemon inside a host program has none.

#ifndef DAEMON_NETWORK_NETWORK_H_
#define DAEMON_NETWORK_NETWORK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/config/config.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/network/advertisement.h"
#include "daemon/runtime.h"
#include "daemon/transport/grpc/server.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd {

// Nothing is served that the configuration does not name. Thread: loop.
class Network {
 public:
  // All outlive it.
  Network(const Config& config, Runtime& runtime, transport::EventLog& log);
  // Ends what was begun, while the service is there. What is posted for its
  // calls still finds them.
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // What of the metrics' address can be told without listening there.
  static absl::Status CheckMetrics(const Config& config);

  absl::Status ServeGrpc();
  absl::Status ServeMetrics();

  // Metrics at another address: nothing changes until they are taken, so that
  // an address that cannot be had leaves the one before.
  struct NewMetrics {
    std::string address;
    bool changed = false;
    std::unique_ptr<metrics::MetricsServer> server;  // null: none is wanted
  };
  absl::StatusOr<NewMetrics> PrepareMetrics(const std::string& address);
  void TakeMetrics(NewMetrics metrics);

  // Tells of gRPC's port, where that is asked for and can be done.
  void Advertise();

 private:
  absl::StatusOr<std::unique_ptr<metrics::MetricsServer>> StartMetrics(
      const std::string& address);

  const Config& config_;
  Runtime& runtime_;
  transport::EventLog& log_;
  std::unique_ptr<transport::GrpcServer> grpc_;
  std::unique_ptr<metrics::MetricsServer> metrics_;
  std::string metrics_address_;  // as configured; empty: none
  std::unique_ptr<Advertisement> advertisement_;
};

}  // namespace rknnd

#endif  // DAEMON_NETWORK_NETWORK_H_
