// The same round trip through gRPC: a unary call over a Unix socket to another
// process, an empty message each way. What a serving stack pays before any
// tensor is touched.

#ifndef BENCH_HOTPATH_GRPC_ECHO_H_
#define BENCH_HOTPATH_GRPC_ECHO_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "bench/hotpath/samples.h"

namespace rknnd::bench {

// Serves until killed; does not return. Run it in a process of its own.
[[noreturn]] void ServeGrpcEcho(const std::string& address);

class GrpcEchoClient {
 public:
  // Waits up to a few seconds for the server to appear.
  explicit GrpcEchoClient(const std::string& address);
  ~GrpcEchoClient();

  void Round(int count, Samples* samples);

 private:
  struct Channel;
  std::unique_ptr<Channel> channel_;
};

}  // namespace rknnd::bench

#endif  // BENCH_HOTPATH_GRPC_ECHO_H_
