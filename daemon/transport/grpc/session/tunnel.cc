// Messages as they come, and runs; what happens on the loop is in
// tunnel_requests.cc.

#include "daemon/transport/grpc/session/tunnel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/transport/session/translate.h"
#include "daemon/transport/session/translate_submission.h"

namespace rknnd::transport {
namespace {

// A client says Hello as its first act.
constexpr base::Nanoseconds kHelloDeadline = 5 * base::kSecond;
// Clients ping every few seconds: this is three that were lost.
constexpr base::Nanoseconds kSilence = 45 * base::kSecond;
// Requests that are not answered yet. A client with more is not listened to
// meanwhile.
constexpr uint32_t kMaxUnanswered = 32;

}  // namespace

Tunnel::Tunnel(std::shared_ptr<const TunnelEnvironment> environment,
               core::SessionPeer peer, const std::string& account)
    : environment_(std::move(environment)),
      peer_(std::move(peer)),
      syncs_(environment_->daemon.service->wants_syncs()),
      outbox_(std::make_shared<Outbox>(environment_->sender,
                                       environment_->daemon.budget, account)),
      slots_(std::make_shared<RunSlots>([outbox = outbox_] { outbox->Kick(); },
                                        syncs_)),
      buffers_(std::make_shared<RemoteBuffers>()),
      uploads_(environment_->transfers,
               environment_->daemon.limits.model_bytes),
      heard_(environment_->daemon.clock->Now()),
      begun_(heard_) {}

void Tunnel::set_stream(std::weak_ptr<TunnelStream> stream) {
  stream_ = std::move(stream);
}

Tunnel::State Tunnel::state() const {
  base::MutexLock lock(mutex_);
  return state_;
}

bool Tunnel::OnMessage(FromClient message) {
  heard_.store(environment_->daemon.clock->Now(), std::memory_order_relaxed);
  if (const auto* ping = std::get_if<RemotePing>(&message)) {
    outbox_->Pong(ping->token);
    return true;
  }
  if (auto* frame = std::get_if<RemoteFrame>(&message)) {
    return OnFrame(std::move(*frame));
  }
  switch (state()) {
    case State::kHello:
      return Violation(absl::FailedPreconditionError(
          "protocol: the first message is 'Hello'"));
    case State::kEnded:
      return false;
    case State::kOpen:
      break;
  }
  if (const auto* chunk = std::get_if<RemoteChunk>(&message)) {
    return OnUpload(uploads_.Append(*chunk, heard_));
  }
  if (const auto* data = std::get_if<RemoteData>(&message)) {
    return OnData(*data);
  }
  return OnRun(std::get<RemoteRun>(std::move(message)));
}

bool Tunnel::OnFrame(RemoteFrame frame) {
  if (frame.frame.kind != wire::FrameKind::kRequest) {
    return Violation(
        absl::DataLossError("protocol: a client sends nothing but requests"));
  }
  // Nothing is read before Hello is answered, nor when too much is in the
  // making.
  bool is_hello = false;
  {
    base::MutexLock lock(mutex_);
    if (state_ == State::kEnded) return false;
    ++unanswered_;
    is_hello = state_ == State::kHello;
    if (is_hello) hello_said_ = true;
  }
  if (is_hello) {
    auto hello = std::make_shared<RemoteFrame>(std::move(frame));
    environment_->loop->Post(
        [self = shared_from_this(), hello] { self->Hello(hello->frame); });
    return false;
  }
  if (!OnUpload(uploads_.Begin(std::move(frame), heard_))) return false;
  // Last: from here on an answer that leaves may have the next message read, by
  // another thread, and that one is to be behind this.
  base::MutexLock lock(mutex_);
  paused_ = unanswered_ >= kMaxUnanswered;
  return !paused_;
}

bool Tunnel::OnUpload(Uploads::Step step) {
  if (!step.violation.ok()) return Violation(step.violation);
  if (step.refused.has_value()) {
    environment_->loop->Post(
        [self = shared_from_this(), refused = *std::move(step.refused)] {
          self->Answer(refused.verb, refused.request, Failure(refused.why));
        });
  }
  if (step.whole.has_value()) {
    // std::function copies what it holds, and a frame cannot be copied.
    auto whole = std::make_shared<Uploads::Whole>(*std::move(step.whole));
    environment_->loop->Post([self = shared_from_this(), whole] {
      self->Handle(std::move(whole->frame), std::move(whole->charge));
    });
  }
  return true;
}

bool Tunnel::OnData(const RemoteData& data) {
  const auto buffer = buffers_->Find({data.buffer, data.offset, data.size});
  // Another thread of the program may just have released it: a run that needs
  // it says so.
  if (absl::IsNotFound(buffer.status())) return true;
  if (!buffer.ok()) return Violation(buffer.status());
  if (const absl::Status written = (*buffer)->Write(data.offset, data.data);
      !written.ok()) {
    return Violation(written);
  }
  if (!syncs_) return true;
  environment_->loop->Post([self = shared_from_this(), number = data.buffer] {
    if (self->session_ != nullptr) {
      self->session_->SyncBuffer(number, driver::CacheSide::kToDevice)
          .IgnoreError();
    }
    if (const auto stream = self->stream_.lock()) stream->ReadOn();
  });
  return false;
}

bool Tunnel::OnRun(RemoteRun run) {
  const wire::Submission& entry = run.submission;
  if (const absl::Status sound = CheckSlot(entry); !sound.ok()) {
    return Violation(sound);
  }
  // What is wrong with its memory is the run's answer: another thread of the
  // program may just have released it.
  absl::Status memory;
  std::vector<RunSlots::Output> outputs;
  for (const RemoteRange& range : run.outputs) {
    auto buffer = buffers_->Find(range);
    memory.Update(buffer.status());
    if (!buffer.ok()) break;
    outputs.push_back({range, *std::move(buffer)});
  }
  if (const absl::Status taken =
          slots_->Take(entry.slot, entry.sequence, std::move(outputs));
      !taken.ok()) {
    return Violation(taken);
  }
  std::vector<uint32_t> written;
  for (const RemoteData& input : run.inputs) {
    if (!memory.ok()) break;
    const auto buffer =
        buffers_->Find({input.buffer, input.offset, input.size});
    memory = buffer.ok() ? (*buffer)->Write(input.offset, input.data)
                         : buffer.status();
    written.push_back(input.buffer);
  }
  if (!memory.ok()) {
    slots_->Complete({.slot = entry.slot,
                      .sequence = entry.sequence,
                      .frame = entry.frame,
                      .status = std::move(memory)});
    return true;
  }
  if (!syncs_ || written.empty()) {
    const absl::Status submitted = Submit(entry);
    return submitted.ok() || Violation(submitted);
  }
  // The reader waits meanwhile, so that there is one who submits.
  environment_->loop->Post([self = shared_from_this(), entry, written] {
    if (self->session_ == nullptr) return;
    for (const uint32_t buffer : written) {
      self->session_->SyncBuffer(buffer, driver::CacheSide::kToDevice)
          .IgnoreError();
    }
    if (const absl::Status submitted = self->Submit(entry); !submitted.ok()) {
      return self->End(submitted);
    }
    if (const auto stream = self->stream_.lock()) stream->ReadOn();
  });
  return false;
}

absl::Status Tunnel::Submit(const wire::Submission& entry) {
  const auto job = ToJob(entry);
  if (!job.ok()) {
    slots_->Complete({.slot = entry.slot,
                      .sequence = entry.sequence,
                      .frame = entry.frame,
                      .status = job.status()});
    return absl::OkStatus();
  }
  std::shared_ptr<core::JobGate> gate;
  {
    base::MutexLock lock(mutex_);
    gate = gate_;
  }
  RKNND_RETURN_IF_ERROR(gate->Submit(*job));
  environment_->daemon.workers->WakeOne();
  return absl::OkStatus();
}

bool Tunnel::Violation(const absl::Status& status) {
  End(status);
  return false;
}

void Tunnel::OnAnswered() {
  {
    base::MutexLock lock(mutex_);
    if (unanswered_ > 0) --unanswered_;
    if (!paused_ || unanswered_ >= kMaxUnanswered) return;
    paused_ = false;
  }
  // What it has said meanwhile comes now.
  heard_.store(environment_->daemon.clock->Now(), std::memory_order_relaxed);
  if (const auto stream = stream_.lock()) stream->ReadOn();
}

absl::StatusOr<std::optional<Outbox::Message>> Tunnel::Next() {
  if (syncs_ && slots_->held() > 0) {
    environment_->loop->Post([self = shared_from_this()] { self->SyncHeld(); });
  }
  return outbox_->Next(slots_.get());
}

void Tunnel::SyncHeld() {
  const uint32_t count = slots_->held();
  for (const uint32_t buffer : slots_->HeldBuffers()) {
    if (session_ == nullptr) break;
    session_->SyncBuffer(buffer, driver::CacheSide::kFromDevice).IgnoreError();
  }
  slots_->Release(count);
  outbox_->Kick();
}

bool Tunnel::TakeEnd() {
  base::MutexLock lock(mutex_);
  if (state_ == State::kEnded) return false;
  state_ = State::kEnded;
  return true;
}

void Tunnel::End(const absl::Status& reason) {
  if (!TakeEnd()) return;
  environment_->loop->Post([self = shared_from_this(), reason] {
    self->Close(reason);
    if (const auto stream = self->stream_.lock()) stream->End(reason, false);
  });
}

void Tunnel::EndNow(const absl::Status& reason) {
  TakeEnd();
  // What has ended by now still leaves, and nothing else.
  if (syncs_) SyncHeld();
  slots_->Seal();
  CloseSession();
  if (const auto stream = stream_.lock()) stream->End(reason, true);
}

void Tunnel::Tick() {
  const base::Nanoseconds now = environment_->daemon.clock->Now();
  bool hello_said = false;
  {
    base::MutexLock lock(mutex_);
    if (state_ == State::kEnded) return;
    // Nobody listens to it.
    if (paused_) return;
    hello_said = hello_said_;
  }
  if (!hello_said && now - begun_ >= kHelloDeadline) {
    return End(absl::DeadlineExceededError("no Hello in time"));
  }
  if (now - heard_ >= kSilence) {
    return End(absl::UnavailableError(
        absl::StrCat("nothing was heard of the client for ",
                     kSilence / base::kSecond, " s")));
  }
  for (const Uploads::Refused& stalled :
       uploads_.TakeStalled(now - environment_->unread)) {
    Answer(stalled.verb, stalled.request, Failure(stalled.why));
  }
}

}  // namespace rknnd::transport
