#include "daemon/transport/grpc/relay/relayed_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/socket.h"

namespace rknnd::transport {
namespace {

// So often it goes on by itself before others have their turn.
constexpr int kRounds = 4;
// Of a message, without a copy: at one time, and at least, as it takes more
// system calls than to read and to write.
constexpr size_t kMostMoved = 256 << 10;
constexpr size_t kLeastMoved = 16 << 10;
// More of it is worth waiting for.
constexpr size_t kPiece = 64 << 10;
// For what gRPC has left behind.
constexpr base::Nanoseconds kLastAnswers = 2 * base::kSecond;

bool Later() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

RelayedConnection::RelayedConnection(Relay* relay,
                                     AcceptedConnection connection,
                                     std::string name)
    : relay_(relay),
      connection_(std::move(connection)),
      name_(std::move(name)),
      account_(&relay->memory_, connection_.host),
      resets_(relay->ResetsOf(connection_.host)),
      guard_(relay->options_.limits, relay->clock_, this) {}

void RelayedConnection::Begin() {
  timer_ = relay_->loop_->RunAfter(relay_->options_.handshake, [this] {
    timer_ = 0;
    End();
  });
  const int fd = connection_.fd.get();
  if (relay_->tls_ == nullptr || connection_.local) {
    stream_ = std::make_unique<PlainStream>(fd);
    return Greet();
  }
  stream_ = relay_->tls_->Accept(fd);
  if (stream_ == nullptr) return End();
  Handshake();
}

void RelayedConnection::Handshake() {
  const ssize_t begun = stream_->Begin();
  if (begun == PeerStream::kLater) return AwaitPeer();
  if (begun != 0) return End();
  Greet();
}

void RelayedConnection::Greet() {
  stage_ = Stage::kGreeting;
  while (const size_t due = guard_.greeting_due()) {
    const std::span<std::byte> scratch = relay_->Scratch(due);
    const ssize_t got = stream_->Read(scratch);
    if (got == PeerStream::kLater) return AwaitPeer();
    if (got <= 0) return End();
    const auto read = scratch.first(static_cast<size_t>(got));
    const Http2Guard::Verdict verdict = guard_.FromClient(read);
    if (verdict.next != Http2Guard::Next::kMore) return Cut(verdict.why);
    Keep(in_, read);
    passed_ += read.size();
  }
  relay_->loop_->CancelTimer(std::exchange(timer_, 0));
  Connect();
}

void RelayedConnection::AwaitPeer() {
  Watch(watch_peer_, connection_.fd.get(),
        stream_->wants_to_write() ? EPOLLOUT : EPOLLIN,
        &RelayedConnection::OnPeer);
}

void RelayedConnection::Connect() {
  auto pair = base::NamedPair(name_);
  if (!pair.ok()) {
    relay_->failures_->Note(absl::StrCat("gRPC peer '", connection_.address,
                                         "': ", pair.error().message));
    return End();
  }
  grpc_ = std::move(pair->first);
  relay_->peers_->Add(name_, {connection_.address, stream_->names()});
  stage_ = Stage::kConnected;
  relay_->give_(std::move(pair->second));
  if (PumpIn()) WatchBoth();
}

void RelayedConnection::OnPeer(uint32_t events) {
  if (stage_ == Stage::kHandshake) return Handshake();
  if (stage_ == Stage::kGreeting) return Greet();
  // It hears no answer any more, so that what it has asked is not to be worked
  // on.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return End();
  if ((events & EPOLLOUT) != 0 && !PumpOut()) return;
  if (PumpIn()) WatchBoth();
}

void RelayedConnection::OnGrpc(uint32_t events) {
  if ((events & (EPOLLHUP | EPOLLERR)) != 0 && !grpc_done_) {
    grpc_done_ = true;
    timer_ = relay_->loop_->RunAfter(kLastAnswers, [this] {
      timer_ = 0;
      End();
    });
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !PumpOut()) return;
  // Answers end calls and waiting.
  if (((events & EPOLLOUT) != 0 || held_) && !PumpIn()) return;
  WatchBoth();
}

void RelayedConnection::Retry() {
  if (PumpIn()) WatchBoth();
}

bool RelayedConnection::PumpIn() {
  for (int round = 0; round < kRounds || stream_->pending(); ++round) {
    if (!in_.empty()) {
      const auto took = PassOn(in_.rest());
      if (!took.has_value()) return false;
      Drop(in_, *took);
      if (!in_.empty()) return true;
    }
    if (peer_done_ || grpc_done_) return true;
    const std::optional<ssize_t> moved = MoveUnread();
    // What could be moved is not read.
    const std::span<std::byte> scratch =
        MayMove() ? relay_->Scratch(guard_.before_unread(kLeastMoved))
                  : relay_->Scratch();
    const ssize_t got = moved.has_value() ? *moved : stream_->Read(scratch);
    if (got == PeerStream::kLater) return true;
    if (got == PeerStream::kBroken) {
      End();
      return false;
    }
    if (got == 0) {
      peer_done_ = true;
      shutdown(grpc_.get(), SHUT_WR);
      return true;
    }
    if (moved.has_value()) continue;
    const auto read = scratch.first(static_cast<size_t>(got));
    const auto took = PassOn(read);
    if (!took.has_value()) return false;
    if (*took < read.size()) {
      Keep(in_, read.subspan(*took));
      return true;
    }
    if (read.size() < scratch.size() && !stream_->pending()) return true;
  }
  return true;
}

bool RelayedConnection::MayMove() const {
  return stream_->plain_fd() >= 0 && relay_->pipe_.works() &&
         !relay_->KeepsMuch();
}

std::optional<ssize_t> RelayedConnection::MoveUnread() {
  const size_t most = std::min(guard_.unread(), kMostMoved);
  const size_t asked_for = std::exchange(asks_for_, 1);
  full_ = false;
  if (!MayMove() || passed_ > 0 || mark_due_ || most < kLeastMoved) {
    return std::nullopt;
  }
  const int from = stream_->plain_fd();
  // Once it was asked, the socket says when: it may have no room for so many.
  const size_t piece = std::min(most, kPiece);
  if (asked_for == 1 && PayloadPipe::Waiting(from) < piece) {
    asks_for_ = piece;
    return PeerStream::kLater;
  }
  full_ = !PayloadPipe::Takes(grpc_.get());
  if (full_) return PeerStream::kLater;
  std::vector<std::byte> rest;
  const ssize_t moved = relay_->pipe_.Move(from, grpc_.get(), most, &rest);
  if (moved == PayloadPipe::kCannotMove) return std::nullopt;
  if (moved > 0) guard_.MovedUnread(static_cast<size_t>(moved));
  if (!rest.empty()) {
    Keep(in_, rest);
    passed_ = rest.size();
  }
  return moved;
}

std::optional<size_t> RelayedConnection::PassOn(
    std::span<const std::byte> bytes) {
  held_ = false;
  lacks_room_ = calls_end_ = false;
  size_t done = 0;
  while (done < bytes.size() || (passed_ == 0 && mark_due_)) {
    if (passed_ == 0 && mark_due_) {
      const ssize_t sent =
          send(grpc_.get(), Http2Guard::kMark.data(), Http2Guard::kMark.size(),
               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && Later()) return done;
      mark_due_ = false;
      continue;
    }
    if (passed_ == 0) {
      const Http2Guard::Verdict verdict =
          guard_.FromClient(bytes.subspan(done));
      CountStreams();
      if (verdict.next == Http2Guard::Next::kEnd) {
        Cut(verdict.why);
        return std::nullopt;
      }
      passed_ = verdict.pass;
      mark_due_ = verdict.next == Http2Guard::Next::kMark;
      if (passed_ == 0) {
        held_ = true;
        // What else it waits for comes as an answer of gRPC's.
        if (lacks_room_ || calls_end_) relay_->Wait(this);
        return done;
      }
    }
    const ssize_t sent = send(grpc_.get(), bytes.data() + done, passed_,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (Later()) return done;
      // gRPC has closed it: what it said last is still to be sent.
      passed_ = 0;
      return bytes.size();
    }
    done += static_cast<size_t>(sent);
    passed_ -= static_cast<size_t>(sent);
    if (passed_ > 0 && done < bytes.size()) return done;
  }
  return done;
}

bool RelayedConnection::PumpOut() {
  for (int round = 0; round < kRounds || grpc_done_; ++round) {
    if (!out_.empty()) {
      const ssize_t sent = stream_->Write(out_.rest());
      if (sent == PeerStream::kLater) return true;
      if (sent < 0) {
        End();
        return false;
      }
      Drop(out_, static_cast<size_t>(sent));
      continue;
    }
    const std::span<std::byte> scratch = relay_->Scratch();
    const ssize_t got = read(grpc_.get(), scratch.data(), scratch.size());
    if (got < 0 && Later()) return true;
    if (got <= 0) {
      End();
      return false;
    }
    const auto bytes =
        guard_.FromServer(scratch.first(static_cast<size_t>(got)));
    CountStreams();
    if (bytes.empty()) continue;
    const ssize_t sent = stream_->Write(bytes);
    if (sent == PeerStream::kBroken) {
      End();
      return false;
    }
    const auto took = sent < 0 ? size_t{0} : static_cast<size_t>(sent);
    if (took < bytes.size()) {
      Keep(out_, bytes.subspan(took));
      if (sent == PeerStream::kLater) return true;
      continue;
    }
    if (static_cast<size_t>(got) < scratch.size() && !grpc_done_) return true;
  }
  return true;
}

void RelayedConnection::Keep(Kept& kept, std::span<const std::byte> bytes) {
  kept.bytes.insert(kept.bytes.end(), bytes.begin(), bytes.end());
  relay_->kept_ += bytes.size();
}

void RelayedConnection::Drop(Kept& kept, size_t size) {
  kept.at += size;
  if (!kept.empty()) return;
  relay_->kept_ -= kept.bytes.size();
  kept = {};
}

bool RelayedConnection::Take(uint64_t bytes) {
  if (account_.Take(bytes)) return true;
  lacks_room_ = true;
  return false;
}

bool RelayedConnection::MayOpen(uint32_t resets) {
  calls_end_ = !relay_->MayOpen(resets, resets_.get());
  return !calls_end_;
}

void RelayedConnection::CountStreams() {
  const auto now = static_cast<int64_t>(guard_.streams());
  relay_->streams_ += now - streams_;
  streams_ = now;
}

void RelayedConnection::WatchBoth() {
  const bool hears = in_.empty() && !peer_done_ && !grpc_done_ && !full_;
  const bool tells = !out_.empty() || stream_->wants_to_write();
  if (hears && std::exchange(told_, asks_for_) != asks_for_) {
    const auto least = static_cast<int>(asks_for_);
    setsockopt(connection_.fd.get(), SOL_SOCKET, SO_RCVLOWAT, &least,
               sizeof least);
  }
  Watch(watch_peer_, connection_.fd.get(),
        (hears ? EPOLLIN : 0U) | (tells ? EPOLLOUT : 0U),
        &RelayedConnection::OnPeer);
  if (ended_) return;
  // A closed end would wake us for as long as the peer takes nothing.
  if (grpc_done_) {
    if (watch_grpc_.watch != 0) {
      relay_->loop_->Unwatch(std::exchange(watch_grpc_.watch, 0));
    }
    return;
  }
  const bool gives = full_ || (!in_.empty() && !held_);
  Watch(watch_grpc_, grpc_.get(),
        (out_.empty() ? EPOLLIN : 0U) | (gives ? EPOLLOUT : 0U),
        &RelayedConnection::OnGrpc);
}

void RelayedConnection::Watch(Watched& watched, int fd, uint32_t events,
                              void (RelayedConnection::*ready)(uint32_t)) {
  if (watched.watch != 0) {
    if (watched.events == events) return;
    watched.events = events;
    return relay_->loop_->ChangeEvents(watched.watch, events);
  }
  auto watch = relay_->loop_->Watch(
      fd, events, [self = shared_from_this(), ready](uint32_t happened) {
        ((*self).*ready)(happened);
      });
  if (!watch.ok()) return End();
  watched = {*watch, events};
}

void RelayedConnection::Cut(const std::string& why) {
  relay_->failures_->Note(absl::StrCat("gRPC peer '", connection_.address,
                                       "' disconnected: ", why));
  if (out_.empty()) {
    if (const auto goodbye = guard_.Goodbye(why.c_str())) {
      stream_->Write(std::as_bytes(std::span(*goodbye)));
    }
  }
  relay_->cut_.Add(std::move(connection_.fd));
  End();
}

void RelayedConnection::End() {
  if (std::exchange(ended_, true)) return;
  const auto self = shared_from_this();
  if (timer_ != 0) relay_->loop_->CancelTimer(std::exchange(timer_, 0));
  for (Watched* watched : {&watch_peer_, &watch_grpc_}) {
    if (watched->watch != 0) {
      relay_->loop_->Unwatch(std::exchange(watched->watch, 0));
    }
  }
  if (stage_ == Stage::kConnected) relay_->peers_->Remove(name_);
  relay_->streams_ -= std::exchange(streams_, 0);
  for (Kept* kept : {&in_, &out_}) Drop(*kept, kept->rest().size());
  stream_.reset();
  grpc_.reset();
  connection_ = {};
  relay_->Forget(this);
}

}  // namespace rknnd::transport
