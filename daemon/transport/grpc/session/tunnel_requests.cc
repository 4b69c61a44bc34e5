// What a tunnel does on the loop: Hello, requests and their answers, the end.

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/transport/grpc/session/tunnel.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/hello.h"
#include "daemon/transport/session/translate.h"
#include "proto/wire/codec.h"
#include "proto/wire/features.h"

namespace rknnd::transport {
namespace {

// Caches and waiting awake are of one machine.
constexpr uint64_t kUselessFeatures =
    wire::kFeatureMemorySync | wire::kFeatureSpin;
// Files of answers that wait to be sent, of one session: two of the largest
// bodies.
constexpr uint64_t kMaxAttached = 2 * wire::kMaxMemfdBody;

Reply NotHere(wire::Verb verb, const char* why) {
  return Failure(
      absl::UnimplementedError(absl::StrCat("'", VerbName(verb), "' ", why)));
}

absl::StatusOr<uint64_t> SizeOf(const base::UniqueFd& fd) {
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) {
    return base::ToStatus(base::ErrnoError(errno, "fstat of an answer"));
  }
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace

// Carries core's lines to the client, from whichever thread they come.
class Tunnel::ClientLog final : public core::LogSink {
 public:
  ClientLog(std::shared_ptr<Outbox> outbox, uint32_t level)
      : outbox_(std::move(outbox)), level_(level) {}

  void Log(uint32_t level, const std::string& text) override {
    if (level > level_) return;
    wire::Frame frame;
    frame.verb = wire::Verb::kLogEvent;
    frame.kind = wire::FrameKind::kEvent;
    wire::LogEvent event{};
    event.level = level;
    wire::SetText(event.text, text);
    auto body = wire::Encode(event);
    if (!body.ok()) return;
    frame.body = *std::move(body);
    outbox_->TellEvent(std::move(frame));
  }

 private:
  const std::shared_ptr<Outbox> outbox_;
  const uint32_t level_;
};

void Tunnel::Hello(const wire::Frame& frame) {
  if (state() == State::kEnded) return;
  auto welcome = Open(frame);
  if (!welcome.ok()) {
    if (!TakeEnd()) return;
    Answer(frame.verb, frame.request, Failure(welcome.status()));
    const auto stream = stream_.lock();
    if (stream != nullptr) stream->End(welcome.status(), true);
    return;
  }
  Answer(wire::Verb::kHello, frame.request,
         {absl::OkStatus(), *std::move(welcome), {}});
  if (const auto stream = stream_.lock()) stream->ReadOn();
}

absl::StatusOr<std::vector<std::byte>> Tunnel::Open(const wire::Frame& frame) {
  if (frame.verb != wire::Verb::kHello) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", VerbName(frame.verb), "' before 'Hello'"));
  }
  RKNND_ASSIGN_OR_RETURN(
      const wire::Hello hello,
      base::ToStatusOr(wire::Decode<wire::Hello>(frame.body)));
  peer_.comm = Printable(hello.comm);
  const GrpcEnvironment& daemon = environment_->daemon;
  RKNND_ASSIGN_OR_RETURN(const Greeting greeting,
                         Greet(hello, *daemon.service, kUselessFeatures));
  std::shared_ptr<ClientLog> log;
  if ((greeting.features & wire::kFeatureLogEvents) != 0) {
    log = std::make_shared<ClientLog>(outbox_, hello.log_level);
  }
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<core::Session> session,
                         daemon.service->OpenSession(peer_, slots_, log));
  auto welcome =
      EncodeWelcome(greeting, *session, *daemon.service, daemon.limits, 0);
  {
    base::MutexLock lock(mutex_);
    // Its peer may be gone meanwhile: Close has been here, or finds nothing.
    if (state_ != State::kHello || !welcome.ok()) {
      daemon.service->CloseSession(session->id());
      if (!welcome.ok()) return welcome;
      return absl::CancelledError("the client is gone");
    }
    state_ = State::kOpen;
    gate_ = session->gate();
  }
  session_id_ = session->id();
  requests_.emplace(daemon.service, session, peer_.admin, -1, daemon.board,
                    [outbox = outbox_](wire::Frame event) {
                      return outbox->TellEvent(std::move(event));
                    });
  session_ = std::move(session);
  return welcome;
}

void Tunnel::Handle(wire::Frame frame, std::shared_ptr<TransferCharge> charge) {
  if (state() != State::kOpen || !requests_.has_value()) return;
  const wire::Verb verb = frame.verb;
  const uint32_t request = frame.request;
  const auto answer = [this, verb, request](Reply reply) {
    Answer(verb, request, std::move(reply));
  };
  // The number and range of memory on this side that the answer is about.
  RemoteRange memory;
  switch (verb) {
    case wire::Verb::kRegisterFence:
    case wire::Verb::kReleaseFence:
      return answer(
          NotHere(verb,
                  "is not served over a network: fences stay on the client's "
                  "machine"));
    case wire::Verb::kImportPhysical:
      return answer(
          NotHere(verb,
                  "is not served over a network: the address is of another "
                  "machine"));
    case wire::Verb::kImportBuffer: {
      // Memory of the client's machine: there is some of ours for it.
      const auto import = wire::Decode<wire::ImportBuffer>(frame.body);
      if (!import.ok()) return answer(Failure(base::ToStatus(import.error())));
      wire::AllocateBuffer allocate{};
      allocate.buffer = import->buffer;
      allocate.size = import->size;
      auto body = wire::Encode(allocate);
      if (!body.ok()) return answer(Failure(base::ToStatus(body.error())));
      frame.verb = wire::Verb::kAllocateBuffer;
      frame.body = *std::move(body);
      memory.buffer = import->buffer;
      break;
    }
    case wire::Verb::kAllocateBuffer: {
      const auto message = wire::Decode<wire::AllocateBuffer>(frame.body);
      if (message.ok()) memory.buffer = message->buffer;
      break;
    }
    case wire::Verb::kReleaseBuffer: {
      const auto message = wire::Decode<wire::ReleaseBuffer>(frame.body);
      if (message.ok()) memory.buffer = message->buffer;
      break;
    }
    case wire::Verb::kSetWeightMemory: {
      const auto message = wire::Decode<wire::SetMemory>(frame.body);
      if (message.ok()) {
        memory = {message->buffer, message->offset, message->size};
      }
      break;
    }
    default:
      break;
  }
  const wire::Verb handled = frame.verb;
  requests_->Handle(std::move(frame), [weak = weak_from_this(), verb, handled,
                                       request, memory, charge](Reply reply) {
    const auto self = weak.lock();
    if (self == nullptr || self->state() != State::kOpen) return;
    std::vector<Attachment> attachments;
    if (handled == wire::Verb::kAllocateBuffer) {
      reply = self->KeepBuffer(memory.buffer, std::move(reply));
    } else if (!reply.status.ok()) {
      // As it is.
    } else if (handled == wire::Verb::kReleaseBuffer) {
      self->buffers_->Remove(memory.buffer);
    } else if (handled == wire::Verb::kSetWeightMemory && memory.buffer != 0) {
      auto buffer = self->buffers_->Find(memory);
      if (buffer.ok()) {
        Attachment& filled = attachments.emplace_back();
        filled.buffer = *std::move(buffer);
        filled.offset = memory.offset;
        filled.size = memory.size;
      }
    }
    self->Answer(verb, request, std::move(reply), std::move(attachments));
  });
}

Reply Tunnel::KeepBuffer(uint32_t number, Reply reply) {
  if (!reply.status.ok()) return reply;
  const auto made = wire::Decode<wire::Buffer>(reply.body);
  absl::Status kept = made.ok() && reply.fds.size() == 1
                          ? absl::OkStatus()
                          : absl::InternalError("a buffer without its memory");
  if (kept.ok()) {
    auto buffer = RemoteBuffer::Map(std::move(reply.fds[0]), made->size);
    reply.fds.clear();
    kept = buffer.status();
    if (buffer.ok()) buffers_->Add(number, *std::move(buffer));
  }
  if (kept.ok()) return reply;
  session_->ReleaseBuffer(number).IgnoreError();
  return Failure(std::move(kept));
}

absl::Status Tunnel::Attach(std::vector<base::UniqueFd> fds, size_t body,
                            std::vector<Attachment>* attachments,
                            std::shared_ptr<TransferCharge>* charge) {
  if (fds.empty() && body == 0) return absl::OkStatus();
  uint64_t total = body;
  for (base::UniqueFd& fd : fds) {
    Attachment& file = attachments->emplace_back();
    RKNND_ASSIGN_OR_RETURN(file.size, SizeOf(fd));
    file.fd = std::move(fd);
    total += file.size;
  }
  // A first one may be of any size.
  const uint64_t before = outbox_->attached();
  if (before != 0 && before + total > kMaxAttached) {
    return absl::ResourceExhaustedError(
        "too many large answers that this client has not read yet");
  }
  *charge = std::make_shared<TransferCharge>(environment_->transfers);
  return (*charge)->Grow(total);
}

void Tunnel::Answer(wire::Verb verb, uint32_t request, Reply reply,
                    std::vector<Attachment> attachments) {
  RemoteFrame frame;
  frame.frame.verb = verb;
  frame.frame.kind = wire::FrameKind::kReply;
  frame.frame.request = request;
  std::shared_ptr<TransferCharge> charge;
  if (reply.status.ok()) {
    const size_t large =
        reply.body.size() > kMaxRemoteBody ? reply.body.size() : 0;
    reply.status = Attach(std::move(reply.fds), large, &attachments, &charge);
    if (reply.status.ok() && large > 0) {
      Attachment& body = attachments.emplace_back();
      body.size = large;
      body.bytes = std::move(reply.body);
      reply.body.clear();
      frame.body_attached = true;
    }
  }
  if (reply.status.ok()) {
    frame.frame.body = std::move(reply.body);
  } else {
    attachments.clear();
    // Hash first: a model that is not there yet is how most sessions begin.
    const bool is_normal = (verb == wire::Verb::kCreateContext ||
                            verb == wire::Verb::kUploadModel) &&
                           absl::IsNotFound(reply.status);
    if (!is_normal) {
      environment_->daemon.failures->Write(peer_, session_id_, VerbName(verb),
                                           reply.status);
    }
    frame.frame.code = static_cast<base::Code>(reply.status.raw_code());
    frame.frame.body = wire::EncodeFailure(std::string(reply.status.message()));
  }
  outbox_->Answer(std::move(frame), std::move(attachments), std::move(charge));
}

void Tunnel::Close(const absl::Status& reason) {
  if (std::exchange(closed_, true)) return;
  CloseSession();
  slots_->Close();
  outbox_->Clear();
  if (!reason.ok() && !absl::IsCancelled(reason)) {
    environment_->daemon.failures->Write(peer_, session_id_, "remote session",
                                         reason);
  }
}

void Tunnel::CloseSession() {
  requests_.reset();
  const bool was_open = session_ != nullptr;
  session_.reset();
  if (was_open) environment_->daemon.service->CloseSession(session_id_);
  buffers_->Clear();
  uploads_.Clear();
}

}  // namespace rknnd::transport
