// See the header. Files are read where they are, never mapped: a model may be
// larger than a 32-bit program's address space.

#include "client/remote/transfers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/posix/memfd.h"
#include "rknnd/v1/remote.pb.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr uint64_t kUploadPiece = 512 * 1024;

// A reply's files are memory here: what does not fit is not begun.
uint64_t LargestReply() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 2;
}

// Bytes that were read, at most `size`.
size_t ReadAt(int fd, uint64_t offset, std::span<char> to) {
  size_t read = 0;
  while (read < to.size()) {
    const ssize_t got = pread(fd, to.data() + read, to.size() - read,
                              static_cast<off_t>(offset + read));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    read += static_cast<size_t>(got);
  }
  return read;
}

}  // namespace

// ---- to the daemon ----------------------------------------------------------

Expected<void> OutgoingTransfer::Add(base::UniqueFd file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) {
    return base::ErrnoError(errno, "look at a file to be sent");
  }
  Part part;
  part.size = static_cast<uint64_t>(status.st_size);
  part.file = std::move(file);
  total_ += part.size;
  parts_.push_back(std::move(part));
  return {};
}

void OutgoingTransfer::Add(std::vector<std::byte> bytes) {
  Part part;
  part.size = bytes.size();
  part.bytes = std::move(bytes);
  total_ += part.size;
  parts_.push_back(std::move(part));
}

void OutgoingTransfer::Announce(v1::Frame* frame) const {
  for (const Part& part : parts_) frame->add_attachments(part.size);
}

bool OutgoingTransfer::Read(const Part& part, uint64_t offset, uint64_t size,
                            std::string* to) {
  if (!part.file.valid()) {
    to->assign(reinterpret_cast<const char*>(part.bytes.data()) + offset,
               static_cast<size_t>(size));
    return true;
  }
  to->resize(static_cast<size_t>(size));
  return ReadAt(part.file.get(), offset, *to) == size;
}

std::unique_ptr<v1::ToDaemon> OutgoingTransfer::Next() {
  while (part_ < parts_.size() && sent_ == parts_[part_].size) {
    ++part_;
    sent_ = 0;
  }
  if (part_ >= parts_.size()) return nullptr;
  const uint64_t size = std::min(kUploadPiece, parts_[part_].size - sent_);
  auto message = std::make_unique<v1::ToDaemon>();
  v1::Chunk* const chunk = message->mutable_chunk();
  chunk->set_request(request_);
  // A file that shrinks under us: what is sent in its place has another hash.
  if (!Read(parts_[part_], sent_, size, chunk->mutable_data())) {
    chunk->mutable_data()->resize(static_cast<size_t>(size));
  }
  sent_ += size;
  done_ += size;
  if (progress_) progress_(done_, total_);
  return message;
}

// ---- from it ----------------------------------------------------------------

Expected<IncomingFrame> IncomingFrame::Begin(const v1::Frame& frame) {
  IncomingFrame incoming;
  incoming.frame_.verb = static_cast<wire::Verb>(frame.verb());
  incoming.frame_.kind = static_cast<wire::FrameKind>(frame.kind());
  incoming.frame_.request = frame.request();
  incoming.frame_.code = static_cast<Code>(frame.code());
  const auto body = std::as_bytes(std::span(frame.body()));
  incoming.frame_.body.assign(body.begin(), body.end());
  incoming.sizes_.assign(frame.attachments().begin(),
                         frame.attachments().end());
  incoming.body_attached_ = frame.body_attached();
  if (incoming.sizes_.size() > base::kMaxFdsPerMessage ||
      (incoming.body_attached_ &&
       (incoming.sizes_.empty() ||
        incoming.sizes_.back() > wire::kMaxMemfdBody))) {
    return Error{Code::kDataLoss,
                 "protocol: a frame with attachments that no frame has"};
  }
  uint64_t room = LargestReply();
  for (const uint64_t size : incoming.sizes_) {
    if (size > room) {
      return Error{Code::kDataLoss,
                   "protocol: an answer with " + std::to_string(size) +
                       " more bytes than this machine has memory for"};
    }
    room -= size;
  }
  if (Expected<void> advanced = incoming.Advance(); !advanced.ok()) {
    return std::move(advanced).error();
  }
  return incoming;
}

Expected<void> IncomingFrame::Advance() {
  while (!complete()) {
    const bool is_body = body_attached_ && taken_ + 1 == sizes_.size();
    if (!is_body && !file_.valid()) {
      Expected<base::UniqueFd> file = base::MakeGrowingMemfd("rknnd-reply");
      if (!file.ok()) return std::move(file).error();
      file_ = *std::move(file);
    }
    if (received_ != sizes_[taken_]) return {};
    if (!is_body) {
      if (Expected<void> sealed = base::SealMemfd(file_.get()); !sealed.ok()) {
        return sealed;
      }
      frame_.fds.push_back(std::move(file_));
    }
    received_ = 0;
    ++taken_;
  }
  return {};
}

Expected<void> IncomingFrame::Add(std::span<const std::byte> bytes) {
  if (complete() || bytes.size() > sizes_[taken_] - received_) {
    return Error{Code::kDataLoss, "protocol: more bytes than were announced"};
  }
  received_ += bytes.size();
  if (file_.valid()) {
    if (Expected<void> added = base::AppendToMemfd(file_.get(), bytes);
        !added.ok()) {
      return added;
    }
  } else {
    frame_.body.insert(frame_.body.end(), bytes.begin(), bytes.end());
  }
  return Advance();
}

Expected<void> ReadAll(
    int fd,
    const std::function<bool(uint64_t, std::span<const std::byte>)>& store) {
  std::string piece(static_cast<size_t>(kUploadPiece), '\0');
  for (uint64_t offset = 0;;) {
    const size_t got = ReadAt(fd, offset, piece);
    if (got == 0) return {};
    if (!store(offset, std::as_bytes(std::span(piece).first(got)))) {
      return Error{Code::kOutOfRange,
                   "protocol: more bytes came than the memory has"};
    }
    offset += got;
  }
}

}  // namespace rknnd::client
