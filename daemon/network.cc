// Addresses, certificates and tokens are an administrator's; whoever comes by
// them is the servers' concern.

#include "daemon/network.h"

#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/grpc_library.h"

namespace rknnd {

Network::Network(const Config& config, Runtime& runtime,
                 transport::EventLog& log)
    : config_(config), runtime_(runtime), log_(log) {}

Network::~Network() {
  advertisement_.reset();
  metrics_.reset();
  if (grpc_ == nullptr) return;
  runtime_.service().set_draining(nullptr);
  grpc_->Stop();
  runtime_.RunPosted();
}

absl::Status Network::ServeGrpc() {
  if (config_.grpc.addresses.empty()) return absl::OkStatus();
  transport::GrpcEnvironment environment;
  environment.loop = &runtime_.loop();
  environment.clock = &runtime_.clock();
  environment.service = &runtime_.service();
  environment.workers = &runtime_.workers();
  environment.log = &log_;
  environment.failures = &runtime_.failures();
  environment.limits = config_.limits;
  environment.version = RKNND_VERSION;
  environment.board = runtime_.board();
  RKNND_ASSIGN_OR_RETURN(grpc_, StartGrpcServer(config_.grpc, environment));
  for (const std::string& address : grpc_->addresses()) {
    const bool tls =
        !config_.grpc.certificate.empty() && address.rfind("unix:", 0) != 0;
    log_.Write(transport::Severity::kInfo,
               absl::StrCat("gRPC at '", address, "'", tls ? " with TLS" : ""));
  }
  runtime_.service().set_draining([this] { grpc_->Drain(); });
  return absl::OkStatus();
}

absl::Status Network::ServeMetrics() {
  if (config_.metrics.empty()) return absl::OkStatus();
  metrics::MetricsOptions options;
  options.address = config_.metrics;
  options.loop = &runtime_.loop();
  options.look = [&runtime = runtime_] {
    metrics::BoardFigures figures;
    const core::Service& service = runtime.service();
    figures.version = RKNND_VERSION;
    figures.status = service.Status();
    figures.jobs = service.JobTotals();
    figures.memory = service.Memory();
    figures.failures = runtime.failures().failures();
    return figures;
  };
  RKNND_ASSIGN_OR_RETURN(metrics_, metrics::MetricsServer::Start(options));
  log_.Write(
      transport::Severity::kInfo,
      absl::StrCat("metrics at 'http://", metrics_->address(), "/metrics'"));
  return absl::OkStatus();
}

void Network::Advertise() {
  if (grpc_ == nullptr || !config_.grpc.advertise) return;
  std::array<char, 65> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return;
  AdvertisedService service;
  service.name = absl::StrCat("rknnd on ", host.data());
  service.port = PortToAdvertise(grpc_->addresses());
  service.text = {
      absl::StrCat("soc=", runtime_.service().device_info().soc),
      absl::StrCat("version=", RKNND_VERSION),
      absl::StrCat("tls=", config_.grpc.certificate.empty() ? 0 : 1)};
  advertisement_ = Advertisement::Publish(std::move(service), &runtime_.loop(),
                                          &runtime_.failures());
}

}  // namespace rknnd
