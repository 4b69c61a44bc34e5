// Requests whose attachments are still coming: collects chunks until a frame is
// whole, and gives it out as if it had come by the session socket, a sealed
// memfd for each model. Sizes, order and pace are the peer's.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_UPLOADS_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_UPLOADS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/transport/grpc/session/message.h"
#include "daemon/transport/grpc/session/transfer_budget.h"
#include "proto/wire/frame.h"

namespace rknnd::transport {

// Thread: any.
class Uploads {
 public:
  // At once, of one session: each holds descriptors.
  static constexpr size_t kMost = 4;

  Uploads(std::shared_ptr<TransferBudget> budget, uint64_t model_bytes)
      : budget_(std::move(budget)), model_bytes_(model_bytes) {}

  // A frame that is whole. `charge` is held until it is answered.
  struct Whole {
    wire::Frame frame;
    std::shared_ptr<TransferCharge> charge;
  };
  // One that is answered at once, and the rest of whose chunks is ignored.
  struct Refused {
    wire::Verb verb = wire::Verb::kHello;
    uint32_t request = 0;
    absl::Status why;
  };
  struct Step {
    absl::Status violation;  // not OK: the peer is to be disconnected
    std::optional<Whole> whole;
    std::optional<Refused> refused;
  };
  // A request with its attachments to come, or with none.
  Step Begin(RemoteFrame frame, base::Nanoseconds now);
  Step Append(const RemoteChunk& chunk, base::Nanoseconds now);

  // Takes those away that have had no chunk since `when`.
  std::vector<Refused> TakeStalled(base::Nanoseconds when);
  void Clear();

 private:
  //                 a chunk              the last chunk
  //   Begin --> coming ----> coming ... ----------------> Whole
  //     |          | no room, stalled
  //     v          v
  //   Refused: its further chunks are ignored
  struct Upload {
    RemoteFrame request;
    size_t at = 0;         // the attachment that is coming
    uint64_t arrived = 0;  // of it
    base::Nanoseconds last = 0;
    std::shared_ptr<TransferCharge> charge;
  };
  using Coming = std::map<uint32_t, Upload>;

  [[nodiscard]] absl::Status Check(const RemoteFrame& request) const;
  Refused Refuse(const RemoteFrame& request, absl::Status why)
      RKNND_REQUIRES(mutex_);
  // Makes what the next bytes go to, and ends what is complete.
  absl::Status Advance(Upload& upload);
  static absl::Status Keep(Upload& upload, const RemoteChunk& chunk);
  [[nodiscard]] static bool IsBody(const Upload& upload);

  const std::shared_ptr<TransferBudget> budget_;
  const uint64_t model_bytes_;
  base::Mutex mutex_;
  Coming coming_ RKNND_GUARDED_BY(mutex_);
  // The last requests that were refused; 0: none.
  std::array<uint32_t, 64> refused_ RKNND_GUARDED_BY(mutex_){};
  size_t next_refused_ RKNND_GUARDED_BY(mutex_) = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_UPLOADS_H_
