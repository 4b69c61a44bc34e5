// Frames of the program on their way to the daemon: what it is to see otherwise
// than the program has sent it, and what it is not to see at all. On the
// bridge's thread.

#include <sys/epoll.h>

#include <string>
#include <utility>

#include "client/remote/bridge.h"
#include "proto/wire/codec.h"
#include "proto/wire/features.h"
#include "rknnd/v1/remote.pb.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// Above it a body travels as an attachment, so that nothing waits behind it.
constexpr size_t kLargestBody = 256 * 1024;

// What both ends of a ring do with each other's memory, which they do not have.
constexpr uint64_t kLocalFeatures =
    wire::kFeatureSpin | wire::kFeatureMemorySync | wire::kFeatureBegun;

template <class Message>
bool Reencode(const Message& message, wire::Frame& frame) {
  auto body = wire::Encode(message);
  if (body.ok()) frame.body = *std::move(body);
  return body.ok();
}

}  // namespace

void Bridge::OnSocket(uint32_t events) {
  if ((events & EPOLLOUT) != 0) FlushSocket();
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  Expected<wire::FrameResult> received =
      wire::ReceiveFrame(socket_.get(), base::Block::kNo);
  if (!received.ok()) return Close();
  switch (received->kind) {
    case wire::FrameResult::Kind::kWouldBlock:
      return;
    case wire::FrameResult::Kind::kEndOfFile:
      return Close();
    case wire::FrameResult::Kind::kFrame:
      return OnFrame(std::move(received->frame));
  }
}

void Bridge::OnFrame(wire::Frame frame) {
  if (frame.kind != wire::FrameKind::kRequest ||
      frame.request >= kOwnRequests) {
    return Close();
  }
  // Entries that were written before it are before it there, too.
  runs_->TakeEntries();
  if (AnswerHere(frame)) return;
  Pending pending;
  pending.verb = frame.verb;
  if (!Adapt(frame, pending)) return;
  pending.body = frame.body;
  Forward(std::move(frame), std::move(pending));
}

bool Bridge::AnswerHere(wire::Frame& frame) {
  switch (frame.verb) {
    case wire::Verb::kRegisterFence: {
      const auto fence = wire::Decode<wire::RegisterFence>(frame.body);
      if (!fence.ok() || frame.fds.empty()) {
        Reply(frame, Error{Code::kInvalidArgument,
                           "a fence came without its descriptor"});
      } else {
        Reply(frame, runs_->fences().Register(fence->fence, fence->out,
                                              std::move(frame.fds[0])));
      }
      return true;
    }
    case wire::Verb::kReleaseFence: {
      const auto fence = wire::Decode<wire::ReleaseFence>(frame.body);
      Reply(frame, fence.ok() ? runs_->fences().Release(fence->fence)
                              : Expected<void>(fence.error()));
      return true;
    }
    case wire::Verb::kSyncBuffer:
      // The daemon looks after its own caches.
      Reply(frame, {});
      return true;
    case wire::Verb::kImportPhysical:
      Reply(frame, Error{Code::kUnimplemented,
                         "memory by its physical address is of this machine, "
                         "and the NPU of another: use rknn_create_mem or "
                         "rknn_create_mem_from_fd"});
      return true;
    default:
      return false;
  }
}

bool Bridge::Adapt(wire::Frame& frame, Pending& pending) {
  switch (frame.verb) {
    case wire::Verb::kHello:
      if (auto hello = wire::Decode<wire::Hello>(frame.body); hello.ok()) {
        hello->features &= ~kLocalFeatures;
        Reencode(*hello, frame);
      }
      return true;
    case wire::Verb::kUploadModel: {
      pending.transfer = std::make_shared<OutgoingTransfer>(frame.request);
      for (base::UniqueFd& file : frame.fds) {
        if (Expected<void> added = pending.transfer->Add(std::move(file));
            !added.ok()) {
          Reply(frame, added);
          return false;
        }
      }
      if (options_.progress != nullptr) {
        pending.transfer->set_progress([this](uint64_t done, uint64_t total) {
          options_.progress(options_.user, "upload", done, total);
        });
      }
      return true;
    }
    case wire::Verb::kImportBuffer: {
      auto import = wire::Decode<wire::ImportBuffer>(frame.body);
      if (!import.ok() || frame.fds.empty()) {
        Reply(frame, Error{Code::kInvalidArgument,
                           "a buffer came without its descriptor"});
        return false;
      }
      auto memory = LocalBuffer::Import(std::move(frame.fds[0]), import->size);
      if (!memory.ok()) {
        Reply(frame, memory.error());
        return false;
      }
      import->size = (*memory)->size();
      pending.memory = *std::move(memory);
      return Reencode(*import, frame);
    }
    case wire::Verb::kReleaseBuffer:
      // Runs that are on their way bring nothing back for it any more.
      if (const auto release = wire::Decode<wire::ReleaseBuffer>(frame.body);
          release.ok()) {
        buffers_.erase(release->buffer);
      }
      return true;
    case wire::Verb::kDestroyContext:
      if (const auto destroy = wire::Decode<wire::DestroyContext>(frame.body);
          destroy.ok()) {
        runs_->Destroyed(destroy->context);
        bindings_.Destroyed(destroy->context);
      }
      return true;
    default:
      return true;
  }
}

void Bridge::Forward(wire::Frame frame, Pending pending) {
  auto message = std::make_unique<v1::ToDaemon>();
  v1::Frame* const out = message->mutable_frame();
  out->set_verb(static_cast<uint32_t>(frame.verb));
  out->set_kind(static_cast<uint32_t>(frame.kind));
  out->set_request(frame.request);
  if (frame.body.size() > kLargestBody) {
    if (pending.transfer == nullptr) {
      pending.transfer = std::make_shared<OutgoingTransfer>(frame.request);
    }
    pending.transfer->Add(std::move(frame.body));
    out->set_body_attached(true);
  } else {
    out->set_body(frame.body.data(), frame.body.size());
  }
  const std::shared_ptr<OutgoingTransfer> transfer = pending.transfer;
  if (transfer != nullptr) transfer->Announce(out);
  pending_[frame.request] = std::move(pending);
  outbox_->Send(std::move(message));
  if (transfer != nullptr) {
    outbox_->SendBeside([transfer] { return transfer->Next(); });
  }
}

void Bridge::SendRequest(wire::Verb verb, std::vector<std::byte> body) {
  wire::Frame frame;
  frame.verb = verb;
  frame.request = kOwnRequests + (++own_requests_ & (kOwnRequests - 1));
  frame.body = std::move(body);
  Forward(std::move(frame), Pending{verb, {}, nullptr, nullptr});
}

void Bridge::Reply(const wire::Frame& request, const Expected<void>& result) {
  wire::Frame reply;
  reply.verb = request.verb;
  reply.kind = wire::FrameKind::kReply;
  reply.request = request.request;
  if (!result.ok()) {
    reply.code = result.error().code;
    reply.body = wire::EncodeFailure(result.error().message);
  }
  ToProgram(std::move(reply));
}

}  // namespace rknnd::client
