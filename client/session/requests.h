// What a session asks of a daemon: one request of the session socket each, on
// the connection that it is given. Used where a call is made for the first time
// and where it is replayed for the next daemon. Thread: the one with access to
// the socket.

#ifndef CLIENT_SESSION_REQUESTS_H_
#define CLIENT_SESSION_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/values/expected.h"
#include "client/session/connection.h"
#include "client/session/record.h"
#include "client/target/types.h"

namespace rknnd::client {

template <class Message>
base::Expected<wire::Frame> Send(Connection& connection, wire::Verb verb,
                                 const Message& message,
                                 const std::vector<int>& fds = {},
                                 base::Nanoseconds timeout = kRequestTimeout) {
  base::Expected<std::vector<std::byte>> body = wire::Encode(message);
  if (!body.ok()) return std::move(body).error();
  return connection.Request(verb, *std::move(body), fds, timeout);
}

// For requests that are answered with a message.
template <class Reply, class Message>
base::Expected<Reply> SendFor(Connection& connection, wire::Verb verb,
                              const Message& message,
                              base::Nanoseconds timeout = kRequestTimeout) {
  base::Expected<wire::Frame> reply =
      Send(connection, verb, message, {}, timeout);
  if (!reply.ok()) return std::move(reply).error();
  return wire::Decode<Reply>(reply->body);
}

inline base::Expected<void> Done(const base::Expected<wire::Frame>& reply) {
  if (!reply.ok()) return reply.error();
  return {};
}

// Before what is answered with a descriptor: one that finds no number free is
// lost, and the connection with it.
base::Expected<void> HasRoomForDescriptor();

// Uploads the model first where the daemon does not have it.
base::Expected<ModelDescription> CreateOn(Connection& connection,
                                          uint32_t number,
                                          const ContextRecord& record,
                                          uint32_t duplicate_of);
base::Expected<ModelDescription> SetShapesOn(
    Connection& connection, uint32_t context,
    const std::vector<InputShape>& shapes);
base::Expected<void> BindOn(Connection& connection, uint32_t context,
                            const PortKey& port, const Binding& binding);
base::Expected<void> BindFrameOn(Connection& connection, uint32_t context,
                                 uint32_t index, const FrameBinding& frame);
base::Expected<void> SetQueueOn(Connection& connection, uint32_t context,
                                const QueuePolicy& policy);
// `verb`: kSetInternalMemory or kSetWeightMemory.
base::Expected<void> SetMemoryOn(Connection& connection, wire::Verb verb,
                                 uint32_t context, const MemoryRange& memory);

base::Expected<void> ImportPhysicalOn(Connection& connection, uint32_t number,
                                      uint64_t address, uint64_t size,
                                      base::Nanoseconds timeout);
base::Expected<void> ImportOn(Connection& connection, uint32_t number, int fd,
                              uint64_t size, base::Nanoseconds timeout);
// The making of a buffer failed: drops it where the daemon has only not
// answered in time.
void ForgetBuffer(Connection& connection, uint32_t number,
                  const base::Error& why);
// Without waiting for an answer.
void DropBuffer(Connection& connection, uint32_t number);

// `out`: a run tells it; else a run waits for it.
base::Expected<void> RegisterFenceOn(Connection& connection, uint32_t number,
                                     bool out, int fd);

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_REQUESTS_H_
