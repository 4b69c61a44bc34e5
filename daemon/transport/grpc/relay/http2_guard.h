// What a peer may send as HTTP/2 before gRPC sees it. gRPC 1.51 keeps whatever
// comes: headers without end, calls that were taken back, answers that nobody
// takes. The guard reads frame headers only, in any split of bytes, and lets
// nothing by whose memory is not bounded. It knows no sockets.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_HTTP2_GUARD_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_HTTP2_GUARD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/posix/clock.h"

namespace rknnd::transport {

// What an open call costs gRPC and us beside its headers and messages: 18 KiB
// as measured.
inline constexpr uint64_t kCallBytes = 24 << 10;

// Memory and calls that all connections share.
class Http2Room {
 public:
  virtual ~Http2Room() = default;
  // False: there is no room now; nothing was taken.
  virtual bool Take(uint64_t bytes) = 0;
  virtual void GiveBack(uint64_t bytes) = 0;
  // Whether the connection may open one more call, after it has taken `resets`
  // of its calls back. A call that was taken back stays in memory until gRPC's
  // threads have seen to it. From kUnseenResets on gRPC has read all of them
  // when this is asked, and once it may they are not told again.
  static constexpr uint32_t kUnseenResets = 8;
  virtual bool MayOpen(uint32_t resets) = 0;
};

struct Http2Limits {
  uint32_t streams = 128;            // open calls, once the peer was told
  uint32_t frame_bytes = 1 << 20;    // of one frame
  uint32_t header_bytes = 32 << 10;  // of one header block, encoded
};

// One connection. Thread: any, one at a time.
class Http2Guard {
 public:
  // All outlive it.
  Http2Guard(const Http2Limits& limits, const base::Clock* clock,
             Http2Room* room);
  ~Http2Guard();
  Http2Guard(const Http2Guard&) = delete;
  Http2Guard& operator=(const Http2Guard&) = delete;

  //   kMore  all of it may go on
  //   kMark  kMark must be sent to gRPC behind it, then the rest shown
  //   kWait  what follows `pass` must be shown again later
  //   kEnd   nothing more: `why` says what the peer did
  enum class Next : uint8_t { kMore, kMark, kWait, kEnd };
  struct Verdict {
    size_t pass = 0;  // so many bytes may go on to gRPC
    Next next = Next::kMore;
    const char* why = "";
  };
  // Bytes that follow what was passed before.
  Verdict FromClient(std::span<const std::byte> bytes);

  // How many bytes of the client's greeting are known to be missing: of its
  // preface and its first frame, which are its settings. 0: it has greeted.
  [[nodiscard]] size_t greeting_due() const;

  // How many bytes come next that it would not look at: those of a message.
  // They need not be shown; it hears how many were moved instead.
  [[nodiscard]] size_t unread() const;
  void MovedUnread(size_t moved);
  // Of bytes that are to be shown no more than these can come before such ones,
  // where at least `least` of them are known to come; else any number.
  [[nodiscard]] size_t before_unread(size_t least) const;

  // An empty SETTINGS: gRPC acknowledges it when it has read what came before.
  static constexpr std::array<uint8_t, 9> kMark = {0, 0, 0, 4, 0, 0, 0, 0, 0};
  // What gRPC answers. The result may go on: all but what answers a mark, and
  // a frame's first bytes while that may be one. It lasts until the next call.
  std::span<const std::byte> FromServer(std::span<const std::byte> bytes);

  [[nodiscard]] size_t streams() const { return streams_.size(); }
  // A GOAWAY that tells the peer why, to be sent as the last thing. Nothing
  // where gRPC is within a frame, or has sent nothing yet.
  [[nodiscard]] std::optional<std::string> Goodbye(const char* why) const;

 private:
  // Reads frame headers out of one direction.
  struct Frames {
    std::array<uint8_t, 9> header{};
    size_t header_size = 0;
    uint32_t left = 0;  // of the payload

    [[nodiscard]] uint32_t length() const;
    [[nodiscard]] uint8_t type() const { return header[3]; }
    [[nodiscard]] uint8_t flags() const { return header[4]; }
    [[nodiscard]] uint32_t stream() const;
  };
  struct Stream {
    uint64_t held = 0;     // taken of the room
    uint64_t message = 0;  // of that: of the message that is not whole yet
    uint64_t missing = 0;  // of that message
    std::array<uint8_t, 5> prefix{};  // of a message: a flag and its length
    size_t prefix_size = 0;
    bool answered = false;
  };
  // Of frames that are cheap to send and mean nothing.
  struct Bucket {
    uint32_t tokens = 0;
    base::Nanoseconds filled = 0;
  };

  static Verdict End(size_t pass, const char* why) {
    return {pass, Next::kEnd, why};
  }
  // Of the frame whose header has come; `pass` is left to the caller.
  Verdict Decide();
  Verdict DecideHeaders();
  Verdict DecideSettings();
  Verdict DecideAnswered();
  Verdict Idle();
  // False: there is no room for a frame of this length, which gRPC makes as
  // soon as it has the header.
  bool TakeFrame(uint32_t length);
  // So many bytes of it have come. They are the stream's from now on, if it is
  // one's.
  void FrameCame(size_t bytes);
  void ReadData(Stream& stream, std::span<const std::byte> bytes);
  // `stream` has so many bytes more of a message whose length it knows.
  void Receive(Stream& stream, uint64_t bytes);
  void EndIfWhole(Stream& stream);
  void GiveBack(Stream& stream, uint64_t bytes);
  void Close(uint32_t stream);
  // Whether it goes on to the peer.
  bool FrameFromServer();
  bool IsMark();
  // Without what answers a mark.
  std::span<const std::byte> WithoutMark(std::span<const std::byte> bytes);

  const Http2Limits limits_;
  const base::Clock* const clock_;
  Http2Room* const room_;

  size_t preface_ = 0;  // bytes of it that were right
  bool greeted_ = false;
  Frames client_, server_;
  bool server_began_ = false;
  std::unordered_map<uint32_t, Stream> streams_;
  Stream* data_ = nullptr;  // whose DATA is coming
  uint64_t coming_ = 0;     // taken of the room for what is left of a frame
  uint64_t missing_ = 0;    // of the messages of all streams
  uint32_t last_ = 0;       // the highest stream so far
  uint32_t block_ = 0;      // the stream whose headers are not whole; 0: none
  uint32_t block_bytes_ = 0, block_frames_ = 0;
  uint32_t unanswered_ = 0;      // PING and SETTINGS
  bool told_ = false;            // it has acknowledged our settings
  uint32_t resets_ = 0;          // since they were looked at
  bool marked_ = false;          // a mark is behind them
  bool held_back_ = false;       // a header of gRPC's that may be a mark's
  uint32_t settings_ = 0;        // of the peer's that gRPC has not acknowledged
  uint32_t before_mark_ = 0;     // of those: before the mark
  std::vector<std::byte> rest_;  // of what gRPC said, without marks
  Bucket idle_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_HTTP2_GUARD_H_
