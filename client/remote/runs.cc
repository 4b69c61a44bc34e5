// See the header. Answers of the daemon are believed, but for slots and
// sequences, which are compared with what was sent.

#include "client/remote/runs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "rknnd/v1/remote.pb.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;

// A run that has no time limit of its own waits so long for its fence, as in
// the daemon.
constexpr Nanoseconds kFenceTimeout = 10 * base::kSecond;
// Inputs up to this travel in the run's own message, which is below 1 MiB then;
// larger ones before it, in pieces.
constexpr uint64_t kInline = 960 * 1024;
constexpr uint64_t kPiece = 512 * 1024;
// Beyond a year nobody waits.
constexpr uint64_t kLongest = uint64_t{365} * 24 * 3600 * base::kSecond;

std::string Ms(Nanoseconds time) {
  return std::to_string(time / base::kMillisecond) + " ms";
}

std::string NameOf(const wire::Submission& job) {
  return "frame " + std::to_string(job.frame) + " of context " +
         std::to_string(job.context);
}

// Time from the submission on after which it is not worth being sent.
Nanoseconds PatienceOf(const wire::Submission& job) {
  Nanoseconds patience =
      job.timeout_ms == 0 ? kFenceTimeout : job.timeout_ms * base::kMillisecond;
  if (job.deadline_ns != 0) {
    patience =
        std::min(patience,
                 static_cast<Nanoseconds>(std::min(job.deadline_ns, kLongest)));
  }
  return patience;
}

void FillData(v1::Data* data, const BoundRange& range, uint64_t from,
              uint64_t size) {
  data->set_buffer(range.buffer);
  data->set_offset(range.offset + from);
  // Past its end: the daemon says what is wrong with that.
  range.memory->AppendTo(data->mutable_data(), range.offset + from, size);
}

void FillRun(v1::Run* run, const wire::Submission& job, Nanoseconds waited) {
  run->set_operation(job.operation);
  run->set_context(job.context);
  run->set_slot(job.slot);
  run->set_sequence(job.sequence);
  run->set_frame(job.frame);
  run->set_flags(job.flags);
  run->set_set(job.set);
  // What it has waited here is over; something is left, or it had expired.
  if (job.timeout_ms != 0) {
    const auto ms = static_cast<uint32_t>(waited / base::kMillisecond);
    run->set_timeout_ms(job.timeout_ms > ms ? job.timeout_ms - ms : 1);
  }
  if (job.deadline_ns != 0) {
    const auto ns = static_cast<uint64_t>(waited);
    run->set_deadline_ns(job.deadline_ns > ns ? job.deadline_ns - ns : 1);
  }
}

// A run and the bytes it works on, message by message.
class RunMessages {
 public:
  RunMessages(std::unique_ptr<v1::ToDaemon> run, std::vector<BoundRange> inputs)
      : run_(std::move(run)), inputs_(std::move(inputs)) {
    uint64_t bytes = 0;
    for (const BoundRange& range : inputs_) bytes += range.size;
    inline_ = bytes <= kInline;
  }

  std::unique_ptr<v1::ToDaemon> Next() {
    if (run_ == nullptr) return nullptr;
    if (inline_) {
      for (const BoundRange& range : inputs_) {
        FillData(run_->mutable_run()->add_inputs(), range, 0, range.size);
      }
      return std::move(run_);
    }
    while (next_ < inputs_.size()) {
      const BoundRange& range = inputs_[next_];
      if (sent_ == range.size) {
        ++next_;
        sent_ = 0;
        continue;
      }
      const uint64_t size = std::min(kPiece, range.size - sent_);
      auto message = std::make_unique<v1::ToDaemon>();
      FillData(message->mutable_write(), range, sent_, size);
      sent_ += size;
      return message;
    }
    return std::move(run_);
  }

 private:
  std::unique_ptr<v1::ToDaemon> run_;
  const std::vector<BoundRange> inputs_;
  bool inline_ = false;
  size_t next_ = 0;
  uint64_t sent_ = 0;  // of inputs_[next_]
};

}  // namespace

Runs::Runs(const Parts& parts, Request request)
    : parts_(parts),
      request_(std::move(request)),
      fences_(parts.loop, [this] { SendReady(); }) {}

Runs::~Runs() {
  for (const PendingRun& pending : pending_runs_) {
    if (pending.timer != 0) parts_.loop->CancelTimer(pending.timer);
  }
}

void Runs::TakeEntries() {
  parts_.ring->ClearDoorbell();
  while (const std::optional<wire::Submission> entry = parts_.ring->Take()) {
    Take(*entry);
  }
}

void Runs::Take(const wire::Submission& job) {
  // Of our own process; a slot beyond the ring would be our own memory.
  if (job.slot >= wire::kRingEntries) return;
  PendingRun& pending = pending_runs_[job.slot];
  if (pending.state != PendingRun::State::kFree) return;
  pending = {};
  pending.job = job;
  pending.submitted = parts_.clock->Now();
  if (job.operation == static_cast<uint32_t>(wire::RingOperation::kCancel)) {
    return Cancel(pending);
  }
  if (const std::optional<Error> wrong = FindFences(pending)) {
    return Fail(pending, wrong->code, wrong->message);
  }
  pending.ports = parts_.bindings->Of(job.context, job.set);
  pending.shapes = parts_.bindings->shapes(job.context);
  if (!TrySend(pending)) Wait(pending);
}

std::optional<Error> Runs::FindFences(PendingRun& pending) const {
  const wire::Submission& job = pending.job;
  for (const auto& [number, out, found] :
       {std::tuple{job.fence_out, true, &pending.out},
        {job.notify, true, &pending.notify},
        {job.fence_in, false, &pending.in}}) {
    auto fence = fences_.Find(number, out);
    if (!fence.ok()) return fence.error();
    *found = *std::move(fence);
  }
  return std::nullopt;
}

void Runs::Cancel(PendingRun& pending) {
  const wire::Submission job = pending.job;
  const std::list<uint32_t> waiting = waiting_;
  for (const uint32_t slot : waiting) {
    PendingRun& other = pending_runs_[slot];
    if (other.state != PendingRun::State::kWaiting) continue;
    if (other.job.context != job.context) continue;
    if (job.frame != 0 && other.job.frame != job.frame) continue;
    ++pending.taken_back;
    Fail(other, Code::kCancelled,
         NameOf(other.job) + " was cancelled while it waited");
  }
  Send(pending);
}

bool Runs::WaitsBefore(const PendingRun& pending) const {
  for (const uint32_t slot : waiting_) {
    const PendingRun& other = pending_runs_[slot];
    if (&other == &pending) return false;
    if (other.job.context == pending.job.context) return true;
  }
  return false;
}

void Runs::Wait(PendingRun& pending) {
  pending.state = PendingRun::State::kWaiting;
  waiting_.push_back(pending.job.slot);
  if (pending.in != nullptr) {
    if (const Expected<void> watched = fences_.Watch(pending.in);
        !watched.ok()) {
      return Fail(pending, watched.error().code, watched.error().message);
    }
    pending.watched = true;
  }
  pending.timer = parts_.loop->RunAfter(
      PatienceOf(pending.job),
      [this, slot = pending.job.slot, sequence = pending.job.sequence] {
        Expire(slot, sequence);
      });
}

bool Runs::TrySend(PendingRun& pending) {
  if (pending.in != nullptr) {
    switch (LocalFences::Look(*pending.in)) {
      case LocalFences::State::kPending:
        return false;
      case LocalFences::State::kClosed:
        Fail(pending, Code::kFailedPrecondition,
             "fence " + std::to_string(pending.in->number) +
                 " was closed at its other end before it was signalled: the "
                 "run that it stands for did not end well, and this one was "
                 "not begun");
        return true;
      case LocalFences::State::kSignalled:
        break;
    }
  }
  // Runs of one context end in the order of their start.
  if (WaitsBefore(pending)) return false;
  Send(pending);
  return true;
}

void Runs::SendReady() {
  const std::list<uint32_t> waiting = waiting_;
  for (const uint32_t slot : waiting) {
    PendingRun& pending = pending_runs_[slot];
    if (pending.state == PendingRun::State::kWaiting) TrySend(pending);
  }
}

void Runs::Send(PendingRun& pending) {
  const bool waited = pending.state == PendingRun::State::kWaiting;
  if (waited) {
    waiting_.remove(pending.job.slot);
    parts_.loop->CancelTimer(std::exchange(pending.timer, 0));
    if (std::exchange(pending.watched, false)) fences_.Forget(*pending.in);
  }
  if (waited &&
      pending.shapes != parts_.bindings->shapes(pending.job.context)) {
    return Fail(pending, Code::kFailedPrecondition,
                "the shapes of context " + std::to_string(pending.job.context) +
                    " were changed while " + NameOf(pending.job) +
                    " waited for its fence: on another machine's NPU a run "
                    "cannot keep those of its start");
  }
  pending.state = PendingRun::State::kSent;
  const std::vector<BoundPortRef> now =
      waited ? parts_.bindings->Of(pending.job.context, pending.job.set)
             : pending.ports;
  // What is bound counts when a run was started, and the daemon begins this one
  // with what is bound when it arrives.
  if (now != pending.ports) Rebind(pending.ports);
  SendMessages(pending);
  if (now != pending.ports) Rebind(now);
}

void Runs::Rebind(const std::vector<BoundPortRef>& ports) {
  for (const BoundPortRef& port : ports) {
    if (const auto* bind = std::get_if<wire::Bind>(&port->request)) {
      if (auto body = wire::Encode(*bind); body.ok()) {
        request_(wire::Verb::kBind, *std::move(body));
      }
    } else if (auto body =
                   wire::Encode(std::get<wire::BindFrame>(port->request));
               body.ok()) {
      request_(wire::Verb::kBindFrame, *std::move(body));
    }
  }
}

void Runs::SendMessages(const PendingRun& pending) {
  auto message = std::make_unique<v1::ToDaemon>();
  v1::Run* const run = message->mutable_run();
  FillRun(run, pending.job, parts_.clock->Now() - pending.submitted);
  Bindings::Ranges ranges =
      parts_.bindings->RangesOf(pending.job.context, pending.ports);
  for (const BoundRange& output : ranges.outputs) {
    v1::Range* const range = run->add_outputs();
    range->set_buffer(output.buffer);
    range->set_offset(output.offset);
    range->set_size(output.size);
  }
  const auto messages = std::make_shared<RunMessages>(std::move(message),
                                                      std::move(ranges.inputs));
  parts_.outbox->SendAll([messages] { return messages->Next(); });
}

void Runs::Expire(uint32_t slot, uint32_t sequence) {
  PendingRun& pending = pending_runs_[slot];
  if (pending.state != PendingRun::State::kWaiting ||
      pending.job.sequence != sequence) {
    return;
  }
  pending.timer = 0;
  const Nanoseconds waited = parts_.clock->Now() - pending.submitted;
  Fail(pending, Code::kDeadlineExceeded,
       NameOf(pending.job) + " waited " + Ms(waited) +
           " for its fence, which is longer than it may wait: it was not run");
}

void Runs::Destroyed(uint32_t context) {
  const std::list<uint32_t> waiting = waiting_;
  for (const uint32_t slot : waiting) {
    PendingRun& pending = pending_runs_[slot];
    if (pending.state != PendingRun::State::kWaiting ||
        pending.job.context != context) {
      continue;
    }
    Fail(pending, Code::kCancelled,
         NameOf(pending.job) + " was cancelled: its context was destroyed");
  }
}

void Runs::OnData(const v1::Data& data) {
  const auto buffer = parts_.buffers->find(data.buffer());
  if (buffer == parts_.buffers->end()) return;  // released meanwhile
  buffer->second->Store(data.offset(), std::as_bytes(std::span(data.data())));
}

void Runs::OnEnd(const v1::RunEnd& end) {
  if (end.slot() >= wire::kRingEntries) return;
  PendingRun& pending = pending_runs_[end.slot()];
  if (pending.state != PendingRun::State::kSent ||
      pending.job.sequence != end.sequence()) {
    return;
  }
  for (const v1::Data& data : end.outputs()) OnData(data);
  RunAnswer answer;
  answer.code = static_cast<Code>(end.code());
  answer.text = end.text();
  answer.queue_ns = end.queue_ns();
  answer.run_ns = end.run_ns();
  // As the program sees it: with the way there and back.
  answer.total_ns =
      std::max(end.total_ns(),
               static_cast<uint64_t>(parts_.clock->Now() - pending.submitted));
  answer.core = end.core();
  answer.drops = end.drops();
  answer.count = end.count() + pending.taken_back;
  Finish(pending, answer);
}

void Runs::Fail(PendingRun& pending, Code code, std::string text) {
  if (pending.state == PendingRun::State::kWaiting) {
    waiting_.remove(pending.job.slot);
    if (pending.timer != 0) parts_.loop->CancelTimer(pending.timer);
    if (pending.watched) fences_.Forget(*pending.in);
  }
  RunAnswer answer;
  answer.code = code;
  answer.text = std::move(text);
  answer.total_ns =
      static_cast<uint64_t>(parts_.clock->Now() - pending.submitted);
  Finish(pending, answer);
  // Those behind it need not wait for it any more: soon, as this may be in the
  // middle of a look at them.
  if (!waiting_.empty()) {
    parts_.loop->Post([this] { SendReady(); });
  }
}

void Runs::Finish(PendingRun& pending, const RunAnswer& answer) {
  const wire::Submission job = pending.job;
  const auto out = std::move(pending.out);
  const auto notify = std::move(pending.notify);
  // Free before the program knows: it may use the slot at once.
  pending = {};
  parts_.ring->Complete(job, answer);
  if (out != nullptr) LocalFences::Signal(*out);
  if (notify != nullptr) LocalFences::Signal(*notify);
}

}  // namespace rknnd::client
