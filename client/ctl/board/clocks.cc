#include "client/ctl/board/clocks.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Expected;

std::string Frequency(uint64_t hz) {
  char text[32];
  if (hz >= 1'000'000'000) {
    std::snprintf(text, sizeof text, "%.2f GHz", static_cast<double>(hz) / 1e9);
  } else {
    std::snprintf(text, sizeof text, "%.0f MHz", static_cast<double>(hz) / 1e6);
  }
  return text;
}

// What a board or a daemon cannot do, the measurement does without.
bool IsLack(Code code) {
  return code == Code::kFailedPrecondition || code == Code::kUnimplemented ||
         code == Code::kNotFound;
}

}  // namespace

Expected<BoardClocks> BoardClocks::Open(const std::string& target, bool fix) {
  BoardClocks board;
  if (target.starts_with("local:")) {
    board.why_ = "target 'local:' has no board";
    return board;
  }
  Expected<ControlConnection> daemon =
      fix ? ControlConnection::OpenAdmin(target)
          : ControlConnection::Open(target);
  if (!daemon) return std::move(daemon).error();
  board.daemon_.emplace(*std::move(daemon));
  if (fix) {
    const Expected<wire::ClocksReply> pinned =
        board.daemon_->Request<wire::ClocksReply>(wire::Verb::kPinClocks,
                                                  wire::PinClocks{.pin = true});
    if (!pinned && !IsLack(pinned.error().code)) return pinned.error();
    board.fixed_ = pinned.ok();
    if (!pinned) board.why_ = pinned.error().message;
  }
  if (board.Look().empty() && board.why_.empty()) {
    board.why_ = "this board shows no clocks";
  }
  return board;
}

const std::vector<wire::BoardClock>& BoardClocks::Look() {
  if (!daemon_) return clocks_;
  Expected<wire::ClocksReply> reply =
      daemon_->Request<wire::ClocksReply>(wire::Verb::kClocks, wire::Empty{});
  if (reply) {
    clocks_ = std::move(reply->clocks);
    npu_ = std::move(reply->npu);
  } else if (why_.empty()) {
    why_ = reply.error().message;
  }
  return clocks_;
}

void BoardClocks::Release() {
  // Where that fails, the connection's end does it.
  if (daemon_ && fixed_) {
    static_cast<void>(daemon_->Request<wire::ClocksReply>(
        wire::Verb::kPinClocks, wire::PinClocks{.pin = false}));
  }
  daemon_.reset();
}

Json ClocksJson(const std::vector<wire::BoardClock>& clocks) {
  Json list = Json::array();
  for (const wire::BoardClock& clock : clocks) {
    list.push_back({{"name", clock.name},
                    {"hz", clock.hz},
                    {"min_hz", clock.min_hz},
                    {"max_hz", clock.max_hz},
                    {"governor", clock.governor},
                    {"pinned", clock.pinned}});
  }
  return list;
}

std::string ClocksText(const std::vector<wire::BoardClock>& clocks) {
  std::string text;
  for (const wire::BoardClock& clock : clocks) {
    if (!text.empty()) text += ", ";
    text += Printable(clock.name) + " " + Frequency(clock.hz);
    if (clock.hz < clock.max_hz) text += " of " + Frequency(clock.max_hz);
    if (clock.pinned) {
      text += " (pinned)";
    } else if (*clock.governor != '\0') {
      text += " (" + Printable(clock.governor) + ")";
    }
  }
  return text;
}

}  // namespace rknnd::client
