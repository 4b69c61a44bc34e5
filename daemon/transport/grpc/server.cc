// Starts and ends the gRPC server. gRPC's threads and the one that accepts are
// children of a thread at a lower priority, so that what untrusted clients on a
// network cause does not take CPU time from local clients. Order of the end:
//
//   1. endpoints: every call is told to end; nothing is posted to the loop
//   2. acceptor: nobody new
//   3. gRPC: GOAWAY, a moment for answers on their way, then calls are cut; on
//      a thread of its own, as the server's thread relays what it says
//   4. the relay, when all that gRPC said is sent
//   5. the server's thread, then what calls used

#include "daemon/transport/grpc/server.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/posix/blocked_signals.h"
#include "base/status/status.h"
#include "daemon/transport/grpc/authenticator.h"
#include "daemon/transport/grpc/debug/debug_endpoint.h"
#include "daemon/transport/grpc/delivery_watch.h"
#include "daemon/transport/grpc/endpoint.h"
#include "daemon/transport/grpc/grpc_log.h"
#include "daemon/transport/grpc/inference/inference_endpoint.h"
#include "daemon/transport/grpc/live_calls.h"
#include "daemon/transport/grpc/overload_log.h"
#include "daemon/transport/grpc/peer_table.h"
#include "daemon/transport/grpc/reflection/reflection_endpoint.h"
#include "daemon/transport/grpc/relay/addresses.h"
#include "daemon/transport/grpc/relay/connections.h"
#include "daemon/transport/grpc/relay/relay.h"
#include "daemon/transport/grpc/relay/tls_files.h"
#include "daemon/transport/grpc/relay/tls_stream.h"
#include "daemon/transport/grpc/request_budget.h"
#include "daemon/transport/grpc/request_turns.h"
#include "daemon/transport/grpc/session/session_endpoint.h"

namespace rknnd::transport {
namespace {

constexpr char kInferenceService[] = "inference.GRPCInferenceService";

// Below what the workers of local clients have; idle CPUs are used all the
// same.
constexpr int kNiceness = 10;
// A call's headers: names, a token, a trace's numbers.
constexpr int kMetadataBytes = 16 << 10;
// Clients may ask whether we are there as often as this.
constexpr base::Nanoseconds kLeastPingInterval = 5 * base::kSecond;
// A connection that has not said what it is by then is closed.
constexpr base::Nanoseconds kLongestHandshake = 10 * base::kSecond;
// What a call may have sent before anybody reads of it, as gRPC keeps it
// meanwhile; of a message that is read all may come at once. gRPC would make it
// as much as the network holds.
constexpr int kUnreadBytes = 8 << 10;
// A message comes in frames of no more than this: each costs time, and gRPC's
// own 16 KiB are many of them for a picture. gRPC makes room for a whole one.
constexpr int kFrameBytes = 512 << 10;
// What gRPC reads of a connection at one time, where it does not know how much
// is coming, and keeps.
constexpr uint64_t kReadBytes = 64 << 10;
// For answers that are on their way when the server ends.
constexpr std::chrono::seconds kLastAnswers{2};
constexpr base::Nanoseconds kLastBytes = base::kSecond;
// Open calls beside inferences: sessions, watches of health, and those that are
// refused.
constexpr uint32_t kOtherCalls = 512;
// Calls that were taken back and have not ended: `requests` of them, but no
// fewer than this.
constexpr int64_t kLeastEnding = 64;

int Milliseconds(base::Nanoseconds time) {
  return static_cast<int>(std::clamp<base::Nanoseconds>(
      time / base::kMillisecond, 1, std::numeric_limits<int>::max()));
}

// Its last user would wait for its threads, of which one polls for up to ten
// seconds where the network did not take an answer at once (tcp_posix.cc).
void KeepGrpc() {
  static std::once_flag once;
  std::call_once(once, grpc_init);
}

// Half of the memory is for messages as they come, which the relay sees to;
// half is the budget's, for what requests are made into.
uint64_t Half(uint64_t memory) { return memory / 2; }

absl::StatusOr<std::vector<GrpcAddress>> CheckAll(
    const GrpcOptions& options, std::vector<std::string>& complaints) {
  RKNND_ASSIGN_OR_RETURN(complaints, CheckTlsFiles(options));
  if (options.message_bytes > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("grpc.message_bytes is ",
                                                   options.message_bytes,
                                                   ", must be below 2 GiB"));
  }
  if (Half(options.memory) < options.message_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "grpc.memory is ", options.memory, ": must be at least twice ",
        "grpc.message_bytes, which is ", options.message_bytes));
  }
  return ResolveGrpcAddresses(options);
}

class GrpcServerImpl final : public GrpcServer {
 public:
  GrpcServerImpl(const GrpcOptions& options, const GrpcEnvironment& environment)
      : options_(options),
        environment_(environment),
        budget_({Half(options.memory), options.requests}) {}
  ~GrpcServerImpl() override { Stop(); }

  // An error leaves what was begun to the destructor.
  absl::Status Begin();

  [[nodiscard]] std::vector<std::string> addresses() const override {
    return names_;
  }
  void SetDraining(bool draining) override;
  void Stop() override;

 private:
  absl::Status MakeEndpoints();
  // On the server's thread.
  absl::Status StartServer(std::vector<GrpcListener> listeners);
  // What the relay lets in of messages and calls.
  [[nodiscard]] uint64_t RelayPool() const {
    return Half(options_.memory) +
           (2 * uint64_t{options_.requests} + kOtherCalls) * kCallBytes;
  }
  void SetArguments(grpc::ServerBuilder& builder) const;
  void MakeRelay();
  // Gives a connection to gRPC.
  void Give(base::UniqueFd connection);
  void StopServer();
  void ForgetServer();

  const GrpcOptions options_;
  GrpcEnvironment environment_;
  PeerTable peers_;
  std::unique_ptr<GrpcAuthenticator> authenticator_;
  RequestBudget budget_;
  std::vector<std::string> names_;
  std::unique_ptr<base::EventLoop> loop_;  // of the server's thread
  std::optional<DeliveryWatch> deliveries_;
  std::optional<RequestTurns> turns_;
  std::optional<OverloadLog> overload_;
  std::vector<std::unique_ptr<GrpcEndpoint>> endpoints_;
  std::thread thread_;
  bool stopped_ = false;

  // Made, used and destroyed on the server's thread.
  std::optional<GrpcLog> core_log_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::atomic<int64_t> live_calls_{0};
  std::unique_ptr<grpc::Server> server_;
  std::optional<ConnectionAcceptor> acceptor_;
  std::unique_ptr<TlsFiles> tls_;
  std::optional<Relay> relay_;  // of the acceptor's connections
  std::thread shutdown_;
};

absl::Status GrpcServerImpl::Begin() {
  std::vector<std::string> complaints;
  RKNND_ASSIGN_OR_RETURN(std::vector<GrpcAddress> addresses,
                         CheckAll(options_, complaints));
  for (const std::string& complaint : complaints) {
    environment_.failures->Note(complaint);
  }
  RKNND_ASSIGN_OR_RETURN(
      authenticator_, GrpcAuthenticator::Create(options_, environment_.failures,
                                                environment_.clock, &peers_));
  RKNND_ASSIGN_OR_RETURN(
      loop_, base::ToStatusOr(base::EventLoop::Create(environment_.clock)));
  deliveries_.emplace(options_.unread, loop_.get(), environment_.clock,
                      environment_.failures);
  environment_.authenticator = authenticator_.get();
  environment_.budget = &budget_;
  environment_.deliveries = &*deliveries_;
  environment_.turns = &turns_.emplace(&budget_, options_.requests, loop_.get(),
                                       environment_.clock);
  environment_.overload =
      &overload_.emplace(loop_.get(), environment_.failures);
  RKNND_RETURN_IF_ERROR(MakeEndpoints());
  RKNND_ASSIGN_OR_RETURN(std::vector<GrpcListener> listeners,
                         ListenOnAll(std::move(addresses), options_.keepalive));
  for (const GrpcListener& listener : listeners) {
    names_.push_back(listener.name);
  }

  std::promise<absl::Status> started;
  {
    const base::BlockedSignals blocked;
    thread_ = std::thread([this, &started, &listeners] {
      pthread_setname_np(pthread_self(), "rknnd-grpc");
      // Of this thread only, and of those it will create: gRPC's. They have no
      // short turns, as workers do: several that have come before all others.
      setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kNiceness);
      started.set_value(StartServer(std::move(listeners)));
      loop_->Run();
    });
  }
  return started.get_future().get();
}

absl::Status GrpcServerImpl::MakeEndpoints() {
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<GrpcEndpoint> inference,
                         MakeInferenceEndpoint(options_, environment_));
  endpoints_.push_back(std::move(inference));
  endpoints_.push_back(MakeReflectionEndpoint());
  for (const auto make : {MakeSessionEndpoint, MakeDebugEndpoint}) {
    auto endpoint = make(options_, environment_);
    if (endpoint != nullptr) endpoints_.push_back(std::move(endpoint));
  }
  return absl::OkStatus();
}

absl::Status GrpcServerImpl::StartServer(std::vector<GrpcListener> listeners) {
  // First, as it removes the names that were made. It accepts when the loop
  // turns, which is after the start.
  acceptor_.emplace(options_.connections, loop_.get(), environment_.failures,
                    [this](AcceptedConnection connection) {
                      relay_->Take(std::move(connection));
                    });
  for (GrpcListener& listener : listeners) {
    RKNND_RETURN_IF_ERROR(acceptor_->Serve(std::move(listener)));
  }
  if (!options_.certificate.empty()) {
    RKNND_ASSIGN_OR_RETURN(
        tls_, TlsFiles::Read(options_, loop_.get(), environment_.failures));
  }
  MakeRelay();
  core_log_.emplace(environment_.failures);
  KeepGrpc();
  // Debian's abseil is built with its search for deadlocks, which locks one
  // graph for all threads whenever a thread locks a second mutex of gRPC's.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  SetArguments(builder);
  for (const auto& endpoint : endpoints_) {
    builder.RegisterService(&endpoint->service());
    if (endpoint->generic() != nullptr) {
      builder.RegisterCallbackGenericService(endpoint->generic());
    }
  }
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  connections_ = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, grpc::InsecureServerCredentials());
  builder.SetContextAllocator(std::make_unique<LiveCalls>(&live_calls_));
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::InternalError("the gRPC server did not start");
  }
  grpc::HealthCheckServiceInterface* const health =
      server_->GetHealthCheckService();
  health->SetServingStatus(kInferenceService, true);
  return absl::OkStatus();
}

void GrpcServerImpl::SetArguments(grpc::ServerBuilder& builder) const {
  grpc::ResourceQuota quota("rknnd");
  // Above what the relay lets in: gRPC cuts off anybody where it is full. Not
  // far above: while less than four fifths of it are taken, gRPC keeps for each
  // connection buffers as large as what it last read of it at one time, some
  // hundred KiB (docs/remote.md).
  quota.Resize(RelayPool() + options_.connections * kReadBytes);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options_.message_bytes));
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytes);
  builder.AddChannelArgument(
      GRPC_ARG_MAX_CONCURRENT_STREAMS,
      static_cast<int>(std::min<uint32_t>(options_.streams,
                                          std::numeric_limits<int>::max())));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                             kUnreadBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  builder.AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      Milliseconds(std::min(kLongestHandshake, options_.keepalive)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             Milliseconds(options_.keepalive));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             Milliseconds(options_.keepalive / 2));
  // Also where no call is open: an idle connection takes a place as well.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Milliseconds(kLeastPingInterval));
}

void GrpcServerImpl::MakeRelay() {
  RelayOptions relay;
  relay.limits.streams = options_.streams;
  relay.limits.frame_bytes = kFrameBytes;
  relay.limits.header_bytes = 2 * kMetadataBytes;
  relay.pool = RelayPool();
  relay.ending = std::max<int64_t>(options_.requests, kLeastEnding);
  relay.handshake = std::min(kLongestHandshake, options_.keepalive);
  relay_.emplace(
      relay, loop_.get(), environment_.clock, environment_.failures, &peers_,
      tls_.get(), &live_calls_,
      [this](base::UniqueFd connection) { Give(std::move(connection)); },
      [] { malloc_trim(0); });
}

void GrpcServerImpl::Give(base::UniqueFd connection) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
      parameters;
  parameters.fd = connection.release();
  connections_->HandleNewConnection(&parameters);
}

void GrpcServerImpl::SetDraining(bool draining) {
  for (const auto& endpoint : endpoints_) endpoint->SetDraining(draining);
  loop_->Post([this, draining] {
    if (server_ != nullptr) {
      server_->GetHealthCheckService()->SetServingStatus(!draining);
    }
  });
}

void GrpcServerImpl::StopServer() {
  if (acceptor_.has_value()) acceptor_->Stop();
  if (server_ == nullptr) return ForgetServer();
  shutdown_ = std::thread([this] {
    server_->Shutdown(std::chrono::system_clock::now() + kLastAnswers);
    loop_->Post(
        [this] { relay_->Finish(kLastBytes, [this] { ForgetServer(); }); });
  });
}

void GrpcServerImpl::ForgetServer() {
  if (shutdown_.joinable()) shutdown_.join();
  relay_.reset();
  tls_.reset();
  acceptor_.reset();
  server_.reset();
  connections_.reset();
  core_log_.reset();
  loop_->Quit();
}

void GrpcServerImpl::Stop() {
  if (std::exchange(stopped_, true)) return;
  for (const auto& endpoint : endpoints_) endpoint->Stop();
  if (thread_.joinable()) {
    loop_->Post([this] { StopServer(); });
    thread_.join();
  }
  endpoints_.clear();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const GrpcOptions& options, const GrpcEnvironment& environment) {
  auto server = std::make_unique<GrpcServerImpl>(options, environment);
  RKNND_RETURN_IF_ERROR(server->Begin());
  return server;
}

absl::Status GrpcServer::Check(const GrpcOptions& options) {
  std::vector<std::string> complaints;
  RKNND_RETURN_IF_ERROR(CheckAll(options, complaints).status());
  if (options.tokens.empty()) return absl::OkStatus();
  const absl::Status tokens = TokenList::Read(options.tokens).status();
  return tokens.ok() ? tokens : base::Annotate(tokens, "grpc.tokens");
}

}  // namespace rknnd::transport
