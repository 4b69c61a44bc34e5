// What comes from the daemon: frames for the program, bytes for its memory,
// ends of its runs. On the bridge's thread.

#include <sys/epoll.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/posix/socket.h"
#include "client/remote/bridge.h"
#include "proto/wire/codec.h"
#include "rknnd/v1/remote.pb.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// Lines of log that a program has not read; later ones are dropped.
constexpr size_t kMostUnsentEvents = 256;

}  // namespace

void Bridge::OnStream() {
  woken_.store(false);
  // First: what came before the end is there when that is seen.
  const std::optional<Error> end = stream_->End();
  for (const auto& message : stream_->Receive()) {
    if (state_ == State::kEnded) return;
    OnMessage(*message);
  }
  if (state_ == State::kEnded) return;
  if (end) {
    const Error why = DialFailure(options_.dial, *end);
    Answer(why);
    return Ended(end->message);
  }
  outbox_->Pump();
}

void Bridge::OnMessage(const v1::ToClient& message) {
  heard_ = clock_.Now();
  if (state_ == State::kDialling) {
    OnOpen();
    if (state_ != State::kOpen) return;
  }
  switch (message.part_case()) {
    case v1::ToClient::kFrame: {
      auto frame = IncomingFrame::Begin(message.frame());
      if (!frame.ok()) return Ended(frame.error().message);
      if (frame->complete()) return OnDaemonFrame(frame->Take());
      // Bytes for somebody who waits for them: no more frames than that are
      // under way, each with a file of its own.
      if (!pending_.contains(message.frame().request())) {
        return Ended("protocol: an answer to nothing that was asked");
      }
      incoming_.insert_or_assign(message.frame().request(), *std::move(frame));
      return;
    }
    case v1::ToClient::kChunk: {
      const auto frame = incoming_.find(message.chunk().request());
      if (frame == incoming_.end()) {
        return Ended("protocol: bytes of a frame that never came");
      }
      const Expected<void> added =
          frame->second.Add(std::as_bytes(std::span(message.chunk().data())));
      if (!added.ok()) return Ended(added.error().message);
      if (!frame->second.complete()) return;
      wire::Frame whole = frame->second.Take();
      incoming_.erase(frame);
      return OnDaemonFrame(std::move(whole));
    }
    case v1::ToClient::kRead:
      return runs_->OnData(message.read());
    case v1::ToClient::kRunEnd:
      return runs_->OnEnd(message.run_end());
    case v1::ToClient::kPong:
    case v1::ToClient::PART_NOT_SET:  // of a newer daemon
      return;
  }
}

void Bridge::OnDaemonFrame(wire::Frame frame) {
  switch (frame.kind) {
    case wire::FrameKind::kReply:
      return OnReply(std::move(frame));
    case wire::FrameKind::kEvent:
      if (unsent_.size() < kMostUnsentEvents) ToProgram(std::move(frame));
      return;
    case wire::FrameKind::kRequest:
      break;
  }
  Ended("protocol: a daemon sends no requests");
}

void Bridge::OnReply(wire::Frame frame) {
  const auto found = pending_.find(frame.request);
  if (found == pending_.end()) {
    return Ended("protocol: an answer to nothing that was asked");
  }
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  if (pending.transfer != nullptr) pending.transfer->GiveUp();
  if (frame.request >= kOwnRequests) return;
  if (frame.code == Code::kOk) {
    if (const Expected<void> learnt = Learn(pending, frame); !learnt.ok()) {
      frame.code = learnt.error().code;
      frame.body = wire::EncodeFailure(learnt.error().message);
      frame.fds.clear();
    }
  }
  ToProgram(std::move(frame));
}

Expected<void> Bridge::Learn(const Pending& pending, wire::Frame& reply) {
  switch (pending.verb) {
    case wire::Verb::kHello:
      return Welcome(reply);
    case wire::Verb::kAllocateBuffer:
    case wire::Verb::kImportBuffer:
      return LearnBuffer(pending, reply);
    case wire::Verb::kSetWeightMemory:
      return FillWeights(pending, reply);
    case wire::Verb::kCreateContext: {
      const auto request = wire::Decode<wire::CreateContext>(pending.body);
      auto info = wire::Decode<wire::ContextInfo>(reply.body);
      if (!request.ok() || !info.ok()) break;
      bindings_.Created(request->context, *std::move(info));
      return {};
    }
    case wire::Verb::kSetShapes: {
      const auto request = wire::Decode<wire::SetShapes>(pending.body);
      auto info = wire::Decode<wire::ContextInfo>(reply.body);
      if (!request.ok() || !info.ok()) break;
      bindings_.ChoseShapes(request->context, *std::move(info));
      return {};
    }
    case wire::Verb::kBind: {
      const auto request = wire::Decode<wire::Bind>(pending.body);
      if (!request.ok()) break;
      bindings_.Bound(*request, buffers_);
      return {};
    }
    case wire::Verb::kBindFrame: {
      const auto request = wire::Decode<wire::BindFrame>(pending.body);
      if (!request.ok()) break;
      bindings_.BoundFrame(*request, buffers_);
      return {};
    }
    default:
      return {};
  }
  return Error{Code::kDataLoss,
               "protocol: rknnd's answer cannot be understood; update the "
               "older side"};
}

Expected<void> Bridge::Welcome(wire::Frame& reply) const {
  auto welcome = wire::Decode<wire::Welcome>(reply.body);
  if (!welcome.ok()) return welcome.error();
  welcome->ring_entries = wire::kRingEntries;
  welcome->spin_us = 0;
  // The next session may be another host's, which has no model of ours.
  welcome->keeps_models = false;
  auto body = wire::Encode(*welcome);
  if (!body.ok()) return std::move(body).error();
  reply.body = *std::move(body);
  reply.fds.clear();
  for (const int fd : {ring_->memory_fd(), ring_->doorbell_fd()}) {
    auto copy = base::Duplicate(fd);
    if (!copy.ok()) return std::move(copy).error();
    reply.fds.push_back(*std::move(copy));
  }
  return {};
}

Expected<void> Bridge::LearnBuffer(const Pending& pending, wire::Frame& reply) {
  if (pending.memory != nullptr) {
    const auto request = wire::Decode<wire::ImportBuffer>(pending.body);
    if (request.ok()) buffers_[request->buffer] = pending.memory;
    return {};
  }
  const auto request = wire::Decode<wire::AllocateBuffer>(pending.body);
  const auto answer = wire::Decode<wire::Buffer>(reply.body);
  if (!request.ok() || !answer.ok()) {
    return Error{Code::kDataLoss, "protocol: rknnd sent no buffer"};
  }
  auto memory = LocalBuffer::Make(std::max(request->size, answer->size));
  Expected<base::UniqueFd> copy =
      memory.ok() ? base::Duplicate((*memory)->fd())
                  : Expected<base::UniqueFd>(memory.error());
  if (!copy.ok()) {
    auto release = wire::Encode(wire::ReleaseBuffer{.buffer = request->buffer});
    if (release.ok()) {
      SendRequest(wire::Verb::kReleaseBuffer, *std::move(release));
    }
    return std::move(copy).error();
  }
  buffers_[request->buffer] = *std::move(memory);
  reply.fds.clear();
  reply.fds.push_back(*std::move(copy));
  return {};
}

Expected<void> Bridge::FillWeights(const Pending& pending, wire::Frame& reply) {
  const auto request = wire::Decode<wire::SetMemory>(pending.body);
  if (!request.ok() || request->buffer == 0 || reply.fds.empty()) return {};
  const auto buffer = buffers_.find(request->buffer);
  if (buffer == buffers_.end()) return {};
  Expected<void> filled =
      ReadAll(reply.fds[0].get(),
              [&](uint64_t offset, std::span<const std::byte> bytes) {
                return buffer->second->Store(request->offset + offset, bytes);
              });
  reply.fds.clear();
  return filled;
}

void Bridge::ToProgram(wire::Frame frame) {
  unsent_.push_back(std::move(frame));
  // One that waits already shows that the socket is full.
  if (unsent_.size() == 1) FlushSocket();
}

void Bridge::FlushSocket() {
  while (!unsent_.empty()) {
    const Expected<void> sent =
        wire::SendFrame(socket_.get(), unsent_.front(), base::Block::kNo);
    if (!sent.ok() && sent.error().code == Code::kResourceExhausted) break;
    // A socket that is closed says so by itself.
    unsent_.pop_front();
  }
  if (socket_watch_ == 0) return;
  loop_->ChangeEvents(socket_watch_,
                      unsent_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

}  // namespace rknnd::client
