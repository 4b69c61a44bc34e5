// A session's memory: what the daemon allocates for it and what the program
// brings. Called on the program's threads. A program sees the descriptors and
// closes what it should not: none is used before it is looked at.

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "base/posix/socket.h"
#include "client/rknnrt/log.h"
#include "client/session/requests.h"
#include "proto/wire/features.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;
using base::UniqueFd;

Expected<void> HasRoomForDescriptor() {
  if (base::MakeEventFd().ok()) return {};
  return Error{Code::kResourceExhausted,
               "this program has as many files open as it may have, and rknnd "
               "answers with one more (ulimit -n)"};
}

uint32_t SessionTarget::NextBufferNumber() {
  do {
    ++last_buffer_;
  } while (last_buffer_ == 0 || buffers_.contains(last_buffer_));
  return last_buffer_;
}

Expected<SessionTarget::BufferRecord> SessionTarget::MakeRecord(UniqueFd fd,
                                                                uint64_t size) {
  // Programs take fd 0 for "none".
  if (fd.get() == 0) {
    fd.reset(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
    if (!fd.valid()) return base::ErrnoError(errno, "move a buffer's fd");
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) {
    return base::ErrnoError(errno, "look at a buffer");
  }
  BufferRecord record;
  record.fd = std::move(fd);
  record.device = status.st_dev;
  record.inode = status.st_ino;
  record.size = size;
  return record;
}

bool SessionTarget::HasBuffer(uint32_t number) const {
  const auto record = buffers_.find(number);
  return record != buffers_.end() && !record->second.lost;
}

bool SessionTarget::IsOurs(const BufferRecord& record) {
  if (record.address) return true;
  struct stat status {};
  return fstat(record.fd.get(), &status) == 0 &&
         status.st_dev == record.device && status.st_ino == record.inode;
}

Expected<void> SessionTarget::ImportPhysicalOn(Connection& connection,
                                               uint32_t number,
                                               uint64_t address,
                                               uint64_t size) {
  wire::ImportPhysical request{};
  request.buffer = number;
  request.address = address;
  request.size = size;
  Expected<void> done = Done(Send(connection, wire::Verb::kImportPhysical,
                                  request, {}, options_.buffer_timeout));
  if (!done.ok()) ForgetBuffer(connection, number, done.error());
  return done;
}

Expected<BufferHandle> SessionTarget::ImportPhysical(uint64_t address,
                                                     uint64_t size) {
  return Ask([&](Connection& connection) -> Expected<BufferHandle> {
    const uint32_t number = NextBufferNumber();
    if (Expected<void> done =
            ImportPhysicalOn(connection, number, address, size);
        !done.ok()) {
      return std::move(done).error();
    }
    BufferRecord& record = buffers_[number];
    record.size = size;
    record.address = address;
    return BufferHandle{number, -1};
  });
}

Expected<BufferHandle> SessionTarget::AllocateBuffer(uint64_t size,
                                                     uint32_t flags) {
  return Ask([&](Connection& connection) -> Expected<BufferHandle> {
    if (Expected<void> room = HasRoomForDescriptor(); !room.ok()) {
      return std::move(room).error();
    }
    wire::AllocateBuffer request{};
    request.buffer = NextBufferNumber();
    request.size = size;
    request.flags = flags;
    Expected<wire::Frame> reply = Send(connection, wire::Verb::kAllocateBuffer,
                                       request, {}, options_.buffer_timeout);
    if (!reply.ok()) {
      ForgetBuffer(connection, request.buffer, reply.error());
      return std::move(reply).error();
    }
    if (reply->fds.empty()) {
      return Error{Code::kInternal, "protocol: rknnd sent a buffer without fd"};
    }
    Expected<BufferRecord> record = MakeRecord(std::move(reply->fds[0]), size);
    if (!record.ok()) {
      DropBuffer(connection, request.buffer);
      return std::move(record).error();
    }
    const BufferHandle handle = {request.buffer, record->fd.get()};
    buffers_[request.buffer] = *std::move(record);
    return handle;
  });
}

Expected<void> SessionTarget::ImportOn(Connection& connection, uint32_t number,
                                       int fd, uint64_t size) {
  wire::ImportBuffer request{};
  request.buffer = number;
  request.size = size;
  Expected<void> done = Done(Send(connection, wire::Verb::kImportBuffer,
                                  request, {fd}, options_.buffer_timeout));
  if (!done.ok()) ForgetBuffer(connection, number, done.error());
  return done;
}

void SessionTarget::ForgetBuffer(Connection& connection, uint32_t number,
                                 const Error& why) {
  // It may come to be after all, and nobody would release it.
  if (why.code == Code::kDeadlineExceeded) DropBuffer(connection, number);
}

void SessionTarget::DropBuffer(Connection& connection, uint32_t number) {
  wire::ReleaseBuffer release{};
  release.buffer = number;
  if (auto body = wire::Encode(release); body.ok()) {
    connection.Notify(wire::Verb::kReleaseBuffer, *std::move(body));
  }
}

Expected<BufferHandle> SessionTarget::ImportBuffer(int fd, uint64_t size) {
  Expected<UniqueFd> copy = base::Duplicate(fd);
  if (!copy.ok()) return std::move(copy).error();
  Expected<BufferRecord> record = MakeRecord(*std::move(copy), size);
  if (!record.ok()) return std::move(record).error();
  return Ask([&](Connection& connection) -> Expected<BufferHandle> {
    const uint32_t number = NextBufferNumber();
    if (Expected<void> done =
            ImportOn(connection, number, record->fd.get(), size);
        !done.ok()) {
      return std::move(done).error();
    }
    const BufferHandle handle = {number, record->fd.get()};
    buffers_[number] = *std::move(record);
    return handle;
  });
}

void SessionTarget::ReleaseBuffer(uint32_t buffer) {
  const Expected<void> done =
      GiveBack([&](Connection* connection) -> Expected<void> {
        const auto record = buffers_.find(buffer);
        if (record == buffers_.end()) return {};
        if (!IsOurs(record->second)) {
          Log(LogLevel::kWarning, "the program closed fd " +
                                      std::to_string(record->second.fd.get()) +
                                      " of a buffer: use rknn_destroy_mem");
          [[maybe_unused]] const int foreign = record->second.fd.release();
        }
        buffers_.erase(record);
        if (connection == nullptr) return {};
        wire::ReleaseBuffer request{};
        request.buffer = buffer;
        return Done(Send(*connection, wire::Verb::kReleaseBuffer, request));
      });
  if (!done.ok()) {
    Log(LogLevel::kDebug, "release of a buffer: " + done.error().message);
  }
}

Expected<wire::BufferKey> SessionTarget::GetBufferKey(uint32_t buffer) {
  return Ask([&](Connection& connection) -> Expected<wire::BufferKey> {
    wire::BufferKeyRequest request{};
    request.buffer = buffer;
    Expected<wire::Frame> reply =
        Send(connection, wire::Verb::kBufferKey, request);
    if (!reply.ok()) return std::move(reply).error();
    return wire::Decode<wire::BufferKey>(reply->body);
  });
}

Expected<void> SessionTarget::SyncBuffer(uint32_t buffer, bool to_device,
                                         bool from_device) {
  const std::shared_ptr<Connection> current = Current();
  if (current == nullptr ||
      (current->welcome().features & wire::kFeatureMemorySync) == 0) {
    return {};
  }
  return Ask([&](Connection& connection) -> Expected<void> {
    wire::SyncBuffer request{};
    request.buffer = buffer;
    request.to_device = to_device;
    request.from_device = from_device;
    return Done(Send(connection, wire::Verb::kSyncBuffer, request));
  });
}

}  // namespace rknnd::client
