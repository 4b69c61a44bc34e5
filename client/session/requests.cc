// What a session asks of a daemon, one request each: from the client's structs
// to messages. Called on the program's threads, with access to the socket.

#include "client/session/requests.h"

#include <sys/stat.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/socket.h"
#include "proto/wire/features.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;
using base::UniqueFd;

namespace {

// Also over a network that carries a megabyte in a second.
base::Nanoseconds UploadTimeout(std::initializer_list<int> files) {
  base::Nanoseconds timeout = kLoadTimeout;
  for (const int file : files) {
    struct stat status {};
    if (fstat(file, &status) == 0) {
      timeout += status.st_size / 1'000'000 * base::kSecond;
    }
  }
  return timeout;
}

}  // namespace

Expected<void> HasRoomForDescriptor() {
  if (base::MakeEventFd().ok()) return {};
  return Error{Code::kResourceExhausted,
               "this program has as many files open as it may have, and rknnd "
               "answers with one more (ulimit -n)"};
}

namespace {

Expected<void> UploadOn(Connection& connection, ModelSource& source) {
  // Shared with the daemon, which may die before it has written them down.
  if (Expected<void> kept = source.KeepBytes(); !kept.ok()) return kept;
  Expected<UniqueFd> memfd = source.ToMemfd();
  if (!memfd.ok()) return std::move(memfd).error();
  wire::UploadModel upload;
  upload.model = source.id();
  upload.name = source.name();
  upload.options = source.options();
  Expected<void> done =
      Done(Send(connection, wire::Verb::kUploadModel, upload, {memfd->get()},
                UploadTimeout({memfd->get()})));
  if (done.ok() || done.error().code != Code::kNotFound ||
      source.owner() == nullptr) {
    return done;
  }
  // The daemon does not have the model whose weights it shares.
  Expected<UniqueFd> owner = source.owner()->ToMemfd();
  if (!owner.ok()) return std::move(owner).error();
  upload.has_weights_of = true;
  upload.weights_of_options = source.owner()->options();
  return Done(Send(connection, wire::Verb::kUploadModel, upload,
                   {memfd->get(), owner->get()},
                   UploadTimeout({memfd->get(), owner->get()})));
}

}  // namespace

Expected<ModelDescription> CreateOn(Connection& connection, uint32_t number,
                                    const ContextRecord& record,
                                    uint32_t duplicate_of) {
  wire::CreateContext create{};
  create.context = number;
  std::copy(record.source->id().begin(), record.source->id().end(),
            create.model);
  create.flags = record.flags;
  create.core_mask = record.core_mask;
  create.duplicate_of = duplicate_of;
  create.sram_limit = record.sram_limit;
  Expected<wire::Frame> reply =
      Send(connection, wire::Verb::kCreateContext, create, {}, kLoadTimeout);
  if (!reply.ok() && reply.error().code == Code::kNotFound &&
      duplicate_of == 0) {
    if (Expected<void> sent = UploadOn(connection, *record.source);
        !sent.ok()) {
      return std::move(sent).error();
    }
    reply =
        Send(connection, wire::Verb::kCreateContext, create, {}, kLoadTimeout);
  }
  if (!reply.ok()) {
    if (reply.error().code == Code::kDeadlineExceeded) {
      // It may come to be after all.
      wire::DestroyContext destroy{};
      destroy.context = number;
      if (auto body = wire::Encode(destroy); body.ok()) {
        connection.Notify(wire::Verb::kDestroyContext, *std::move(body));
      }
    }
    return std::move(reply).error();
  }
  return wire::Decode<ModelDescription>(reply->body);
}

Expected<ModelDescription> SetShapesOn(Connection& connection, uint32_t context,
                                       const std::vector<InputShape>& shapes) {
  return SendFor<ModelDescription>(connection, wire::Verb::kSetShapes,
                                   wire::SetShapes{context, shapes});
}

Expected<void> BindOn(Connection& connection, uint32_t context,
                      const PortKey& port, const Binding& binding) {
  wire::Bind request{};
  request.context = context;
  request.set = port.set;
  request.output = port.direction == Direction::kOutput;
  request.index = port.index;
  request.buffer = binding.buffer;
  request.offset = binding.offset;
  request.size = binding.size;
  request.type = binding.type;
  request.layout = binding.layout;
  request.pass_through = binding.pass_through;
  request.w_stride = binding.w_stride;
  request.h_stride = binding.h_stride;
  return Done(Send(connection, wire::Verb::kBind, request));
}

Expected<void> BindFrameOn(Connection& connection, uint32_t context,
                           uint32_t index, const FrameBinding& frame) {
  wire::BindFrame request{};
  request.context = context;
  request.index = index;
  request.set = frame.set;
  request.format = frame.format;
  request.width = frame.width;
  request.height = frame.height;
  request.planes_count = static_cast<pb_size_t>(frame.planes.size());
  for (size_t p = 0; p < frame.planes.size(); ++p) {
    request.planes[p] = {frame.planes[p].buffer, frame.planes[p].offset,
                         frame.planes[p].size, frame.strides[p]};
  }
  request.crop_x = frame.crop_x;
  request.crop_y = frame.crop_y;
  request.crop_width = frame.crop_width;
  request.crop_height = frame.crop_height;
  request.fit = frame.fit;
  request.pad.size = static_cast<pb_size_t>(frame.pad.size());
  std::copy(frame.pad.begin(), frame.pad.end(), request.pad.bytes);
  request.bgr_input = frame.bgr_input;
  return Done(Send(connection, wire::Verb::kBindFrame, request));
}

Expected<void> SetMemoryOn(Connection& connection, wire::Verb verb,
                           uint32_t context, const MemoryRange& memory) {
  wire::SetMemory request{};
  request.context = context;
  request.buffer = memory.buffer;
  request.offset = memory.offset;
  request.size = memory.size;
  return Done(Send(connection, verb, request));
}

Expected<void> SetQueueOn(Connection& connection, uint32_t context,
                          const QueuePolicy& policy) {
  wire::SetQueue request{};
  request.context = context;
  request.policy = policy.policy;
  request.depth = policy.depth;
  request.max_age_ns = policy.max_age_ns;
  return Done(Send(connection, wire::Verb::kSetQueue, request));
}

// ---- buffers and fences ----------------------------------------------------

void ForgetBuffer(Connection& connection, uint32_t number, const Error& why) {
  // It may come to be after all, and nobody would release it.
  if (why.code == Code::kDeadlineExceeded) DropBuffer(connection, number);
}

void DropBuffer(Connection& connection, uint32_t number) {
  wire::ReleaseBuffer release{};
  release.buffer = number;
  if (auto body = wire::Encode(release); body.ok()) {
    connection.Notify(wire::Verb::kReleaseBuffer, *std::move(body));
  }
}

Expected<void> ImportPhysicalOn(Connection& connection, uint32_t number,
                                uint64_t address, uint64_t size,
                                base::Nanoseconds timeout) {
  wire::ImportPhysical request{};
  request.buffer = number;
  request.address = address;
  request.size = size;
  Expected<void> done =
      Done(Send(connection, wire::Verb::kImportPhysical, request, {}, timeout));
  if (!done.ok()) ForgetBuffer(connection, number, done.error());
  return done;
}

Expected<void> ImportOn(Connection& connection, uint32_t number, int fd,
                        uint64_t size, base::Nanoseconds timeout) {
  wire::ImportBuffer request{};
  request.buffer = number;
  request.size = size;
  Expected<void> done =
      Done(Send(connection, wire::Verb::kImportBuffer, request, {fd}, timeout));
  if (!done.ok()) ForgetBuffer(connection, number, done.error());
  return done;
}

Expected<void> RegisterFenceOn(Connection& connection, uint32_t number,
                               bool out, int fd) {
  if ((connection.welcome().features & wire::kFeatureScheduling) == 0) {
    return Error{Code::kUnimplemented,
                 "rknnd is older than this client and has no fences: update "
                 "it"};
  }
  wire::RegisterFence request{};
  request.fence = number;
  request.out = out;
  return Done(Send(connection, wire::Verb::kRegisterFence, request, {fd}));
}

}  // namespace rknnd::client
