// The guard's other direction: what gRPC says, which is trusted, and tells
// which calls have ended and which answers were taken.

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/transport/grpc/relay/http2_frames.h"
#include "daemon/transport/grpc/relay/http2_guard.h"

namespace rknnd::transport {
namespace {

using namespace http2;

constexpr uint32_t kEnhanceYourCalm = 11;

void Append32(std::string& to, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    to.push_back(static_cast<char>(value >> shift & 0xff));
  }
}

}  // namespace

std::span<const std::byte> Http2Guard::FromServer(
    std::span<const std::byte> bytes) {
  if (marked_ || held_back_) return WithoutMark(bytes);
  for (auto left = bytes; !left.empty();) {
    size_t size = 1;
    if (server_.left > 0) {
      size = std::min<size_t>(server_.left, left.size());
      server_.left -= static_cast<uint32_t>(size);
    } else {
      server_.header[server_.header_size] = static_cast<uint8_t>(left[0]);
      if (++server_.header_size == server_.header.size()) {
        server_.header_size = 0;
        server_.left = server_.length();
        FrameFromServer();
      }
    }
    left = left.subspan(size);
  }
  return bytes;
}

std::span<const std::byte> Http2Guard::WithoutMark(
    std::span<const std::byte> bytes) {
  rest_.clear();
  while (!bytes.empty()) {
    size_t size = 1;
    if (server_.left > 0) {
      size = std::min<size_t>(server_.left, bytes.size());
      server_.left -= static_cast<uint32_t>(size);
      rest_.insert(rest_.end(), bytes.begin(),
                   bytes.begin() + static_cast<ptrdiff_t>(size));
    } else {
      // A header that was begun before the mark was sent has gone on in part.
      if (server_.header_size == 0) held_back_ = true;
      server_.header[server_.header_size] = static_cast<uint8_t>(bytes[0]);
      if (!held_back_) rest_.push_back(bytes[0]);
      if (++server_.header_size == server_.header.size()) {
        server_.header_size = 0;
        server_.left = server_.length();
        const bool goes_on = FrameFromServer();
        if (std::exchange(held_back_, false) && goes_on) {
          const auto header = std::as_bytes(std::span(server_.header));
          rest_.insert(rest_.end(), header.begin(), header.end());
        }
      }
    }
    bytes = bytes.subspan(size);
  }
  return rest_;
}

bool Http2Guard::IsMark() {
  if (marked_ && before_mark_ == 0) {
    marked_ = false;
    return true;
  }
  if (before_mark_ > 0) --before_mark_;
  if (settings_ > 0) --settings_;
  return false;
}

bool Http2Guard::FrameFromServer() {
  server_began_ = true;
  const uint32_t id = server_.stream();
  switch (server_.type()) {
    case kPing:
    case kSettings:
      if ((server_.flags() & kAck) == 0) return true;
      if (server_.type() == kSettings && IsMark()) return false;
      if (unanswered_ > 0) --unanswered_;
      return true;
    case kReset:
      Close(id);
      return true;
    case kData:
    case kHeaders: {
      const auto found = streams_.find(id);
      if (found == streams_.end()) return true;
      if ((server_.flags() & kEndStream) != 0) {
        Close(id);
        return true;
      }
      if (found->second.answered) return true;
      Stream& stream = found->second;
      stream.answered = true;
      GiveBack(stream, stream.held - stream.message -
                           std::min(stream.held - stream.message, kCallBytes));
      return true;
    }
    default:
      return true;
  }
}

std::optional<std::string> Http2Guard::Goodbye(const char* why) const {
  if (!server_began_ || server_.header_size > 0 || server_.left > 0) {
    return std::nullopt;
  }
  const std::string_view text = why;
  std::string frame;
  Append32(frame, static_cast<uint32_t>(8 + text.size()) << 8 | kGoaway);
  frame.push_back(0);
  Append32(frame, 0);
  Append32(frame, last_);
  Append32(frame, kEnhanceYourCalm);
  frame += text;
  return frame;
}

}  // namespace rknnd::transport
