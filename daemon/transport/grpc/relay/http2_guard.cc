// Bytes come from anybody who reaches the port: nothing is read but the
// preface, nine bytes a frame and five a message, and no length is believed
// before it was compared.

#include "daemon/transport/grpc/relay/http2_guard.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "daemon/transport/grpc/relay/http2_frames.h"

namespace rknnd::transport {
namespace {

using namespace http2;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A header block comes in few frames, however they are cut.
constexpr uint32_t kMostBlockFrames = 16;
// A peer that does not know yet how many calls it may open may open so many
// times more.
constexpr uint32_t kUntold = 8;
// PING and SETTINGS that the peer has not taken the answers of: each answer
// waits in gRPC's memory.
constexpr uint32_t kMostUnanswered = 8;
constexpr uint32_t kMostSettings = 32 * 6;
constexpr uint32_t kMostGoodbye = 1024;
// As a peer may send before it was told otherwise. No flow control bounds them,
// and gRPC makes room for all of one that has begun.
constexpr uint32_t kMostUnknown = 16 << 10;
// Frames that mean nothing to us. Clients of browsers' libraries send some at
// the start of a connection or a call.
constexpr uint32_t kIdleBurst = 1000;
constexpr base::Nanoseconds kPerIdle = 5 * base::kMillisecond;

uint32_t Read32(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 |
         uint32_t{bytes[2]} << 8 | bytes[3];
}

}  // namespace

uint32_t Http2Guard::Frames::length() const {
  return Read32(header.data()) >> 8;
}

uint32_t Http2Guard::Frames::stream() const {
  return Read32(header.data() + 5) & 0x7fffffff;
}

Http2Guard::Http2Guard(const Http2Limits& limits, const base::Clock* clock,
                       Http2Room* room)
    : limits_(limits),
      clock_(clock),
      room_(room),
      idle_{kIdleBurst, clock->Now()} {}

Http2Guard::~Http2Guard() {
  while (!streams_.empty()) Close(streams_.begin()->first);
  room_->GiveBack(coming_);
}

Http2Guard::Verdict Http2Guard::FromClient(std::span<const std::byte> bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    if (preface_ < kPreface.size()) {
      if (static_cast<char>(bytes[at]) != kPreface[preface_]) {
        return End(at, "it speaks no HTTP/2");
      }
      ++preface_;
      ++at;
      continue;
    }
    if (client_.left > 0) {
      const size_t size = std::min<size_t>(client_.left, bytes.size() - at);
      FrameCame(size);
      if (data_ != nullptr) ReadData(*data_, bytes.subspan(at, size));
      at += size;
      greeted_ |= client_.left == 0;
      // Later ones in this round are behind a mark of their own.
      if (client_.left == 0 && client_.type() == kReset && !marked_ &&
          block_ == 0 && resets_ >= Http2Room::kUnseenResets) {
        marked_ = true;
        before_mark_ = settings_;
        return {at, Next::kMark};
      }
      continue;
    }
    client_.header[client_.header_size] = static_cast<uint8_t>(bytes[at]);
    if (client_.header_size < client_.header.size() - 1) {
      ++client_.header_size;
      ++at;
      continue;
    }
    // The last byte of a header is passed when the frame may follow.
    Verdict verdict = Decide();
    verdict.pass = at;
    if (verdict.next != Next::kMore) return verdict;
    client_.header_size = 0;
    client_.left = client_.length();
    greeted_ |= client_.left == 0;
    ++at;
  }
  return {at};
}

size_t Http2Guard::greeting_due() const {
  if (greeted_) return 0;
  if (client_.left > 0) return client_.left;
  return kPreface.size() - preface_ + client_.header.size() -
         client_.header_size;
}

Http2Guard::Verdict Http2Guard::Decide() {
  const uint32_t length = client_.length();
  const uint32_t stream = client_.stream();
  const uint8_t type = client_.type();
  const uint8_t flags = client_.flags();
  data_ = nullptr;
  if (length > limits_.frame_bytes) return End(0, "a frame is too large");
  if (!greeted_ && type != kSettings) {
    return End(0, "it begins without settings");
  }
  if (block_ != 0) {
    if (type != kContinuation || stream != block_) {
      return End(0, "a frame came where headers were due");
    }
    block_bytes_ += length;
    if (block_bytes_ > limits_.header_bytes) {
      return End(0, "a call's headers are too large");
    }
    if (++block_frames_ > kMostBlockFrames) {
      return End(0, "a call's headers come in too many frames");
    }
    if ((flags & kEndHeaders) != 0) block_ = 0;
    return {};
  }
  switch (type) {
    case kData: {
      // gRPC takes no padding either.
      if ((flags & kPadded) != 0) return End(0, "its messages are padded");
      if (const auto found = streams_.find(stream); found != streams_.end()) {
        data_ = &found->second;
      }
      if (!TakeFrame(length)) {
        return {0, Next::kWait, "its messages have no room"};
      }
      const bool idle = length == 0 && (flags & kEndStream) == 0;
      return idle ? Idle() : Verdict{};
    }
    case kHeaders:
      return DecideHeaders();
    case kReset:
      if (streams_.contains(stream)) {
        Close(stream);
        ++resets_;
      }
      return {};
    case kSettings:
      return DecideSettings();
    case kPing:
      return (flags & kAck) != 0 ? Idle() : DecideAnswered();
    case kGoaway:
      if (length > kMostGoodbye) return End(0, "its GOAWAY is too large");
      return Idle();
    case kWindow:
      return {};
    case kPush:
      return End(0, "a client sent PUSH_PROMISE");
    case kContinuation:
      return End(0, "CONTINUATION came where none was due");
    default:
      // PRIORITY, and what came after HTTP/2.
      if (length > kMostUnknown) {
        return End(0, "a frame of no known kind is too large");
      }
      return Idle();
  }
}

Http2Guard::Verdict Http2Guard::DecideHeaders() {
  const uint32_t length = client_.length();
  const uint32_t stream = client_.stream();
  if (stream % 2 == 0) return End(0, "a call has a number of the server's");
  if (length > limits_.header_bytes) {
    return End(0, "a call's headers are too large");
  }
  if (stream > last_) {
    const size_t most =
        told_ ? limits_.streams : uint64_t{limits_.streams} * kUntold;
    if (streams_.size() >= most) {
      return {0, Next::kWait, "it has too many calls (grpc.streams)"};
    }
    if (marked_) {
      return {0, Next::kWait, "calls that were taken back come first"};
    }
    if (!room_->MayOpen(resets_)) {
      return {0, Next::kWait, "calls that were taken back have not ended"};
    }
    if (resets_ >= Http2Room::kUnseenResets) resets_ = 0;
    if (!room_->Take(kCallBytes + length)) {
      return {0, Next::kWait, "its calls have no room"};
    }
    last_ = stream;
    streams_[stream].held = kCallBytes + length;
  } else if (!streams_.contains(stream) ||
             (client_.flags() & kEndStream) == 0) {
    // Of a call that has ended already, or again of one that goes on.
    const Verdict verdict = Idle();
    if (verdict.next != Next::kMore) return verdict;
  }
  block_bytes_ = length;
  block_frames_ = 1;
  block_ = (client_.flags() & kEndHeaders) != 0 ? 0 : stream;
  return {};
}

Http2Guard::Verdict Http2Guard::DecideSettings() {
  if ((client_.flags() & kAck) != 0) {
    told_ = server_began_;
    return Idle();
  }
  if (client_.length() > kMostSettings) {
    return End(0, "it has too many settings");
  }
  const Verdict verdict = DecideAnswered();
  if (verdict.next == Next::kMore) ++settings_;
  return verdict;
}

Http2Guard::Verdict Http2Guard::DecideAnswered() {
  if (unanswered_ >= kMostUnanswered) {
    return {0, Next::kWait, "it does not take its answers"};
  }
  ++unanswered_;
  return {};
}

Http2Guard::Verdict Http2Guard::Idle() {
  if (idle_.tokens == 0) {
    const base::Nanoseconds now = clock_->Now();
    const auto more = (now - idle_.filled) / kPerIdle;
    idle_.tokens =
        static_cast<uint32_t>(std::min<base::Nanoseconds>(more, kIdleBurst));
    idle_.filled = now;
    if (idle_.tokens == 0) return End(0, "it sends frames that mean nothing");
  }
  --idle_.tokens;
  return {};
}

bool Http2Guard::TakeFrame(uint32_t length) {
  if (!room_->Take(length)) return false;
  coming_ = length;
  return true;
}

void Http2Guard::FrameCame(size_t bytes) {
  client_.left -= static_cast<uint32_t>(bytes);
  const uint64_t taken = std::min<uint64_t>(bytes, coming_);
  coming_ -= taken;
  if (data_ == nullptr) return room_->GiveBack(taken);
  data_->held += taken;
}

void Http2Guard::ReadData(Stream& stream, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    size_t size = 0;
    if (stream.prefix_size < stream.prefix.size()) {
      size = std::min(bytes.size(), stream.prefix.size() - stream.prefix_size);
      std::memcpy(stream.prefix.data() + stream.prefix_size, bytes.data(),
                  size);
      stream.prefix_size += size;
      stream.message += size;
      if (stream.prefix_size == stream.prefix.size()) {
        stream.missing = Read32(stream.prefix.data() + 1);
        missing_ += stream.missing;
      }
    } else {
      size =
          static_cast<size_t>(std::min<uint64_t>(bytes.size(), stream.missing));
      Receive(stream, size);
    }
    bytes = bytes.subspan(size);
    EndIfWhole(stream);
  }
}

void Http2Guard::Receive(Stream& stream, uint64_t bytes) {
  stream.missing -= bytes;
  missing_ -= bytes;
  stream.message += bytes;
}

void Http2Guard::EndIfWhole(Stream& stream) {
  if (stream.prefix_size < stream.prefix.size() || stream.missing > 0) return;
  // Whoever reads it sees to its memory, once the call has been let in. Until
  // it was answered nobody may have looked at it.
  if (stream.answered) GiveBack(stream, stream.message);
  stream.message = 0;
  stream.prefix_size = 0;
}

size_t Http2Guard::unread() const {
  if (client_.left == 0 || client_.type() != kData) return 0;
  if (data_ == nullptr) return client_.left;
  if (data_->prefix_size < data_->prefix.size()) return 0;
  return static_cast<size_t>(std::min<uint64_t>(client_.left, data_->missing));
}

size_t Http2Guard::before_unread(size_t least) const {
  if (missing_ < least) return std::numeric_limits<size_t>::max();
  return client_.left + client_.header.size() - client_.header_size;
}

void Http2Guard::MovedUnread(size_t moved) {
  FrameCame(moved);
  if (data_ == nullptr) return;
  Receive(*data_, moved);
  EndIfWhole(*data_);
}

void Http2Guard::GiveBack(Stream& stream, uint64_t bytes) {
  stream.held -= bytes;
  room_->GiveBack(bytes);
}

void Http2Guard::Close(uint32_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  if (data_ == &found->second) data_ = nullptr;
  const uint64_t held = found->second.held;
  missing_ -= found->second.missing;
  streams_.erase(found);
  room_->GiveBack(held);
}

}  // namespace rknnd::transport
