// What a peer may send as HTTP/2, and gRPC answer, in any pieces: whatever the
// guard makes of it, it passes no more than it was shown, keeps to its limits,
// gives back what it took, and decides alike however the bytes are cut.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "daemon/transport/grpc/relay/http2_guard.h"

namespace {

using rknnd::transport::Http2Guard;
using rknnd::transport::Http2Room;

constexpr uint32_t kStreams = 5;
constexpr uint64_t kRoom = uint64_t{1} << 19;

void Require(bool condition) {
  if (!condition) std::abort();
}

class Room final : public Http2Room {
 public:
  bool Take(uint64_t bytes) override {
    if (bytes > kRoom - used) return false;
    used += bytes;
    return true;
  }
  void GiveBack(uint64_t bytes) override {
    Require(bytes <= used);
    used -= bytes;
  }
  bool MayOpen(uint32_t resets) override { return resets < 2 * kUnseenResets; }

  uint64_t used = 0;
};

// How much of `bytes` passes, cut so; `moved`: what need not be shown is not.
size_t Passed(std::span<const std::byte> bytes, size_t cut, bool moved,
              const rknnd::base::Clock& clock) {
  Room room;
  size_t passed = 0;
  {
    Http2Guard guard({kStreams, 1 << 16, 1 << 12}, &clock, &room);
    while (passed < bytes.size()) {
      const auto piece =
          bytes.subspan(passed, std::min(cut, bytes.size() - passed));
      const size_t unread = std::min(guard.unread(), piece.size());
      Require(guard.before_unread(1) > 0);
      if (moved && unread > 0) {
        guard.MovedUnread(unread / 2 + 1);
        passed += unread / 2 + 1;
        continue;
      }
      const Http2Guard::Verdict verdict = guard.FromClient(piece);
      Require(verdict.pass <= piece.size());
      Require(guard.streams() <= kStreams * 8);
      passed += verdict.pass;
      if (verdict.next == Http2Guard::Next::kEnd) break;
      if (verdict.pass == 0) {
        Require(verdict.next == Http2Guard::Next::kWait);
        break;
      }
    }
  }
  Require(room.used == 0);
  return passed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const rknnd::base::FakeClock clock;
  // The first byte is how it is cut.
  const size_t cut = size_t{data[0]} + 1;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  static_cast<void>(Passed(bytes, cut, /*moved=*/false, clock));
  static_cast<void>(Passed(bytes, cut, /*moved=*/true, clock));
  // A cut may part frames that wait for each other, but no bytes pass that
  // would not pass alone.
  Require(Passed(bytes, 1, /*moved=*/false, clock) <= bytes.size());

  // The same as both directions by turns.
  Room room;
  {
    Http2Guard guard({kStreams, 1 << 16, 1 << 12}, &clock, &room);
    for (size_t at = 0; at < bytes.size();) {
      const auto piece = bytes.subspan(at, std::min(cut, bytes.size() - at));
      const Http2Guard::Verdict verdict = guard.FromClient(piece);
      guard.FromServer(piece);
      static_cast<void>(guard.Goodbye("fuzz"));
      if (verdict.next == Http2Guard::Next::kEnd) break;
      at += std::max<size_t>(verdict.pass, 1);
    }
  }
  Require(room.used == 0);
  return 0;
}
