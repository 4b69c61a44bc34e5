// What a frame carries in place of descriptors: files on their way to the
// daemon, piece by piece, and frames on their way from it, until all of their
// pieces are there. Used by a bridge on its thread.

#ifndef CLIENT_REMOTE_TRANSFERS_H_
#define CLIENT_REMOTE_TRANSFERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "proto/wire/frame.h"

namespace rknnd::v1 {
class Frame;
class ToDaemon;
}  // namespace rknnd::v1

namespace rknnd::client {

// The attachments of one request.
class OutgoingTransfer {
 public:
  using Progress = std::function<void(uint64_t done, uint64_t total)>;

  explicit OutgoingTransfer(uint32_t request) : request_(request) {}

  // The next attachment; a file of whatever length.
  base::Expected<void> Add(base::UniqueFd file);
  void Add(std::vector<std::byte> bytes);
  void set_progress(Progress progress) { progress_ = std::move(progress); }

  [[nodiscard]] bool empty() const { return parts_.empty(); }
  // Says in the frame how long they are.
  void Announce(v1::Frame* frame) const;
  // The next piece; null when there is no more, or nobody wants it.
  std::unique_ptr<v1::ToDaemon> Next();
  // The daemon has answered before it had everything.
  void GiveUp() { parts_.clear(); }

 private:
  struct Part {
    base::UniqueFd file;
    std::vector<std::byte> bytes;  // where there is no file
    uint64_t size = 0;
  };
  // False when a file has become shorter.
  static bool Read(const Part& part, uint64_t offset, uint64_t size,
                   std::string* to);

  const uint32_t request_;
  std::vector<Part> parts_;
  size_t part_ = 0;
  uint64_t sent_ = 0;  // of parts_[part_]
  uint64_t done_ = 0, total_ = 0;
  Progress progress_;
};

// A frame whose attachments are arriving.
class IncomingFrame {
 public:
  static base::Expected<IncomingFrame> Begin(const v1::Frame& frame);

  [[nodiscard]] bool complete() const { return sizes_.size() == taken_; }
  // The next bytes. kDataLoss when there are more than it has.
  base::Expected<void> Add(std::span<const std::byte> bytes);
  // With its attachments as sealed memfds.
  wire::Frame Take() { return std::move(frame_); }

 private:
  // Begins and ends attachments, as far as that goes without more bytes.
  base::Expected<void> Advance();

  wire::Frame frame_;
  bool body_attached_ = false;
  std::vector<uint64_t> sizes_;
  size_t taken_ = 0;       // attachments that are complete
  uint64_t received_ = 0;  // of the next one
  base::UniqueFd file_;    // where that goes; invalid: it has not begun
};

// Stores all of a sealed memfd by `store`, piece by piece.
base::Expected<void> ReadAll(
    int fd, const std::function<bool(uint64_t offset,
                                     std::span<const std::byte> bytes)>& store);

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_TRANSFERS_H_
