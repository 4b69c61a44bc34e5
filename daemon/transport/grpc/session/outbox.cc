// See the header.

#include "daemon/transport/grpc/session/outbox.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status/status.h"

namespace rknnd::transport {
namespace {

// Events are dropped before more of them wait: nobody waits for them.
constexpr size_t kMaxEvents = 16;
// What a stream may send without asking anybody for it.
constexpr size_t kFreeRoom = size_t{64} << 10;

absl::Status ReadFile(int fd, uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got =
        pread(fd, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return base::ToStatus(
          base::ErrnoError(got < 0 ? errno : EIO, "read what is to be sent"));
    }
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace

Outbox::Outbox(std::shared_ptr<Sender> sender, RequestBudget* budget,
               std::string peer)
    : sender_(std::move(sender)), budget_(budget), peer_(std::move(peer)) {}

void Outbox::set_sendable(std::weak_ptr<Sendable> sendable) {
  sendable_ = std::move(sendable);
}

void Outbox::Answer(RemoteFrame frame, std::vector<Attachment> attachments,
                    std::shared_ptr<TransferCharge> charge) {
  {
    base::MutexLock lock(mutex_);
    Frame& added = frames_.emplace_back();
    added.transfer.request = frame.frame.request;
    for (const Attachment& attachment : attachments) {
      frame.attachments.push_back(attachment.size);
    }
    // Those without bytes have no chunks.
    std::erase_if(attachments,
                  [](const Attachment& one) { return one.size == 0; });
    added.transfer.attachments = std::move(attachments);
    added.transfer.charge = std::move(charge);
    added.frame = std::move(frame);
    for (const Attachment& one : added.transfer.attachments) {
      attached_ += one.size;
    }
  }
  Kick();
}

bool Outbox::TellEvent(wire::Frame event) {
  {
    base::MutexLock lock(mutex_);
    if (events_ == kMaxEvents) return false;
    ++events_;
    Frame& added = frames_.emplace_back();
    added.event = true;
    added.frame.frame = std::move(event);
  }
  Kick();
  return true;
}

void Outbox::Pong(uint64_t token) {
  {
    base::MutexLock lock(mutex_);
    pong_ = token;
  }
  Kick();
}

void Outbox::Kick() {
  {
    base::MutexLock lock(mutex_);
    if (!idle_) return;
    idle_ = false;
  }
  if (auto sendable = sendable_.lock(); sendable != nullptr) {
    sender_->Add(std::move(sendable));
  }
}

uint64_t Outbox::attached() const {
  base::MutexLock lock(mutex_);
  return attached_;
}

void Outbox::Clear() {
  std::deque<Frame> dropped;
  base::MutexLock lock(mutex_);
  dropped.swap(frames_);
  events_ = kMaxEvents;
}

absl::StatusOr<std::optional<Outbox::Message>> Outbox::Next(RunSlots* slots) {
  for (;;) {
    std::optional<Frame> frame;
    {
      base::MutexLock lock(mutex_);
      if (pong_.has_value()) {
        Message message;
        message.bytes = MakePong(*std::exchange(pong_, std::nullopt));
        return message;
      }
      if (!frames_.empty()) {
        frame = std::move(frames_.front());
        frames_.pop_front();
        if (frame->event) --events_;
      }
    }
    if (frame.has_value()) {
      Message message;
      message.bytes = MakeFrame(frame->frame);
      message.answers = !frame->event && frame->transfer.attachments.empty();
      if (!frame->transfer.attachments.empty()) {
        sending_.push_back(std::move(frame->transfer));
      }
      return message;
    }
    if (!leaving_.has_value() && slots != nullptr) {
      if (auto ended = slots->TakeEnded(); ended.has_value()) {
        leaving_ = Leaving{.ended = *std::move(ended)};
      }
    }
    if (!sending_.empty() && (chunk_next_ || !leaving_.has_value())) {
      chunk_next_ = false;
      return NextChunk();
    }
    if (leaving_.has_value()) {
      chunk_next_ = true;
      return NextOfEnd();
    }
    base::MutexLock lock(mutex_);
    if (frames_.empty() && !pong_.has_value() &&
        (slots == nullptr || !slots->HasEnded())) {
      idle_ = true;
      return std::nullopt;
    }
  }
}

size_t Outbox::Room(uint64_t wanted, RequestBudget::Hold* hold) {
  const auto most =
      static_cast<size_t>(std::min<uint64_t>(wanted, kMaxRemoteData));
  if (most <= kFreeRoom || budget_ == nullptr) return most;
  // Where others hold all there is, it goes in small pieces.
  auto taken = budget_->Take(peer_, most);
  if (!taken.ok()) return kFreeRoom;
  *hold = *std::move(taken);
  return most;
}

absl::StatusOr<std::optional<Outbox::Message>> Outbox::NextChunk() {
  Transfer& transfer = sending_.front();
  const Attachment& from = transfer.attachments[transfer.at];
  Message message;
  const size_t size = Room(from.size - transfer.sent, &message.hold);
  Places places;
  message.bytes = MakeChunk(transfer.request, size, &places);
  const uint64_t offset = from.offset + transfer.sent;
  if (from.buffer != nullptr) {
    RKNND_RETURN_IF_ERROR(from.buffer->Read(offset, places[0]));
  } else if (from.fd.valid()) {
    RKNND_RETURN_IF_ERROR(ReadFile(from.fd.get(), offset, places[0]));
  } else {
    std::memcpy(places[0].data(), from.bytes.data() + offset, size);
  }
  transfer.sent += size;
  if (transfer.sent == from.size) {
    ++transfer.at;
    transfer.sent = 0;
  }
  if (transfer.at == transfer.attachments.size()) {
    uint64_t sent = 0;
    for (const Attachment& one : transfer.attachments) sent += one.size;
    sending_.pop_front();
    message.answers = true;
    base::MutexLock lock(mutex_);
    attached_ -= sent;
  }
  return message;
}

absl::StatusOr<std::optional<Outbox::Message>> Outbox::NextOfEnd() {
  auto& [ended, at, sent] = *leaving_;
  if (ended.end.code != 0) ended.outputs.clear();
  uint64_t left = 0;
  for (size_t i = at; i < ended.outputs.size(); ++i) {
    left += ended.outputs[i].range.size;
  }
  left -= sent;
  Message message;
  Places places;
  const size_t room = Room(left, &message.hold);
  if (left > room) {
    const RunSlots::Output& output = ended.outputs[at];
    RemoteRange part = output.range;
    part.offset += sent;
    part.size = std::min<uint64_t>(part.size - sent, room);
    message.bytes = MakeRead(part, &places);
    RKNND_RETURN_IF_ERROR(output.buffer->Read(part.offset, places[0]));
    sent += part.size;
    if (sent == output.range.size) {
      ++at;
      sent = 0;
    }
    return message;
  }
  std::vector<RemoteRange> parts;
  for (size_t i = at; i < ended.outputs.size(); ++i) {
    RemoteRange part = ended.outputs[i].range;
    if (i == at) {
      part.offset += sent;
      part.size -= sent;
    }
    parts.push_back(part);
  }
  ended.end.text = ended.text;
  message.bytes = MakeRunEnd(ended.end, parts, &places);
  for (size_t i = 0; i < parts.size(); ++i) {
    RKNND_RETURN_IF_ERROR(
        ended.outputs[at + i].buffer->Read(parts[i].offset, places[i]));
  }
  leaving_.reset();
  return message;
}

}  // namespace rknnd::transport
