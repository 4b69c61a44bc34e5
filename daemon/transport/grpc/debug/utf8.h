// Text that clients and models chose, as protobuf's strings must be.

#ifndef DAEMON_TRANSPORT_GRPC_DEBUG_UTF8_H_
#define DAEMON_TRANSPORT_GRPC_DEBUG_UTF8_H_

#include <string>

namespace rknnd::transport {

// Each byte that is part of no UTF-8 character becomes '?'.
std::string Utf8(std::string text);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_DEBUG_UTF8_H_
