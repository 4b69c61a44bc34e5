// What a remote session has for its client, and in which order it leaves.
// Answers go before runs, as they are short; the bytes of runs and of
// attachments take turns, a message of each. Bytes are read from where they are
// when they are about to be sent, so that a client that does not read keeps one
// message of this process and no more.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_OUTBOX_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "daemon/transport/grpc/request_budget.h"
#include "daemon/transport/grpc/session/message.h"
#include "daemon/transport/grpc/session/remote_buffers.h"
#include "daemon/transport/grpc/session/run_slots.h"
#include "daemon/transport/grpc/session/sender.h"
#include "daemon/transport/grpc/session/transfer_budget.h"

namespace rknnd::transport {

// Bytes that follow a frame: of a file, of a buffer, or these.
struct Attachment {
  base::UniqueFd fd;
  std::shared_ptr<RemoteBuffer> buffer;
  std::vector<std::byte> bytes;
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Thread: any; Next one at a time, by whoever writes to the stream.
class Outbox {
 public:
  // `budget`: of all messages on their way; may be null. `peer`: who is named
  // in it.
  Outbox(std::shared_ptr<Sender> sender, RequestBudget* budget,
         std::string peer);
  // Who writes. Once, before anything else.
  void set_sendable(std::weak_ptr<Sendable> sendable);

  // `charge`: of its attachments, may be null.
  void Answer(RemoteFrame frame, std::vector<Attachment> attachments,
              std::shared_ptr<TransferCharge> charge);
  // False: too many wait, or there is no such thing any more.
  bool TellEvent(wire::Frame event);
  void Pong(uint64_t token);
  // Something may have come that is not here: a run's end.
  void Kick();
  // Bytes of attachments that have not all been sent.
  [[nodiscard]] uint64_t attached() const;
  // Drops what waits. Only before a Next that will not be called.
  void Clear();

  struct Message {
    OutgoingBytes bytes;
    bool answers = false;  // a request: with it that is answered in full
    RequestBudget::Hold hold;
  };
  // None: there is nothing; whoever has something kicks. `slots`: null before
  // the session is open.
  absl::StatusOr<std::optional<Message>> Next(RunSlots* slots);

 private:
  //                Kick, by whoever adds
  //   kIdle ------------------------------> kSending: somebody calls Next
  //     ^------- Next finds nothing ----------'
  struct Transfer {
    uint32_t request = 0;
    std::vector<Attachment> attachments;
    std::shared_ptr<TransferCharge> charge;
    size_t at = 0;
    uint64_t sent = 0;  // of attachment `at`
  };
  struct Frame {
    RemoteFrame frame;
    bool event = false;
    Transfer transfer;
  };
  // A run's end on its way.
  struct Leaving {
    RunSlots::Ended ended;
    size_t at = 0;      // outputs that are sent
    uint64_t sent = 0;  // of the next
  };

  // How large a message may be now.
  size_t Room(uint64_t wanted, RequestBudget::Hold* hold);
  absl::StatusOr<std::optional<Message>> NextChunk();
  absl::StatusOr<std::optional<Message>> NextOfEnd();

  const std::shared_ptr<Sender> sender_;
  RequestBudget* const budget_;
  const std::string peer_;
  std::weak_ptr<Sendable> sendable_;

  mutable base::Mutex mutex_;
  bool idle_ RKNND_GUARDED_BY(mutex_) = true;
  std::optional<uint64_t> pong_ RKNND_GUARDED_BY(mutex_);
  std::deque<Frame> frames_ RKNND_GUARDED_BY(mutex_);
  size_t events_ RKNND_GUARDED_BY(mutex_) = 0;  // of frames_
  uint64_t attached_ RKNND_GUARDED_BY(mutex_) = 0;
  // Of whoever calls Next.
  std::deque<Transfer> sending_;
  std::optional<Leaving> leaving_;
  bool chunk_next_ = false;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_OUTBOX_H_
