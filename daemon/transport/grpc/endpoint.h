// One gRPC service of the daemon, as the server that carries it sees it. Each
// is a folder here: inference/ (Open Inference Protocol), session/ (the C API
// from another machine), debug/ (rknnd.v1.Debug).

#ifndef DAEMON_TRANSPORT_GRPC_ENDPOINT_H_
#define DAEMON_TRANSPORT_GRPC_ENDPOINT_H_

namespace grpc {
class CallbackGenericService;
class Service;
}  // namespace grpc

namespace rknnd::transport {

// Lives from before the server starts until after it has shut down.
class GrpcEndpoint {
 public:
  virtual ~GrpcEndpoint() = default;

  // Registered with the server. Its methods are called on gRPC's threads.
  virtual grpc::Service& service() = 0;
  // Where a service handles methods without generated code; null: it has none.
  virtual grpc::CallbackGenericService* generic() { return nullptr; }

  // New work is refused with UNAVAILABLE from now on, or taken again; what runs
  // goes on. Where all work is done by sessions, the core does that. Thread:
  // loop.
  virtual void SetDraining(bool /*draining*/) {}
  // Ends every open call soon: none may keep the server from shutting down.
  // Nothing is posted to the loop after the return. Thread: loop.
  virtual void Stop() = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_ENDPOINT_H_
