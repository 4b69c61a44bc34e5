// See the header: a compromised peer is the normal case here.

#include "daemon/transport/session/connection.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/transport/session/hello.h"
#include "daemon/transport/session/peer_origin.h"
#include "daemon/transport/session/translate.h"
#include "proto/wire/features.h"

namespace rknnd::transport {
namespace {

// A client says Hello as its first act.
constexpr base::Nanoseconds kHelloDeadline = 5 * base::kSecond;
// Answers kept for a client that does not read, beyond what the kernel keeps
// for it. An honest client waits for each answer.
constexpr size_t kMaxUnsentFrames = 64;
constexpr size_t kMaxUnsentBytes = size_t{1} << 20;
// Lines of log are dropped before that: nobody waits for them.
constexpr size_t kMaxUnsentBeforeLog = 16;
// Replies in memfds that the client has not taken: two of the largest.
constexpr size_t kMaxUnreadMemfdBytes = 2 * wire::kMaxMemfdBody;
// Models being compiled, for one client. Each holds an fd.
constexpr uint32_t kMaxUnanswered = 32;
// A socket that says it is writable and then is not, so often in a row, has a
// lasting reason (no fds left): retrying would only burn time.
constexpr uint32_t kMaxFailedFlushes = 8;
// Log lines on their way to the loop.
constexpr uint32_t kMaxPostedLines = 64;

}  // namespace

// Carries core's lines to the loop, from whichever thread they come.
class Connection::ClientLog final : public core::LogSink {
 public:
  ClientLog(base::EventLoop* loop, std::weak_ptr<Connection> connection,
            uint32_t level)
      : loop_(loop), connection_(std::move(connection)), level_(level) {}

  void Log(uint32_t level, const std::string& text) override {
    if (level > level_) return;
    if (posted_->fetch_add(1) >= kMaxPostedLines) {
      posted_->fetch_sub(1);
      return;
    }
    wire::Frame frame;
    frame.verb = wire::Verb::kLogEvent;
    frame.kind = wire::FrameKind::kEvent;
    wire::LogEvent event{};
    event.level = level;
    wire::SetText(event.text, text);
    auto body = wire::Encode(event);
    if (!body.ok()) return;
    // std::function copies what it holds, and a frame cannot be copied.
    auto shared = std::make_shared<wire::Frame>(std::move(frame));
    shared->body = *std::move(body);
    loop_->Post([connection = connection_, posted = posted_, shared] {
      posted->fetch_sub(1);
      const auto self = connection.lock();
      if (self == nullptr || self->state_ != State::kOpen) return;
      if (self->unsent_.size() >= kMaxUnsentBeforeLog) return;
      self->Send(std::move(*shared));
    });
  }

 private:
  base::EventLoop* const loop_;
  const std::weak_ptr<Connection> connection_;
  const uint32_t level_;
  const std::shared_ptr<std::atomic<uint32_t>> posted_ =
      std::make_shared<std::atomic<uint32_t>>(0);
};

Connection::Connection(const Environment& environment, ConnectionOwner* owner,
                       base::UniqueFd socket, core::SessionPeer peer)
    : environment_(environment),
      owner_(owner),
      socket_(std::make_shared<base::UniqueFd>(std::move(socket))),
      peer_(std::move(peer)) {
  if (environment_.user_threads == nullptr || peer_.admin ||
      peer_.pid == getpid()) {
    return;
  }
  closes_for_ = peer_.allocation != nullptr
                    ? absl::StrCat("share socket ", peer_.allocation->name)
                    : absl::StrCat("user ", peer_.uid);
  if (environment_.notices != nullptr) {
    notices_ = environment_.notices->Of(closes_for_);
  }
  if (environment_.paces != nullptr) {
    pace_ = environment_.paces->Of(closes_for_, environment_.loop->Now());
  }
}

Connection::~Connection() = default;

absl::Status Connection::Start(base::UniqueFd process) {
  watched_events_ = EPOLLIN;
  RKNND_ASSIGN_OR_RETURN(socket_watch_,
                         base::ToStatusOr(environment_.loop->Watch(
                             socket_->get(), watched_events_,
                             [this](uint32_t events) { OnSocket(events); })));
  process_ = std::move(process);
  if (process_.valid()) {
    // A forked child may hold the socket open after its parent, our client,
    // is gone: the end of the process is the end of the session.
    RKNND_ASSIGN_OR_RETURN(
        process_watch_,
        base::ToStatusOr(
            environment_.loop->Watch(process_.get(), EPOLLIN, [this](uint32_t) {
              Close(absl::CancelledError("the client's process has ended"));
            })));
  }
  hello_timer_ = environment_.loop->RunAfter(kHelloDeadline, [this] {
    hello_timer_ = 0;
    Close(absl::DeadlineExceededError("no Hello in time"));
  });
  return absl::OkStatus();
}

template <class Handle>
void Connection::Guarded(const Handle& handle) {
  if (closes_for_.empty()) return handle();
  std::vector<base::UniqueFd> left;
  {
    const ClosesElsewhere elsewhere(&left);
    handle();
  }
  environment_.user_threads->Close(closes_for_, std::move(left));
}

bool Connection::IsToldLate() const {
  return notices_ != nullptr && notices_->late();
}

void Connection::Close(const absl::Status& reason) {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();
  Guarded([&] { End(reason); });
}

void Connection::End(const absl::Status& reason) {
  const bool was_open = state_ == State::kOpen;
  if (pace_ && !owner_->IsAlone(this)) {
    pace_->CountEnd(environment_.loop->Now(), absl::IsDataLoss(reason));
  }
  // 1. Nothing comes in any more.
  state_ = State::kClosed;
  if (hello_timer_ != 0) environment_.loop->CancelTimer(hello_timer_);
  if (pause_timer_ != 0) environment_.loop->CancelTimer(pause_timer_);
  if (socket_watch_ != 0) environment_.loop->Unwatch(socket_watch_);
  if (process_watch_ != 0) environment_.loop->Unwatch(process_watch_);
  // 2. No entry of the ring is taken any more.
  if (was_open) environment_.workers->Remove(session_id_);
  // 3. What the session owned goes.
  requests_.reset();
  session_.reset();
  if (was_open) environment_.service->CloseSession(session_id_);
  // 4. The peer sees the end.
  if (!reason.ok() && !absl::IsCancelled(reason)) {
    environment_.failures->Write(peer_, session_id_, "connection", reason);
    if (was_open && log_ != nullptr && !IsToldLate()) {
      wire::LogEvent event{};
      wire::SetText(event.text, absl::StrCat("disconnected: ",
                                             std::string(reason.message())));
      auto body = wire::Encode(event);
      wire::Frame frame;
      frame.verb = wire::Verb::kLogEvent;
      frame.kind = wire::FrameKind::kEvent;
      if (body.ok()) frame.body = *std::move(body);
      // As far as it listens; the connection is over either way.
      static_cast<void>(
          wire::SendFrame(socket_->get(), frame, base::Block::kNo).ok());
    }
  }
  unsent_.clear();
  ring_.reset();
  log_.reset();
  // Now, whenever it is closed: what lies in it unread goes with it.
  if (!closes_for_.empty() && !IsToldLate())
    shutdown(socket_->get(), SHUT_RDWR);
  socket_.reset();
  process_.reset();
  owner_->OnClosed(this);
}

void Connection::OnSocket(uint32_t events) {
  const auto self = shared_from_this();
  if ((events & EPOLLOUT) != 0) Flush();
  if (closing_) return;
  if ((events & EPOLLIN) != 0) {
    if (Pauses() || IsTooFast()) return;
    Guarded([this] { Receive(); });
    if (state_ != State::kClosed && !closes_for_.empty() &&
        !environment_.user_threads->HasRoom(closes_for_)) {
      Close(absl::ResourceExhaustedError(absl::StrCat(
          closes_for_, " has sent more than ", UserThreads::kMostOfOwner,
          " descriptors that cannot be closed: a connection that lingers, or "
          "a file system, holds them up")));
    }
    return;
  }
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    Close(absl::CancelledError("the client is gone"));
  }
}

bool Connection::Pauses() {
  if (pause_timer_ != 0) return true;
  const base::Nanoseconds pause = notices_ == nullptr ? 0 : notices_->Pause();
  if (pause == 0) return false;
  PauseFor(pause);
  return true;
}

bool Connection::IsTooFast() {
  // Nobody is disturbed by who is alone.
  if (!pace_ || owner_->IsAlone(this)) return false;
  const base::Nanoseconds now = environment_.loop->Now();
  const base::Nanoseconds pause =
      state_ == State::kHello ? pace_->HelloWait(now) : pace_->TakeRequest(now);
  if (pause == 0) return false;
  PauseFor(pause);
  return true;
}

void Connection::PauseFor(base::Nanoseconds pause) {
  pause_timer_ = environment_.loop->RunAfter(pause, [this] {
    pause_timer_ = 0;
    // Others of the user's may have been received meanwhile.
    Pauses();
    UpdateEvents();
  });
  UpdateEvents();
}

void Connection::Receive() {
  // One frame for each turn of the loop: no client is served twice before
  // another is served once.
  const auto receive = [this] {
    return wire::ReceiveFrame(socket_->get(), base::Block::kNo);
  };
  auto result = notices_ == nullptr ? receive() : notices_->Now(receive);
  if (!result.ok()) return Close(base::ToStatus(result.error()));
  switch (result->kind) {
    case wire::FrameResult::Kind::kWouldBlock:
      return;
    case wire::FrameResult::Kind::kEndOfFile:
      return Close(absl::CancelledError("the client has closed its end"));
    case wire::FrameResult::Kind::kFrame:
      return OnFrame(std::move(result->frame));
  }
}

void Connection::OnFrame(wire::Frame frame) {
  if (frame.kind != wire::FrameKind::kRequest) {
    return Close(
        absl::DataLossError("protocol: a client sends nothing but requests"));
  }
  if (state_ == State::kHello) {
    if (frame.verb == wire::Verb::kHello) return OnHello(frame);
    return RefuseHello(frame,
                       absl::FailedPreconditionError(absl::StrCat(
                           "'", VerbName(frame.verb), "' before 'Hello'")));
  }
  ++unanswered_;
  const wire::Verb verb = frame.verb;
  const uint32_t request = frame.request;
  requests_->Handle(std::move(frame),
                    [weak = weak_from_this(), verb, request](Reply reply) {
                      const auto self = weak.lock();
                      if (self == nullptr || self->state_ != State::kOpen)
                        return;
                      --self->unanswered_;
                      self->Answer(verb, request, std::move(reply));
                    });
  if (state_ == State::kOpen) UpdateEvents();
}

void Connection::OnHello(const wire::Frame& frame) {
  auto hello = wire::Decode<wire::Hello>(frame.body);
  if (!hello.ok()) {
    return RefuseHello(frame, base::ToStatus(hello.error()));
  }
  peer_.comm = Printable(hello->comm);
  // Only now: many may connect that never say Hello, and /proc is no small part
  // of what one costs.
  PeerOrigin origin = FindPeerOrigin(peer_.pid);
  peer_.unit = std::move(origin.unit);
  peer_.container = std::move(origin.container);
  wire::Frame welcome;
  welcome.verb = wire::Verb::kHello;
  welcome.kind = wire::FrameKind::kReply;
  welcome.request = frame.request;
  if (const absl::Status opened = Open(*hello, welcome); !opened.ok()) {
    return RefuseHello(frame, opened);
  }
  if (hello_timer_ != 0) environment_.loop->CancelTimer(hello_timer_);
  hello_timer_ = 0;
  state_ = State::kOpen;
  owner_->OnOpened(this);
  Send(std::move(welcome));
}

absl::Status Connection::Open(const wire::Hello& hello, wire::Frame& welcome) {
  core::Service& service = *environment_.service;
  RKNND_ASSIGN_OR_RETURN(const Greeting greeting, Greet(hello, service));
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<RingEndpoint> ring,
                         RingEndpoint::Create());
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd ring_fd,
                         base::ToStatusOr(base::Duplicate(ring->memory_fd())));
  RKNND_ASSIGN_OR_RETURN(
      base::UniqueFd doorbell_fd,
      base::ToStatusOr(base::Duplicate(ring->doorbell_fd())));
  std::shared_ptr<ClientLog> log;
  if ((greeting.features & wire::kFeatureLogEvents) != 0) {
    log = std::make_shared<ClientLog>(environment_.loop, weak_from_this(),
                                      hello.log_level);
  }
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<core::Session> session,
                         service.OpenSession(peer_, ring, log));
  ring->Open(session->gate(), (greeting.features & wire::kFeatureSpin) != 0);
  if (const absl::Status added = environment_.workers->Add(
          session->id(), ring,
          closes_for_.empty() ? absl::StrCat("user ", peer_.uid) : closes_for_);
      !added.ok()) {
    service.CloseSession(session->id());
    return added;
  }

  auto body = EncodeWelcome(greeting, *session, service, service.limits(),
                            environment_.workers->spin());
  if (!body.ok()) {
    environment_.workers->Remove(session->id());
    service.CloseSession(session->id());
    return body.status();
  }
  welcome.body = *std::move(body);
  welcome.fds.push_back(std::move(ring_fd));
  welcome.fds.push_back(std::move(doorbell_fd));

  session_id_ = session->id();
  requests_.emplace(
      &service, session, peer_.admin, ring->doorbell_fd(), environment_.board,
      [weak = weak_from_this()](wire::Frame event) {
        const auto self = weak.lock();
        return self != nullptr && self->TakeEvent(std::move(event));
      },
      environment_.share_sockets, notices_);
  session_ = std::move(session);
  ring_ = std::move(ring);
  log_ = std::move(log);
  return absl::OkStatus();
}

void Connection::RefuseHello(const wire::Frame& request,
                             const absl::Status& status) {
  wire::Frame refusal;
  refusal.verb = request.verb;
  refusal.kind = wire::FrameKind::kReply;
  refusal.request = request.request;
  refusal.code = static_cast<base::Code>(status.raw_code());
  refusal.body = wire::EncodeFailure(std::string(status.message()));
  // The socket is empty, so that this goes out or the peer is gone.
  static_cast<void>(
      wire::SendFrame(socket_->get(), refusal, base::Block::kNo).ok());
  Close(status);
}

void Connection::Answer(wire::Verb verb, uint32_t request, Reply reply) {
  size_t unread = reply.uncharged;
  if (reply.body.size() > wire::kMaxInlineBody) unread += reply.body.size();
  if (reply.status.ok() && unread > 0 && !MayHoldUnread(unread)) {
    reply.status = absl::ResourceExhaustedError(
        "too many large answers that this client has not read yet");
  }
  wire::Frame frame;
  frame.verb = verb;
  frame.kind = wire::FrameKind::kReply;
  frame.request = request;
  if (reply.status.ok()) {
    frame.body = std::move(reply.body);
    frame.fds = std::move(reply.fds);
  } else {
    // Hash first: a model that is not there yet is how most sessions begin, and
    // so is one whose weights another one shares.
    const bool is_normal = (verb == wire::Verb::kCreateContext ||
                            verb == wire::Verb::kUploadModel) &&
                           absl::IsNotFound(reply.status);
    if (!is_normal) {
      environment_.failures->Write(peer_, session_id_, VerbName(verb),
                                   reply.status);
    }
    frame.code = static_cast<base::Code>(reply.status.raw_code());
    frame.body = wire::EncodeFailure(std::string(reply.status.message()));
  }
  Send(std::move(frame));
}

bool Connection::MayHoldUnread(size_t bytes) {
  int unread = 0;
  // Zero once the peer has taken all that was sent.
  if (unsent_.empty() && ioctl(socket_->get(), SIOCOUTQ, &unread) == 0 &&
      unread == 0) {
    unread_memfd_bytes_ = 0;
  }
  // A first one may be of any size.
  if (unread_memfd_bytes_ != 0 &&
      unread_memfd_bytes_ + bytes > kMaxUnreadMemfdBytes) {
    return false;
  }
  unread_memfd_bytes_ += bytes;
  return true;
}

void Connection::Send(wire::Frame frame) {
  if (closing_) return;
  unsent_bytes_ += frame.body.size();
  unsent_.push_back(std::move(frame));
  // One that waits already shows that the socket is full.
  if (unsent_.size() == 1) Flush();
  if (unsent_.size() > kMaxUnsentFrames ||
      (unsent_.size() > 1 && unsent_bytes_ > kMaxUnsentBytes)) {
    return CloseSoon(absl::ResourceExhaustedError(absl::StrCat(
        "the client does not read its answers: ", unsent_.size(), " wait")));
  }
  UpdateEvents();
}

bool Connection::TakeEvent(wire::Frame event) {
  if (state_ != State::kOpen || closing_) return false;
  if (unsent_.size() >= kMaxUnsentBeforeLog) return false;
  Send(std::move(event));
  return true;
}

void Connection::Flush() {
  while (!unsent_.empty() && !sends_late_) {
    if (IsToldLate()) {
      SendLate();
      break;
    }
    const wire::Frame& frame = unsent_.front();
    const auto send = [&] {
      return wire::SendFrame(socket_->get(), frame, base::Block::kNo);
    };
    if (!OnSent(notices_ == nullptr ? send() : notices_->Now(send),
                frame.body.size())) {
      break;
    }
  }
  UpdateEvents();
}

void Connection::SendLate() {
  sends_late_ = true;
  // Its place is kept for it.
  const auto frame = std::make_shared<wire::Frame>(std::move(unsent_.front()));
  const bool begun = notices_->Later(
      [socket = socket_, frame] {
        return wire::SendFrame(socket->get(), *frame, base::Block::kNo);
      },
      [weak = weak_from_this(), frame](const base::Expected<void>& sent) {
        const auto self = weak.lock();
        if (self == nullptr || self->closing_ ||
            self->state_ == State::kClosed) {
          return;
        }
        self->sends_late_ = false;
        const size_t bytes = frame->body.size();
        self->unsent_.front() = std::move(*frame);
        if (self->OnSent(sent, bytes)) return self->Flush();
        self->UpdateEvents();
      });
  if (!begun) {
    CloseSoon(absl::ResourceExhaustedError(
        "the client is told late, and does not read what it is told"));
  }
}

bool Connection::OnSent(const base::Expected<void>& sent, size_t bytes) {
  if (!sent.ok()) {
    if (sent.error().code != base::Code::kResourceExhausted) {
      // Gone in the middle: no fault of anybody's.
      CloseSoon(absl::CancelledError(sent.error().message));
    } else if (++failed_flushes_ > kMaxFailedFlushes) {
      CloseSoon(base::ToStatus(sent.error()));
    }
    return false;
  }
  failed_flushes_ = 0;
  unsent_bytes_ -= bytes;
  unsent_.pop_front();
  return true;
}

void Connection::CloseSoon(const absl::Status& reason) {
  if (std::exchange(closing_, true)) return;
  unsent_.clear();
  unsent_bytes_ = 0;
  UpdateEvents();
  environment_.loop->Post([weak = weak_from_this(), reason] {
    const auto self = weak.lock();
    if (self != nullptr) self->Close(reason);
  });
}

void Connection::UpdateEvents() {
  uint32_t events = 0;
  // A client with too much in the making is not listened to meanwhile.
  if (unanswered_ < kMaxUnanswered && !closing_ && pause_timer_ == 0) {
    events |= EPOLLIN;
  }
  if (!unsent_.empty() && !sends_late_) events |= EPOLLOUT;
  if (events == watched_events_) return;
  watched_events_ = events;
  environment_.loop->ChangeEvents(socket_watch_, events);
}

}  // namespace rknnd::transport
