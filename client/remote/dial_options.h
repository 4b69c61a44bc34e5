// How a daemon on another machine is reached: what the user said behind tcp://
// and in the environment, and in which words a failure comes back. No gRPC
// here.

#ifndef CLIENT_REMOTE_DIAL_OPTIONS_H_
#define CLIENT_REMOTE_DIAL_OPTIONS_H_

#include <string>

#include "base/values/expected.h"

namespace rknnd::client {

struct DialOptions {
  std::string address;  // as the user wrote it
  std::string target;   // as gRPC wants it
  bool tls = false;
  std::string roots, certificate,
      key;            // PEM texts; empty: none, or the system's
  std::string token;  // empty: none
  std::string service_config;
  bool http_proxy = false;
};

// Reads the environment and the files it names (client/remote/remote.h). A
// token that would cross a network in plain text is refused.
base::Expected<DialOptions> ReadDialOptions(const std::string& address);

// Whether every host of a gRPC target is this machine, whatever a name server
// says.
bool IsLoopback(const std::string& target);

// Why there is no session: `end` is gRPC's word for it, kDeadlineExceeded that
// there was none in time. In the user's words, with what to do.
base::Error DialFailure(const DialOptions& options, const base::Error& end);

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_DIAL_OPTIONS_H_
