// A session's memory: what the daemon allocates for it and what the program
// brings. Called on the program's threads.

#include "base/posix/socket.h"
#include "client/session/requests.h"
#include "client/session/target.h"
#include "client/target/log.h"
#include "proto/wire/features.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;
using base::UniqueFd;

Expected<BufferHandle> Target::ImportPhysical(uint64_t address, uint64_t size) {
  return link_.Ask([&](Connection& connection) -> Expected<BufferHandle> {
    const uint32_t number = record_.NextBufferNumber();
    if (Expected<void> done = ImportPhysicalOn(connection, number, address,
                                               size, options_.buffer_timeout);
        !done.ok()) {
      return std::move(done).error();
    }
    BufferRecord& record = record_.buffers[number];
    record.size = size;
    record.address = address;
    return BufferHandle{number, -1};
  });
}

Expected<BufferHandle> Target::AllocateBuffer(uint64_t size, uint32_t flags) {
  return link_.Ask([&](Connection& connection) -> Expected<BufferHandle> {
    if (Expected<void> room = HasRoomForDescriptor(); !room.ok()) {
      return std::move(room).error();
    }
    wire::AllocateBuffer request{};
    request.buffer = record_.NextBufferNumber();
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
    Expected<BufferRecord> record =
        BufferRecord::Of(std::move(reply->fds[0]), size);
    if (!record.ok()) {
      DropBuffer(connection, request.buffer);
      return std::move(record).error();
    }
    const BufferHandle handle = {request.buffer, record->fd.get()};
    record_.buffers[request.buffer] = *std::move(record);
    return handle;
  });
}

Expected<BufferHandle> Target::ImportBuffer(int fd, uint64_t size) {
  Expected<UniqueFd> copy = base::Duplicate(fd);
  if (!copy.ok()) return std::move(copy).error();
  Expected<BufferRecord> record = BufferRecord::Of(*std::move(copy), size);
  if (!record.ok()) return std::move(record).error();
  return link_.Ask([&](Connection& connection) -> Expected<BufferHandle> {
    const uint32_t number = record_.NextBufferNumber();
    if (Expected<void> done = ImportOn(connection, number, record->fd.get(),
                                       size, options_.buffer_timeout);
        !done.ok()) {
      return std::move(done).error();
    }
    const BufferHandle handle = {number, record->fd.get()};
    record_.buffers[number] = *std::move(record);
    return handle;
  });
}

void Target::ReleaseBuffer(uint32_t buffer) {
  const Expected<void> done =
      link_.GiveBack([&](Connection* connection) -> Expected<void> {
        const auto record = record_.buffers.find(buffer);
        if (record == record_.buffers.end()) return {};
        if (!record->second.IsOurs()) {
          Log(LogLevel::kWarning, "the program closed fd " +
                                      std::to_string(record->second.fd.get()) +
                                      " of a buffer: use rknn_destroy_mem");
          [[maybe_unused]] const int foreign = record->second.fd.release();
        }
        record_.buffers.erase(record);
        if (connection == nullptr) return {};
        wire::ReleaseBuffer request{};
        request.buffer = buffer;
        return Done(Send(*connection, wire::Verb::kReleaseBuffer, request));
      });
  if (!done.ok()) {
    Log(LogLevel::kDebug, "release of a buffer: " + done.error().message);
  }
}

Expected<wire::BufferKey> Target::GetBufferKey(uint32_t buffer) {
  wire::BufferKeyRequest request{};
  request.buffer = buffer;
  return link_.Ask([&](Connection& connection) {
    return SendFor<wire::BufferKey>(connection, wire::Verb::kBufferKey,
                                    request);
  });
}

Expected<void> Target::SyncBuffer(uint32_t buffer, bool to_device,
                                  bool from_device) {
  const std::shared_ptr<Connection> current = link_.Current();
  if (current == nullptr ||
      (current->welcome().features & wire::kFeatureMemorySync) == 0) {
    return {};
  }
  return link_.Ask([&](Connection& connection) -> Expected<void> {
    wire::SyncBuffer request{};
    request.buffer = buffer;
    request.to_device = to_device;
    request.from_device = from_device;
    return Done(Send(connection, wire::Verb::kSyncBuffer, request));
  });
}

}  // namespace rknnd::client
