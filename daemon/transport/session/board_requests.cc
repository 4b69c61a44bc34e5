// Every field of a request was written by a client; a level that does not exist
// means the nearest one that does.

#include "daemon/transport/session/board_requests.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/transport/session/translate.h"
#include "proto/wire/codec.h"

namespace rknnd::transport {
namespace {

constexpr uint32_t kHighestLevel = 5;  // of RKNN_LOG_LEVEL

wire::ClocksReply ToClocksReply(const std::vector<BoardClock>& clocks) {
  wire::ClocksReply reply;
  for (const BoardClock& clock : clocks) {
    wire::BoardClock out{};
    wire::SetText(out.name, clock.name);
    out.hz = clock.hz;
    out.min_hz = clock.min_hz;
    out.max_hz = clock.max_hz;
    wire::SetText(out.governor, clock.governor);
    out.pinned = clock.pinned;
    reply.clocks.push_back(out);
  }
  return reply;
}

wire::DoctorReply ToDoctorReply(const std::vector<Finding>& findings) {
  wire::DoctorReply reply;
  for (const Finding& finding : findings) {
    wire::Finding out{};
    wire::SetText(out.check, finding.check);
    out.severity = static_cast<uint32_t>(finding.level);
    wire::SetText(out.text, finding.text);
    wire::SetText(out.remedy, finding.remedy);
    reply.findings.push_back(out);
  }
  return reply;
}

}  // namespace

// What this connection holds of the board, and what it waits for: one of each
// kind, so that a flood of requests costs no more than one.
struct BoardRequests::Held {
  std::shared_ptr<ClockPin> pin;
  std::unique_ptr<LogFollower> follower;
  bool ended = false;  // the connection has gone; nothing is held for it
  bool doctor = false, clocks = false, reset = false;  // being answered
};

BoardRequests::BoardRequests(core::Service* service, Board* board,
                             EventCallback events)
    : service_(service),
      board_(board),
      events_(std::move(events)),
      held_(std::make_shared<Held>()) {}

BoardRequests::~BoardRequests() {
  held_->ended = true;
  held_->pin.reset();
  held_->follower.reset();
}

void BoardRequests::Handle(const wire::Frame& request,
                           const ReplyCallback& reply) {
  // The device is core's; all else is the board's.
  if (request.verb == wire::Verb::kReset) return Reset(request, reply);
  if (request.verb == wire::Verb::kQuarantine) {
    return Quarantine(request, reply);
  }
  if (board_ == nullptr) {
    return reply(Failure(absl::UnimplementedError(absl::StrCat(
        "'", VerbName(request.verb),
        "' is answered by rknnd only, not by the daemon inside a program"))));
  }
  switch (request.verb) {
    case wire::Verb::kDoctor:
      return Doctor(reply);
    case wire::Verb::kClocks:
      return Clocks(reply);
    case wire::Verb::kPinClocks:
      return PinClocks(request, reply);
    case wire::Verb::kFollowLogs:
      return FollowLogs(request, reply);
    case wire::Verb::kSetLogLevel:
      return SetLogLevel(request, reply);
    default:
      return reply(Failure(absl::InternalError(
          absl::StrCat("'", VerbName(request.verb), "' is not the board's"))));
  }
}

void BoardRequests::Doctor(const ReplyCallback& reply) {
  if (std::exchange(held_->doctor, true)) {
    return reply(Failure(absl::ResourceExhaustedError(
        "doctor: this connection waits for one already")));
  }
  board_->Diagnose([reply, held = held_](const std::vector<Finding>& findings) {
    held->doctor = false;
    reply(Answer(ToDoctorReply(findings)));
  });
}

void BoardRequests::Clocks(const ReplyCallback& reply) {
  if (std::exchange(held_->clocks, true)) {
    return reply(Failure(absl::ResourceExhaustedError(
        "clocks: this connection waits for them already")));
  }
  board_->ReadClocks(
      [reply, held = held_](const absl::StatusOr<BoardState>& state) {
        held->clocks = false;
        if (!state.ok()) return reply(Failure(state.status()));
        wire::ClocksReply answer = ToClocksReply(state->clocks);
        answer.npu = state->npu;
        reply(Answer(answer));
      });
}

void BoardRequests::PinClocks(const wire::Frame& request,
                              const ReplyCallback& reply) {
  const auto message = Decoded<wire::PinClocks>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  if (!message->pin) {
    // What is read after it shows them as they were before.
    held_->pin.reset();
    return Clocks(reply);
  }
  if (std::exchange(held_->clocks, true)) {
    return reply(Failure(absl::ResourceExhaustedError(
        "clocks: this connection waits for them already")));
  }
  board_->PinClocks(
      [reply, held = held_](absl::StatusOr<std::shared_ptr<ClockPin>> pin,
                            const std::vector<BoardClock>& clocks) {
        held->clocks = false;
        if (!pin.ok()) return reply(Failure(pin.status()));
        if (!held->ended) held->pin = *std::move(pin);
        reply(Answer(ToClocksReply(clocks)));
      });
}

void BoardRequests::FollowLogs(const wire::Frame& request,
                               const ReplyCallback& reply) {
  const auto message = Decoded<wire::FollowLogs>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  if (events_ == nullptr) {
    return reply(Failure(absl::UnimplementedError(
        "the log cannot be followed on this kind of connection")));
  }
  // Asked again: the new level is in force, and no line comes twice.
  held_->follower.reset();
  reply(Answer(wire::Empty{}));
  held_->follower = board_->FollowLog(std::min(message->level, kHighestLevel),
                                      message->recent,
                                      [events = events_](const LogLine& line) {
                                        wire::LogLine out{};
                                        out.level = line.level;
                                        wire::SetText(out.text, line.text);
                                        out.time_ns = line.time_ns;
                                        out.lost = line.lost;
                                        auto body = wire::Encode(out);
                                        if (!body.ok()) return false;
                                        wire::Frame frame;
                                        frame.verb = wire::Verb::kLogLine;
                                        frame.kind = wire::FrameKind::kEvent;
                                        frame.body = *std::move(body);
                                        return events(std::move(frame));
                                      });
}

void BoardRequests::SetLogLevel(const wire::Frame& request,
                                const ReplyCallback& reply) {
  const auto message = Decoded<wire::SetLogLevel>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  wire::SetLogLevel before{};
  before.level = board_->SetLogLevel(std::min(message->level, kHighestLevel));
  reply(Answer(before));
}

void BoardRequests::Quarantine(const wire::Frame& request,
                               const ReplyCallback& reply) {
  const auto message = Decoded<wire::QuarantineRequest>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  if (*message->release != '\0') {
    const absl::Status released = service_->ReleaseModel(message->release);
    if (!released.ok()) return reply(Failure(released));
  }
  wire::QuarantineReply answer;
  for (const driver::QuarantinedModel& model : service_->QuarantinedModels()) {
    wire::QuarantinedModel& out = answer.models.emplace_back();
    wire::SetText(out.sha256, model.sha256);
    wire::SetText(out.name, model.name);
    wire::SetText(out.why, model.why);
    out.deaths = model.deaths;
  }
  reply(Answer(answer));
}

void BoardRequests::Reset(const wire::Frame& request,
                          const ReplyCallback& reply) {
  const auto message = Decoded<wire::ResetRequest>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  if (message->cores != 0) {
    return reply(Failure(absl::InvalidArgumentError(
        "a reset of some cores only: the hardware resets all of them")));
  }
  if (std::exchange(held_->reset, true)) {
    return reply(Failure(absl::ResourceExhaustedError(
        "reset: this connection waits for one already")));
  }
  service_->ResetDevice([reply, held = held_](absl::Status status) {
    held->reset = false;
    reply(Done(std::move(status)));
  });
}

}  // namespace rknnd::transport
