// A remote session's buffers as this process maps them: what its client writes
// goes in here, what its runs leave is read here. The memory is the session's
// own (core made it and charges for it), so that nobody else's process writes,
// revokes or truncates it; numbers, offsets and sizes come from the network.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_REMOTE_BUFFERS_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_REMOTE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "daemon/transport/grpc/session/message.h"

namespace rknnd::transport {

// Lives as long as its number, or a run whose outputs are in it. Two at once
// may write and read it: what they get is the program's own doing, as with
// shared memory. Thread: any.
class RemoteBuffer {
 public:
  static absl::StatusOr<std::shared_ptr<RemoteBuffer>> Map(base::UniqueFd fd,
                                                           uint64_t size);

  [[nodiscard]] uint64_t size() const { return mapping_.size(); }
  // With the synchronisation of caches that it needs. The range lies
  // inside (RemoteBuffers::Find). DATA_LOSS: a page of it is not to be had.
  absl::Status Write(uint64_t offset, const Pieces& data) const;
  absl::Status Read(uint64_t offset, std::span<std::byte> to) const;

 private:
  RemoteBuffer(base::UniqueFd fd, base::Mapping mapping);

  const base::UniqueFd fd_;
  const base::Mapping mapping_;
  const bool dma_buf_;
};

// By the numbers its client chose. Thread: any.
class RemoteBuffers {
 public:
  void Add(uint32_t number, std::shared_ptr<RemoteBuffer> buffer);
  void Remove(uint32_t number);
  void Clear();

  // The buffer, if it is there and has that range.
  [[nodiscard]] absl::StatusOr<std::shared_ptr<RemoteBuffer>> Find(
      const RemoteRange& range) const;

 private:
  mutable base::Mutex mutex_;
  // Ordered: a client cannot choose numbers that make look-ups slow.
  std::map<uint32_t, std::shared_ptr<RemoteBuffer>> buffers_
      RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_REMOTE_BUFFERS_H_
