// The calls of a session but its runs, which are in runs.cc. Called on the
// program's threads. The rebuild stands in rebuild.cc.

#include "client/session/session_target.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "client/rknnrt/log.h"
#include "client/session/turn.h"
#include "proto/wire/features.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;
using base::UniqueFd;

// Loading a model compiles it, which takes seconds on a small board.
constexpr Nanoseconds kLoadTimeout = 300 * base::kSecond;
// All else is short, but waits behind the loading of other clients' models.
constexpr Nanoseconds kRequestTimeout = 60 * base::kSecond;
template <class Message>
Expected<wire::Frame> Send(Connection& connection, wire::Verb verb,
                           const Message& message, int fd = -1,
                           Nanoseconds timeout = kRequestTimeout) {
  Expected<std::vector<std::byte>> body = wire::Encode(message);
  if (!body.ok()) return std::move(body).error();
  return connection.Request(verb, *std::move(body), fd, timeout);
}

Expected<void> Done(const Expected<wire::Frame>& reply) {
  if (!reply.ok()) return reply.error();
  return {};
}

}  // namespace

Expected<std::shared_ptr<SessionTarget>> SessionTarget::Open(
    SessionOptions options) {
  std::shared_ptr<SessionTarget> target(new SessionTarget(std::move(options)));
  Expected<std::shared_ptr<Connection>> connection = target->Connect();
  if (!connection.ok()) return std::move(connection).error();
  const base::MutexLock lock(target->mutex_);
  target->connection_ = *std::move(connection);
  return target;
}

SessionTarget::SessionTarget(SessionOptions options)
    : options_(std::move(options)) {}

SessionTarget::~SessionTarget() {
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

template <class Step>
auto SessionTarget::Ask(Step step)
    -> decltype(step(std::declval<Connection&>())) {
  const Nanoseconds deadline = clock_.Now() + kLoadTimeout;
  const Turn turn(*this, deadline);
  if (!turn.taken()) {
    return Error{Code::kDeadlineExceeded,
                 "another thread's call to rknnd has not ended in time"};
  }
  Nanoseconds refused_since = 0;
  for (int deaths = 0; deaths < kAttempts;) {
    Expected<std::shared_ptr<Connection>> connection = Connected(deadline);
    if (!connection.ok()) return std::move(connection).error();
    auto result = step(**connection);
    if (result.ok() || result.error().code != Code::kUnavailable) return result;
    if ((*connection)->broken()) {
      ++deaths;
    } else if (!AwaitSuccessor(deadline, &refused_since)) {
      return result;
    }
  }
  return KeepsDying();
}

template <class Step>
Expected<void> SessionTarget::GiveBack(Step step) {
  const Turn turn(*this, clock_.Now() + kLoadTimeout);
  if (!turn.taken()) {
    return Error{Code::kDeadlineExceeded,
                 "another thread's call to rknnd has not ended in time"};
  }
  const std::shared_ptr<Connection> connection = Current();
  Expected<void> done = step(connection.get());
  // What the daemon held for us went with it.
  if (connection != nullptr && connection->broken()) return {};
  return done;
}

// ---- contexts ---------------------------------------------------------------

Expected<void> SessionTarget::UploadOn(Connection& connection,
                                       ModelSource& source) {
  Expected<UniqueFd> memfd = source.ToMemfd();
  if (!memfd.ok()) return std::move(memfd).error();
  wire::UploadModel upload;
  upload.model = source.id();
  upload.name = source.name();
  upload.options = source.options();
  return Done(Send(connection, wire::Verb::kUploadModel, upload, memfd->get(),
                   kLoadTimeout));
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
  Expected<wire::Frame> reply =
      Send(connection, wire::Verb::kCreateContext, create, -1, kLoadTimeout);
  if (!reply.ok() && reply.error().code == Code::kNotFound &&
      duplicate_of == 0) {
    if (Expected<void> sent = UploadOn(connection, *record.source);
        !sent.ok()) {
      return std::move(sent).error();
    }
    reply =
        Send(connection, wire::Verb::kCreateContext, create, -1, kLoadTimeout);
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

Expected<std::shared_ptr<const ModelDescription>> SessionTarget::CreateContext(
    const ContextRequest& request, const std::shared_ptr<ModelSource>& source) {
  using Result = Expected<std::shared_ptr<const ModelDescription>>;
  return Ask([&](Connection& connection) -> Result {
    ContextRecord record;
    record.source = source;
    record.flags = request.flags;
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
    if (options_.rebuild && !connection.welcome().keeps_models) {
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
  });
}

Expected<void> SessionTarget::DestroyContext(uint32_t context) {
  return GiveBack([&](Connection* connection) -> Expected<void> {
    // First: a rebuild must not bring it back.
    const auto record = contexts_.find(context);
    const bool lost =
        record != contexts_.end() && record->second.lost.has_value();
    if (record != contexts_.end()) contexts_.erase(record);
    if (connection != nullptr) connection->ring().ForgetCopies(context);
    if (lost || connection == nullptr) return {};
    wire::DestroyContext destroy{};
    destroy.context = context;
    return Done(Send(*connection, wire::Verb::kDestroyContext, destroy));
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
                                     const std::pair<Direction, uint32_t>& port,
                                     const Binding& binding) {
  wire::Bind request{};
  request.context = context;
  request.output = port.first == Direction::kOutput;
  request.index = port.second;
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
    const std::pair<Direction, uint32_t> port(direction, index);
    Expected<void> done = BindOn(connection, context, port, binding);
    if (done.ok() && record != contexts_.end()) {
      record->second.bindings[port] = binding;
    }
    return done;
  });
}

// ---- buffers ----------------------------------------------------------------

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

bool SessionTarget::IsOurs(const BufferRecord& record) {
  struct stat status {};
  return fstat(record.fd.get(), &status) == 0 &&
         status.st_dev == record.device && status.st_ino == record.inode;
}

Expected<BufferHandle> SessionTarget::AllocateBuffer(uint64_t size,
                                                     uint32_t flags) {
  return Ask([&](Connection& connection) -> Expected<BufferHandle> {
    wire::AllocateBuffer request{};
    request.buffer = NextBufferNumber();
    request.size = size;
    request.flags = flags;
    Expected<wire::Frame> reply =
        Send(connection, wire::Verb::kAllocateBuffer, request);
    if (!reply.ok()) return std::move(reply).error();
    if (reply->fds.empty()) {
      return Error{Code::kInternal, "protocol: rknnd sent a buffer without fd"};
    }
    Expected<BufferRecord> record = MakeRecord(std::move(reply->fds[0]), size);
    if (!record.ok()) return std::move(record).error();
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
  return Done(Send(connection, wire::Verb::kImportBuffer, request, fd));
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

// ---- questions --------------------------------------------------------------

Expected<MemorySize> SessionTarget::GetMemorySize(uint32_t context) {
  return Ask([&](Connection& connection) -> Expected<MemorySize> {
    wire::MemorySizeRequest request{};
    request.context = context;
    Expected<wire::Frame> reply =
        Send(connection, wire::Verb::kMemorySize, request);
    if (!reply.ok()) return std::move(reply).error();
    return wire::Decode<MemorySize>(reply->body);
  });
}

Expected<MemoryKinds> SessionTarget::GetMemory() {
  return Ask([&](Connection& connection) -> Expected<MemoryKinds> {
    const wire::ReportRequest request{rknnd_v1_ReportKind_REPORT_STATUS};
    Expected<wire::Frame> reply =
        Send(connection, wire::Verb::kReport, request);
    if (!reply.ok()) return std::move(reply).error();
    Expected<wire::Report> report = wire::Decode<wire::Report>(reply->body);
    if (!report.ok()) return std::move(report).error();
    return report->memory;
  });
}

Expected<wire::PerfDetail> SessionTarget::AskDetail(
    const wire::PerfDetailRequest& request) {
  return Ask([&](Connection& connection) -> Expected<wire::PerfDetail> {
    Expected<wire::Frame> reply =
        Send(connection, wire::Verb::kPerfDetail, request);
    if (!reply.ok()) return std::move(reply).error();
    return wire::Decode<wire::PerfDetail>(reply->body);
  });
}

Expected<std::string> SessionTarget::PerfDetail(uint32_t context) {
  wire::PerfDetailRequest request{};
  request.context = context;
  Expected<wire::PerfDetail> detail = AskDetail(request);
  if (!detail.ok()) return std::move(detail).error();
  return std::move(detail->text);
}

Expected<wire::PerfDetail> SessionTarget::PerfReport(uint32_t context) {
  wire::PerfDetailRequest request{};
  request.context = context;
  request.with_layers = true;
  return AskDetail(request);
}

Expected<std::string> SessionTarget::ModelDetail(uint32_t context) {
  wire::PerfDetailRequest request{};
  request.context = context;
  request.kind = rknnd_v1_PerfKind_PERF_MODEL;
  Expected<wire::PerfDetail> detail = AskDetail(request);
  if (!detail.ok()) return std::move(detail).error();
  return std::move(detail->text);
}

Expected<void> SessionTarget::ArmDump(uint32_t context) {
  return Ask([&](Connection& connection) -> Expected<void> {
    wire::DumpRequest request{};
    request.context = context;
    return Done(Send(connection, wire::Verb::kDump, request));
  });
}

Expected<LayerDump> SessionTarget::TakeDump(uint32_t context) {
  return Ask([&](Connection& connection) -> Expected<LayerDump> {
    wire::DumpRequest request{};
    request.context = context;
    request.take = true;
    Expected<wire::Frame> reply = Send(connection, wire::Verb::kDump, request);
    if (!reply.ok()) return std::move(reply).error();
    Expected<wire::DumpReply> dump = wire::Decode<wire::DumpReply>(reply->body);
    if (!dump.ok()) return std::move(dump).error();
    LayerDump taken;
    taken.tensors = std::move(dump->tensors);
    if (dump->size == 0) return taken;
    if (reply->fds.empty()) {
      return Error{Code::kInternal, "protocol: rknnd sent a dump without fd"};
    }
    // What is read beyond a file's end is a SIGBUS.
    struct stat status = {};
    if (fstat(reply->fds[0].get(), &status) != 0 || status.st_size < 0 ||
        static_cast<uint64_t>(status.st_size) < dump->size) {
      return Error{Code::kInternal,
                   "protocol: rknnd sent a dump shorter than it says"};
    }
    Expected<base::Mapping> bytes = base::Mapping::OfFd(
        reply->fds[0].get(), 0, static_cast<size_t>(dump->size),
        base::Mapping::Access::kRead);
    if (!bytes.ok()) return std::move(bytes).error();
    taken.bytes = *std::move(bytes);
    return taken;
  });
}

}  // namespace rknnd::client
