// See the header.

#include "daemon/transport/grpc/session/remote_buffers.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/memory/cache_sync.h"
#include "driver/memory/fault_guard.h"

namespace rknnd::transport {
namespace {

// A memfd has its pages when they are first touched, and there may be none
// left.
absl::Status Lost() {
  return absl::DataLossError(
      "a page of a buffer is gone: this machine has no memory left");
}

}  // namespace

absl::StatusOr<std::shared_ptr<RemoteBuffer>> RemoteBuffer::Map(
    base::UniqueFd fd, uint64_t size) {
  if (size > SIZE_MAX) {
    return absl::OutOfRangeError(
        absl::StrCat("a buffer of ", size, " bytes cannot be mapped"));
  }
  RKNND_ASSIGN_OR_RETURN(base::Mapping mapping,
                         base::ToStatusOr(base::Mapping::OfFd(
                             fd.get(), 0, static_cast<size_t>(size),
                             base::Mapping::Access::kReadWrite)));
  return std::shared_ptr<RemoteBuffer>(
      new RemoteBuffer(std::move(fd), std::move(mapping)));
}

RemoteBuffer::RemoteBuffer(base::UniqueFd fd, base::Mapping mapping)
    : fd_(std::move(fd)),
      mapping_(std::move(mapping)),
      dma_buf_(driver::IsDmaBuf(fd_.get())) {}

absl::Status RemoteBuffer::Write(uint64_t offset, const Pieces& data) const {
  std::optional<driver::CacheSync> sync;
  if (dma_buf_) {
    RKNND_ASSIGN_OR_RETURN(
        auto begun,
        driver::CacheSync::Begin(fd_.get(), driver::CpuAccess::kWrite));
    sync.emplace(std::move(begun));
  }
  for (const auto& piece : data) {
    const auto to =
        mapping_.bytes().subspan(static_cast<size_t>(offset), piece.size());
    const bool done = driver::Guarded(
        to, [&] { std::memcpy(to.data(), piece.data(), piece.size()); });
    if (!done) return Lost();
    offset += piece.size();
  }
  return sync.has_value() ? sync->End() : absl::OkStatus();
}

absl::Status RemoteBuffer::Read(uint64_t offset,
                                std::span<std::byte> to) const {
  std::optional<driver::CacheSync> sync;
  if (dma_buf_) {
    RKNND_ASSIGN_OR_RETURN(
        auto begun,
        driver::CacheSync::Begin(fd_.get(), driver::CpuAccess::kRead));
    sync.emplace(std::move(begun));
  }
  const auto from =
      mapping_.bytes().subspan(static_cast<size_t>(offset), to.size());
  const bool done = driver::Guarded(
      from, [&] { std::memcpy(to.data(), from.data(), to.size()); });
  if (!done) return Lost();
  return sync.has_value() ? sync->End() : absl::OkStatus();
}

void RemoteBuffers::Add(uint32_t number, std::shared_ptr<RemoteBuffer> buffer) {
  base::MutexLock lock(mutex_);
  buffers_[number].swap(buffer);
}

void RemoteBuffers::Remove(uint32_t number) {
  std::shared_ptr<RemoteBuffer> removed;
  base::MutexLock lock(mutex_);
  const auto found = buffers_.find(number);
  if (found == buffers_.end()) return;
  removed = std::move(found->second);
  buffers_.erase(found);
}

void RemoteBuffers::Clear() {
  std::map<uint32_t, std::shared_ptr<RemoteBuffer>> cleared;
  base::MutexLock lock(mutex_);
  cleared.swap(buffers_);
}

absl::StatusOr<std::shared_ptr<RemoteBuffer>> RemoteBuffers::Find(
    const RemoteRange& range) const {
  std::shared_ptr<RemoteBuffer> buffer;
  {
    base::MutexLock lock(mutex_);
    const auto found = buffers_.find(range.buffer);
    if (found != buffers_.end()) buffer = found->second;
  }
  if (buffer == nullptr) {
    return absl::NotFoundError(absl::StrCat("buffer ", range.buffer,
                                            " does not exist in this session"));
  }
  if (range.offset > buffer->size() ||
      range.size > buffer->size() - range.offset) {
    return absl::OutOfRangeError(absl::StrCat(
        "buffer ", range.buffer, " has ", buffer->size(), " bytes, not ",
        range.size, " from ", range.offset, " on"));
  }
  return buffer;
}

}  // namespace rknnd::transport
