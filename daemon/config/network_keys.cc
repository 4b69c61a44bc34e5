// Keys of where the daemon is reached from other machines, by whom, and how
// much it takes. What names files or addresses is checked when they are opened.

#include <limits>

#include "daemon/config/key_table.h"
#include "daemon/config/value_types.h"

namespace rknnd {
namespace {

using transport::GrpcOptions;

// Below this a message has no room for an image.
constexpr uint64_t kLeastMessage = uint64_t{64} << 10;
// Where protobuf's own limit is.
constexpr uint64_t kMostMessage = std::numeric_limits<int32_t>::max();
constexpr uint64_t kLeastGrpcMemory = uint64_t{1} << 20;
// Each may open streams of its own, and takes a descriptor.
constexpr uint32_t kMostConnections = 100'000;
constexpr uint32_t kMostStreams = 10'000;
constexpr uint32_t kMostRequests = 1'000'000;
constexpr Seconds kGrpcWait{1, 3600};

Texts OneOrSeveral() {
  Texts texts;
  texts.one = true;
  return texts;
}

}  // namespace

void AddNetworkKeys(KeyTable<Config>& table) {
  table
      .Restart("grpc.listen", OneOrSeveral(),
               At<&Config::grpc, &GrpcOptions::addresses>,
               "Where gRPC is served: `HOST:PORT`, `[V6]:PORT`, or "
               "`unix:PATH`, whose peers are operators.")
      .Unset("none: no gRPC")
      .Example("[\"unix:/run/rknnd/daemon/grpc.sock\"]");
  table.Restart("grpc.insecure", Flag(),
                At<&Config::grpc, &GrpcOptions::insecure>,
                "No encryption beyond this machine, and everybody there an "
                "operator: for a closed lab.");
  table
      .Restart("grpc.certificate", Path(),
               At<&Config::grpc, &GrpcOptions::certificate>,
               "Chain of certificates in PEM; with it every TCP address "
               "speaks TLS.")
      .Unset("none")
      .Example("\"/etc/rknnd/tls.crt\"");
  table
      .Restart("grpc.key", Path(), At<&Config::grpc, &GrpcOptions::key>,
               "The certificate's key in PEM. It belongs to user `rknnd` and "
               "has mode 0600.")
      .Unset("none")
      .Example("\"/etc/rknnd/tls.key\"");
  table
      .Restart("grpc.client_ca", Path(),
               At<&Config::grpc, &GrpcOptions::client_ca>,
               "Certificates in PEM: clients must show one that one of these "
               "has signed.")
      .Unset("none")
      .Example("\"/etc/rknnd/clients.crt\"");
  table
      .Restart("grpc.operators", OneOrSeveral(),
               At<&Config::grpc, &GrpcOptions::operators>,
               "Names of clients' certificates that may do everything.")
      .Unset("none")
      .Example("[\"admin.example.org\"]");
  table
      .Restart("grpc.tokens", Path(), At<&Config::grpc, &GrpcOptions::tokens>,
               "File of lines `ROLE NAME TOKEN`. It belongs to user `rknnd` "
               "and has mode 0600.")
      .Unset("none")
      .Example("\"/etc/rknnd/tokens\"");
  table.Restart("grpc.message_bytes", Bytes(kLeastMessage, kMostMessage),
                At<&Config::grpc, &GrpcOptions::message_bytes>,
                "Size of one message.");
  table.Restart("grpc.memory", Bytes(kLeastGrpcMemory),
                At<&Config::grpc, &GrpcOptions::memory>,
                "What all requests may have together; at least twice "
                "`message_bytes`.");
  table.Restart("grpc.connections", Number(1, kMostConnections),
                At<&Config::grpc, &GrpcOptions::connections>,
                "Connections by TCP; as many again by `unix:`.");
  table.Restart("grpc.streams", Number(1, kMostStreams),
                At<&Config::grpc, &GrpcOptions::streams>,
                "Open calls of one connection.");
  table.Restart("grpc.requests", Number(1, kMostRequests),
                At<&Config::grpc, &GrpcOptions::requests>,
                "Requests that are read or run; as many again may wait "
                "unread.");
  table.Restart("grpc.keepalive", kGrpcWait,
                At<&Config::grpc, &GrpcOptions::keepalive>,
                "How long a peer may be silent before it is asked; it is "
                "disconnected half as long after.");
  table.Restart("grpc.unread", kGrpcWait,
                At<&Config::grpc, &GrpcOptions::unread>,
                "A peer that does not take its answers for so long is cut "
                "off.");
  table.Restart("grpc.advertise", Flag(),
                At<&Config::grpc, &GrpcOptions::advertise>,
                "Whether the local network is told of this board, by Avahi.");
  table
      .Live("metrics.listen", Text(), At<&Config::metrics>,
            "Where Prometheus asks, `HOST:PORT`.")
      .Unset("none")
      .Example("\"127.0.0.1:9464\"");
}

}  // namespace rknnd
