// Addresses, certificates and tokens are an administrator's; whoever comes by
// them is the servers' concern.

#include "daemon/network/network.h"

#include <unistd.h>

#include <array>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/network/grpc_library.h"

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
  try {
    RKNND_ASSIGN_OR_RETURN(grpc_, StartGrpcServer(config_.grpc, environment));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a thread for gRPC cannot be started: ", error.what()));
  }
  for (const std::string& address : grpc_->addresses()) {
    const bool tls =
        !config_.grpc.certificate.empty() && address.rfind("unix:", 0) != 0;
    log_.Write(transport::Severity::kInfo,
               absl::StrCat("gRPC at '", address, "'", tls ? " with TLS" : ""));
  }
  runtime_.service().set_draining(
      [this](bool draining) { grpc_->SetDraining(draining); });
  return absl::OkStatus();
}

absl::Status Network::CheckMetrics(const Config& config) {
  if (config.metrics.empty()) return absl::OkStatus();
  return metrics::MetricsServer::CheckAddress(config.metrics);
}

absl::Status Network::ServeMetrics() {
  RKNND_ASSIGN_OR_RETURN(NewMetrics metrics, PrepareMetrics(config_.metrics));
  TakeMetrics(std::move(metrics));
  return absl::OkStatus();
}

absl::StatusOr<Network::NewMetrics> Network::PrepareMetrics(
    const std::string& address) {
  NewMetrics metrics{address, address != metrics_address_, nullptr};
  if (metrics.changed && !address.empty()) {
    RKNND_ASSIGN_OR_RETURN(metrics.server, StartMetrics(address));
  }
  return metrics;
}

void Network::TakeMetrics(NewMetrics metrics) {
  if (!metrics.changed) return;
  metrics_address_ = std::move(metrics.address);
  metrics_ = std::move(metrics.server);
  log_.Write(transport::Severity::kInfo,
             metrics_ == nullptr
                 ? std::string("no metrics any more")
                 : absl::StrCat("metrics at 'http://", metrics_->address(),
                                "/metrics'"));
}

absl::StatusOr<std::unique_ptr<metrics::MetricsServer>> Network::StartMetrics(
    const std::string& address) {
  metrics::MetricsOptions options;
  options.address = address;
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
  options.look_at_npu = [] { return board::ReadNpuFigures(board::Files()); };
  return metrics::MetricsServer::Start(options);
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
