// One client of rknnd.v1.Remote: its session, and what becomes of each of its
// messages. The network's counterpart of connection.h and ring_endpoint.h; it
// knows nothing of gRPC, and trusts nothing that comes.
//
//   reader (a thread of gRPC's, one at a time): OnMessage. Data goes into the
//       session's buffers there, runs to its gate; frames go to the loop
//   loop    the session, its requests, its end
//   writer (the sender's or gRPC's, one at a time): the outbox, which reads
//       outputs from the buffers
//
// A frame that is answered later holds up nothing, as long as not too many are.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_TUNNEL_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_TUNNEL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/core/sessions/session.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/grpc/environment.h"
#include "daemon/transport/grpc/session/loop_queue.h"
#include "daemon/transport/grpc/session/message.h"
#include "daemon/transport/grpc/session/outbox.h"
#include "daemon/transport/grpc/session/remote_buffers.h"
#include "daemon/transport/grpc/session/run_slots.h"
#include "daemon/transport/grpc/session/transfer_budget.h"
#include "daemon/transport/grpc/session/uploads.h"
#include "daemon/transport/session/requests.h"

namespace rknnd::transport {

// What all tunnels share.
struct TunnelEnvironment {
  GrpcEnvironment daemon;
  std::shared_ptr<LoopQueue> loop;
  std::shared_ptr<Sender> sender;
  std::shared_ptr<TransferBudget> transfers;
  base::Nanoseconds unread = 0;  // as GrpcOptions::unread
};

// The stream that a tunnel is in. Thread: any.
class TunnelStream {
 public:
  virtual ~TunnelStream() = default;
  // The next message may be read.
  virtual void ReadOn() = 0;
  // The end of the stream; `flush`: after all that is in the outbox.
  virtual void End(const absl::Status& status, bool flush) = 0;
};

class Tunnel final : public std::enable_shared_from_this<Tunnel> {
 public:
  //            Hello is good
  //   kHello ------------------> kOpen
  //     |                          |
  //     | Hello is bad (answered)  | the peer's end, broken protocol, silence,
  //     | or late                  | unread answers, the daemon's stop
  //     v                          v
  //   kEnded <------------------ kEnded
  //
  // kEnded: nothing more is done for the client. Its session is closed on the
  // loop, in the next round or this one, and then the stream ends.
  enum class State { kHello, kOpen, kEnded };

  // `account`: GrpcPeer::account.
  Tunnel(std::shared_ptr<const TunnelEnvironment> environment,
         core::SessionPeer peer, const std::string& account);
  // Once, before anything else.
  void set_stream(std::weak_ptr<TunnelStream> stream);

  // Whether the next message may be read; if not, ReadOn is called when it may.
  // Thread: reader.
  bool OnMessage(FromClient message);
  // A message with `answers` has been written. Thread: writer.
  void OnAnswered();

  // What is to be sent. Thread: writer.
  absl::StatusOr<std::optional<Outbox::Message>> Next();
  [[nodiscard]] Outbox& outbox() { return *outbox_; }

  // Ends the session soon, and then the stream with this. Thread: any.
  void End(const absl::Status& reason);
  // The same at once, by no fault of the client's: nothing can be posted any
  // more. Answers and ends of runs that are there go before it. Thread: loop.
  void EndNow(const absl::Status& reason);
  // It does not begin: nothing is ever read. Thread: any.
  void Abandon() { TakeEnd(); }
  // Looks whether the peer still says and does something. Thread: loop.
  void Tick();

  [[nodiscard]] State state() const;

 private:
  class ClientLog;

  bool OnFrame(RemoteFrame frame);
  bool OnUpload(Uploads::Step step);
  bool OnData(const RemoteData& data);
  bool OnRun(RemoteRun run);
  // Breaks off; false, as what OnMessage says.
  bool Violation(const absl::Status& status);
  absl::Status Submit(const wire::Submission& entry);

  void Hello(const wire::Frame& frame);
  absl::StatusOr<std::vector<std::byte>> Open(const wire::Frame& frame);
  void Handle(wire::Frame frame, std::shared_ptr<TransferCharge> charge);
  void Answer(wire::Verb verb, uint32_t request, Reply reply,
              std::vector<Attachment> attachments = {});
  // What becomes of answers to requests that are about memory of this side.
  Reply KeepBuffer(uint32_t number, Reply reply);
  // Turns a reply's descriptors into what is sent of them.
  absl::Status Attach(std::vector<base::UniqueFd> fds, size_t body,
                      std::vector<Attachment>* attachments,
                      std::shared_ptr<TransferCharge>* charge);
  // `state_` becomes kEnded; false when it was.
  bool TakeEnd();
  // What the session owned goes, and what was to be sent. `reason` OK: nothing
  // that is to be logged.
  void Close(const absl::Status& reason);
  // The session's part of it.
  void CloseSession();
  // Buffers of runs that have ended, where caches must be told of.
  void SyncHeld();

  const std::shared_ptr<const TunnelEnvironment> environment_;
  core::SessionPeer peer_;
  std::weak_ptr<TunnelStream> stream_;
  const bool syncs_;  // buffers are synchronised on the loop
  const std::shared_ptr<Outbox> outbox_;
  const std::shared_ptr<RunSlots> slots_;
  const std::shared_ptr<RemoteBuffers> buffers_;
  Uploads uploads_;
  std::atomic<base::Nanoseconds> heard_;

  mutable base::Mutex mutex_;
  State state_ RKNND_GUARDED_BY(mutex_) = State::kHello;
  bool hello_said_ RKNND_GUARDED_BY(mutex_) = false;
  uint32_t unanswered_ RKNND_GUARDED_BY(mutex_) = 0;
  bool paused_ RKNND_GUARDED_BY(mutex_) = false;  // too many unanswered
  // As Open has left it; a reader's copy is good for ever.
  std::shared_ptr<core::JobGate> gate_ RKNND_GUARDED_BY(mutex_);

  // Of the loop.
  const base::Nanoseconds begun_;
  bool closed_ = false;
  core::SessionId session_id_ = 0;
  std::shared_ptr<core::Session> session_;
  std::optional<Requests> requests_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_TUNNEL_H_
