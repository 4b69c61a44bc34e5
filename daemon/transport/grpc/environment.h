// What the gRPC endpoints work with. All of it outlives them.

#ifndef DAEMON_TRANSPORT_GRPC_ENVIRONMENT_H_
#define DAEMON_TRANSPORT_GRPC_ENVIRONMENT_H_

#include <string>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "daemon/core/service.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/session/board.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/ring/workers.h"

namespace rknnd::transport {

class DeliveryWatch;
class GrpcAuthenticator;
class OverloadLog;
class RequestBudget;
class RequestTurns;

struct GrpcEnvironment {
  base::EventLoop* loop = nullptr;
  const base::Clock* clock = nullptr;
  core::Service* service = nullptr;
  Workers* workers = nullptr;
  EventLog* log = nullptr;
  FailureLog* failures = nullptr;  // any thread may write to it
  core::SessionLimits limits;
  std::string version;                         // of the daemon
  GrpcAuthenticator* authenticator = nullptr;  // who a peer is
  Board* board = nullptr;               // null: nobody answers for the machine
  RequestBudget* budget = nullptr;      // what requests may hold
  RequestTurns* turns = nullptr;        // whose turn it is to have that
  OverloadLog* overload = nullptr;      // requests that nothing was left for
  DeliveryWatch* deliveries = nullptr;  // peers that do not take answers
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_ENVIRONMENT_H_
