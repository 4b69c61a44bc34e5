// The verbs of an open session: decodes a request, calls core, encodes the
// answer. Everything in a request was written by a client; a message of the
// wrong shape ends here, wrong values end in core.

#ifndef DAEMON_TRANSPORT_SESSION_REQUESTS_H_
#define DAEMON_TRANSPORT_SESSION_REQUESTS_H_

#include <memory>
#include <utility>

#include "daemon/core/service.h"
#include "daemon/core/sessions/session.h"
#include "daemon/transport/session/board.h"
#include "daemon/transport/session/board_requests.h"
#include "daemon/transport/session/reply.h"
#include "daemon/transport/session/ring/notices.h"
#include "daemon/transport/session/share_sockets.h"
#include "proto/wire/frame.h"

namespace rknnd::transport {

// Thread: loop.
class Requests {
 public:
  // `service` outlives it. `admin`: came in by admin.sock. `doorbell`: of the
  // session's ring, borrowed. `board` and `events`: as BoardRequests has them;
  // `share_sockets`: as ShareSocketRequests.
  Requests(core::Service* service, std::shared_ptr<core::Session> session,
           bool admin, int doorbell, Board* board = nullptr,
           EventCallback events = nullptr,
           ShareSocketOwner* share_sockets = nullptr,
           std::shared_ptr<Notices> notices = nullptr)
      : service_(service),
        session_(std::move(session)),
        admin_(admin),
        doorbell_(doorbell),
        board_(service, board, std::move(events)),
        share_sockets_(share_sockets),
        notices_(std::move(notices)) {}

  // Answers once, at once or later; not at all when the session ends before.
  // Takes the request's fds; those a verb has no use for are closed.
  void Handle(wire::Frame request, const ReplyCallback& reply);

 private:
  void SetCoreMask(const wire::Frame& request, const ReplyCallback& reply);
  void CreateContext(const wire::Frame& request, const ReplyCallback& reply);
  void UploadModel(wire::Frame request, const ReplyCallback& reply);
  Reply SetShapes(const wire::Frame& request);
  void SetMemory(const wire::Frame& request, const ReplyCallback& reply);
  void AllocateBuffer(const wire::Frame& request, const ReplyCallback& reply);
  void ImportBuffer(wire::Frame request, const ReplyCallback& reply);
  void ImportPhysical(const wire::Frame& request, const ReplyCallback& reply);
  Reply BufferKey(const wire::Frame& request);
  Reply MemorySize(const wire::Frame& request);
  Reply PerfDetail(const wire::Frame& request);
  Reply Dump(const wire::Frame& request);
  void Report(const wire::Frame& request, const ReplyCallback& reply);
  void Lease(const wire::Frame& request, const ReplyCallback& reply);
  void Trace(const wire::Frame& request, const ReplyCallback& reply);
  Reply SyncBuffer(const wire::Frame& request);
  Reply RegisterFence(wire::Frame request);
  void Drain(const ReplyCallback& reply);
  void SetFault(const wire::Frame& request, const ReplyCallback& reply);
  Reply ListFaults();
  void ClearFault(const wire::Frame& request, const ReplyCallback& reply);

  core::Service* const service_;
  const std::shared_ptr<core::Session> session_;
  const bool admin_;
  // Whether a trace is being made for this connection: others wait for theirs
  // behind no more than one of each. Shared with the answer, which may come
  // when this has gone.
  const std::shared_ptr<bool> tracing_ = std::make_shared<bool>(false);
  uint32_t traces_ = 0;  // asked for
  const int doorbell_;
  BoardRequests board_;
  ShareSocketRequests share_sockets_;
  const std::shared_ptr<Notices> notices_;  // how fences tell; may be null
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_REQUESTS_H_
