// The daemon under measurement, with a gRPC port, and what processes cost.

#ifndef BENCH_REMOTE_BOARD_H_
#define BENCH_REMOTE_BOARD_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/ctl/control_connection.h"
#include "client/launch/launcher.h"

namespace rknnd::bench {

// "127.0.0.1:PORT" that was free a moment ago.
std::string FreeAddress();

// Thread: one. Throws std::runtime_error.
class RemoteBoard {
 public:
  // On the software NPU, paced as an RK3588 where `paced`.
  explicit RemoteBoard(bool paced, const std::vector<std::string>& more = {});

  [[nodiscard]] const std::string& grpc() const { return grpc_; }
  [[nodiscard]] std::string tcp_target() const { return "tcp://" + grpc_; }
  [[nodiscard]] const std::string& local_target() const {
    return daemon_->target();
  }
  [[nodiscard]] pid_t pid() const { return daemon_->pid(); }
  wire::Report Ask(rknnd_v1_ReportKind kind);

 private:
  const std::string grpc_ = FreeAddress();
  std::optional<client::PrivateDaemon> daemon_;
};

// What a process has used of CPUs since its start, and what memory it has.
double CpuSeconds(pid_t pid);
uint64_t ResidentBytes(pid_t pid);

}  // namespace rknnd::bench

#endif  // BENCH_REMOTE_BOARD_H_
