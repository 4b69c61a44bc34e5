// Opening a session, the turn at its socket, and its contexts. Called on the
// program's threads. Its memory is in buffers.cc, what is asked of the daemon
// in questions.cc, runs in runs.cc, the rebuild in rebuild.cc.

#include "client/session/session_target.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <utility>
#include <vector>

#include "client/session/fork_shelf.h"
#include "client/session/requests.h"

namespace rknnd::client {
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

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;
using base::UniqueFd;

Expected<std::shared_ptr<SessionTarget>> SessionTarget::Open(
    SessionOptions options) {
  std::shared_ptr<SessionTarget> target(new SessionTarget(std::move(options)));
  Expected<std::shared_ptr<Connection>> connection = target->ConnectFirst();
  if (!connection.ok()) return std::move(connection).error();
  {
    const base::MutexLock lock(target->flights_mutex_);
    target->flying_on_ = *connection;
  }
  const base::MutexLock lock(target->mutex_);
  target->connection_ = *std::move(connection);
  return target;
}

SessionTarget::SessionTarget(SessionOptions options)
    : options_(std::move(options)) {}

SessionTarget::~SessionTarget() {
  if (greeted_.valid()) ForkShelf::Get().RemoveFd(greeted_.get());
  for (auto& [number, record] : buffers_) {
    if (IsOurs(record)) continue;
    [[maybe_unused]] const int foreign = record.fd.release();
  }
}

TargetInfo SessionTarget::info() const {
  const base::MutexLock lock(mutex_);
  const wire::Welcome& welcome = connection_->welcome();
  TargetInfo info;
  info.soc = welcome.soc;
  info.cores = welcome.cores;
  info.limits = welcome.limits;
  info.api_version = welcome.api_version;
  info.driver_version = welcome.driver_version;
  return info;
}

// ---- the turn ---------------------------------------------------------------

bool SessionTarget::TakeTurn(Nanoseconds deadline) {
  const base::MutexLock lock(mutex_);
  while (turn_taken_) {
    const Nanoseconds left = deadline - clock_.Now();
    if (left <= 0) return false;
    turn_free_.wait_for(mutex_, std::chrono::nanoseconds(left));
  }
  turn_taken_ = true;
  return true;
}

void SessionTarget::GiveTurn() {
  {
    const base::MutexLock lock(mutex_);
    turn_taken_ = false;
  }
  turn_free_.notify_one();
}

void SessionTarget::TryReadEvents(Connection& connection) {
  if (!TakeTurn(0)) return;
  connection.ReadEvents();
  GiveTurn();
}

// ---- contexts ---------------------------------------------------------------

Expected<void> SessionTarget::UploadOn(Connection& connection,
                                       ModelSource& source) {
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

Expected<ModelDescription> SessionTarget::CreateOn(Connection& connection,
                                                   uint32_t number,
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

std::shared_ptr<ModelSource> SessionTarget::KeptAlready(
    const std::shared_ptr<ModelSource>& source) const {
  for (const auto& [number, record] : contexts_) {
    if (record.source->keeps_bytes() && record.source->id() == source->id()) {
      return record.source;
    }
  }
  return source;
}

Expected<std::shared_ptr<const ModelDescription>> SessionTarget::CreateContext(
    const ContextRequest& request, const std::shared_ptr<ModelSource>& source) {
  using Result = Expected<std::shared_ptr<const ModelDescription>>;
  return Ask(
      [&](Connection& connection) -> Result {
        ContextRecord record;
        record.source = source;
        record.flags = request.flags;
        record.sram_limit = request.sram_limit;
        uint32_t duplicate_of = request.duplicate_of;
        if (duplicate_of != 0) {
          const auto original = contexts_.find(duplicate_of);
          if (original == contexts_.end()) {
            return Error{Code::kNotFound, "the context to duplicate is gone"};
          }
          record.source = original->second.source;
          // Lost there: the model by its hash is all that is left to ask for.
          if (original->second.lost) duplicate_of = 0;
        }
        if (request.weights_of != 0 && source->owner() == nullptr) {
          const auto owner = contexts_.find(request.weights_of);
          if (owner == contexts_.end()) {
            return Error{Code::kNotFound,
                         "the context whose weights are to be shared is gone"};
          }
          source->ShareWeightsOf(owner->second.source);
        }
        // For a rebuild, and for models that are to share its weights.
        record.source = KeptAlready(record.source);
        if (!connection.welcome().keeps_models) {
          if (Expected<void> kept = record.source->KeepBytes(); !kept.ok()) {
            return std::move(kept).error();
          }
        }
        Expected<ModelDescription> model =
            CreateOn(connection, request.number, record, duplicate_of);
        if (!model.ok()) return std::move(model).error();
        // Before another thread's rebuild can meet them.
        record.source->ForgetBytes();
        contexts_[request.number] = std::move(record);
        return std::make_shared<const ModelDescription>(*std::move(model));
      },
      Suspect::kYes);
}

Expected<void> SessionTarget::DestroyContext(uint32_t context) {
  return GiveBack([&](Connection* connection) -> Expected<void> {
    // First: a rebuild must not bring it back.
    const auto record = contexts_.find(context);
    const bool lost =
        record != contexts_.end() && record->second.lost.has_value();
    if (record != contexts_.end()) contexts_.erase(record);
    if (connection != nullptr) connection->ring().ForgetCopies(context);
    Expected<void> done;
    if (!lost && connection != nullptr) {
      wire::DestroyContext destroy{};
      destroy.context = context;
      done = Done(Send(*connection, wire::Verb::kDestroyContext, destroy));
    }
    // Of a daemon that is there it gets its answers.
    CancelFlights(context, connection == nullptr || connection->broken());
    return done;
  });
}

Expected<void> SessionTarget::SetCoreMask(uint32_t context,
                                          uint32_t core_mask) {
  return Ask([&](Connection& connection) -> Expected<void> {
    const auto record = contexts_.find(context);
    if (record != contexts_.end() && record->second.lost) {
      return *record->second.lost;
    }
    wire::SetCoreMask request{};
    request.context = context;
    request.core_mask = core_mask;
    Expected<void> done =
        Done(Send(connection, wire::Verb::kSetCoreMask, request));
    if (done.ok() && record != contexts_.end()) {
      record->second.core_mask = core_mask;
    }
    return done;
  });
}

Expected<ModelDescription> SessionTarget::SetShapesOn(
    Connection& connection, uint32_t context,
    const std::vector<InputShape>& shapes) {
  Expected<wire::Frame> reply = Send(connection, wire::Verb::kSetShapes,
                                     wire::SetShapes{context, shapes});
  if (!reply.ok()) return std::move(reply).error();
  return wire::Decode<ModelDescription>(reply->body);
}

Expected<std::shared_ptr<const ModelDescription>> SessionTarget::SetShapes(
    uint32_t context, const std::vector<InputShape>& shapes) {
  using Described = Expected<std::shared_ptr<const ModelDescription>>;
  return Ask([&](Connection& connection) -> Described {
    const auto record = contexts_.find(context);
    if (record != contexts_.end() && record->second.lost) {
      return *record->second.lost;
    }
    Expected<ModelDescription> row = SetShapesOn(connection, context, shapes);
    if (!row.ok()) return std::move(row).error();
    if (record != contexts_.end()) record->second.shapes = shapes;
    return std::make_shared<const ModelDescription>(*std::move(row));
  });
}

Expected<void> SessionTarget::BindOn(Connection& connection, uint32_t context,
                                     const Port& port, const Binding& binding) {
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

Expected<void> SessionTarget::Bind(uint32_t context, Direction direction,
                                   uint32_t index, const Binding& binding) {
  return Ask([&](Connection& connection) -> Expected<void> {
    const auto record = contexts_.find(context);
    if (record != contexts_.end() && record->second.lost) {
      return *record->second.lost;
    }
    const Port port{binding.set, direction, index};
    Expected<void> done = BindOn(connection, context, port, binding);
    if (done.ok() && record != contexts_.end()) {
      KeepBinding(context, port, record->second);
      record->second.bindings[port] = binding;
      if (direction == Direction::kInput) record->second.frames.erase(port);
    }
    return done;
  });
}

Expected<void> SessionTarget::BindFrameOn(Connection& connection,
                                          uint32_t context, uint32_t index,
                                          const FrameBinding& frame) {
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

Expected<void> SessionTarget::BindFrame(uint32_t context, uint32_t index,
                                        const FrameBinding& frame) {
  return Ask([&](Connection& connection) -> Expected<void> {
    const auto record = contexts_.find(context);
    if (record != contexts_.end() && record->second.lost) {
      return *record->second.lost;
    }
    Expected<void> done = BindFrameOn(connection, context, index, frame);
    if (done.ok() && record != contexts_.end()) {
      const Port port{frame.set, Direction::kInput, index};
      KeepBinding(context, port, record->second);
      record->second.frames[port] = frame;
      record->second.bindings.erase(port);
    }
    return done;
  });
}

Expected<void> SessionTarget::SetMemoryOn(Connection& connection,
                                          wire::Verb verb, uint32_t context,
                                          const MemoryRange& memory) {
  wire::SetMemory request{};
  request.context = context;
  request.buffer = memory.buffer;
  request.offset = memory.offset;
  request.size = memory.size;
  return Done(Send(connection, verb, request));
}

Expected<void> SessionTarget::SetInternalMemory(uint32_t context,
                                                const MemoryRange& memory) {
  return Ask([&](Connection& connection) -> Expected<void> {
    const auto record = contexts_.find(context);
    if (record != contexts_.end() && record->second.lost) {
      return *record->second.lost;
    }
    Expected<void> done = SetMemoryOn(
        connection, wire::Verb::kSetInternalMemory, context, memory);
    if (done.ok() && record != contexts_.end()) {
      record->second.internal = memory;
    }
    return done;
  });
}

Expected<void> SessionTarget::SetQueueOn(Connection& connection,
                                         uint32_t context,
                                         const QueuePolicy& policy) {
  wire::SetQueue request{};
  request.context = context;
  request.policy = policy.policy;
  request.depth = policy.depth;
  request.max_age_ns = policy.max_age_ns;
  return Done(Send(connection, wire::Verb::kSetQueue, request));
}

Expected<void> SessionTarget::SetQueue(uint32_t context,
                                       const QueuePolicy& policy) {
  return Ask([&](Connection& connection) -> Expected<void> {
    const auto record = contexts_.find(context);
    if (record != contexts_.end() && record->second.lost) {
      return *record->second.lost;
    }
    Expected<void> done = SetQueueOn(connection, context, policy);
    if (done.ok() && record != contexts_.end()) record->second.queue = policy;
    return done;
  });
}

// Not remembered: the weights are in the program's memory, whatever becomes of
// the daemon.
Expected<void> SessionTarget::SetWeightMemory(uint32_t context,
                                              const MemoryRange& memory) {
  return Ask([&](Connection& connection) -> Expected<void> {
    const auto record = contexts_.find(context);
    if (record != contexts_.end() && record->second.lost) {
      return *record->second.lost;
    }
    return SetMemoryOn(connection, wire::Verb::kSetWeightMemory, context,
                       memory);
  });
}

}  // namespace rknnd::client
