// [grpc] and `repository` of [models]: where the daemon is reached from other
// machines, and by whom. Used by config.cc.

#ifndef DAEMON_CONFIG_GRPC_H_
#define DAEMON_CONFIG_GRPC_H_

#include "daemon/config/keys.h"
#include "daemon/transport/grpc/options.h"

namespace rknnd {

// Keys of [grpc], which set `options`. What names files or addresses is checked
// when they are opened.
Setters GrpcKeys(transport::GrpcOptions& options);

// Ranges of values that the command line can give, too, and what does not go
// together.
absl::Status CheckGrpc(const transport::GrpcOptions& options);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_GRPC_H_
