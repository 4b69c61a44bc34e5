// One thread serves all sessions, so that Stop() is its end.

#include "client/session/fake_daemon.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <utility>

#include "base/posix/futex.h"
#include "base/posix/half.h"
#include "base/posix/memfd.h"
#include "base/posix/model_options.h"
#include "base/posix/socket.h"
#include "client/include/rknn_api.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Expected;
using base::UniqueFd;

// In tests there is nobody to tell.
template <class T>
T Must(Expected<T> result) {
  if (!result.ok()) abort();
  return *std::move(result);
}
void Must(const Expected<void>& result) {
  if (!result.ok()) abort();
}

template <class Message>
wire::Frame Reply(const Message& message) {
  wire::Frame reply;
  reply.body = Must(wire::Encode(message));
  return reply;
}

wire::Frame Refuse(Code code, const char* message) {
  wire::Frame reply;
  reply.code = code;
  reply.body = wire::EncodeFailure(message);
  return reply;
}

wire::TensorAttr Tensor(const char* name, std::vector<uint32_t> dims,
                        uint32_t layout, uint32_t w_stride) {
  wire::TensorAttr attr{};
  wire::SetText(attr.name, name);
  attr.dims_count = static_cast<pb_size_t>(dims.size());
  std::copy(dims.begin(), dims.end(), attr.dims);
  attr.elements = kFakeElements;
  attr.size = uint64_t{kFakeElements} * sizeof(base::Half);
  attr.size_with_stride = attr.size;
  attr.layout = layout;
  attr.type = RKNN_TENSOR_FLOAT16;
  attr.quantization = RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC;
  attr.scale = 1.0F;
  attr.w_stride = w_stride;
  return attr;
}

wire::ContextInfo FakeModel() {
  wire::ContextInfo info;
  info.inputs = {Tensor("in", {1, 2, 3, 2}, RKNN_TENSOR_NHWC, 3)};
  info.outputs = {Tensor("out", {1, 2, 2, 3}, RKNN_TENSOR_NCHW, 0)};
  info.native_inputs = info.inputs;
  info.native_nhwc_inputs = info.inputs;
  info.native_outputs = {
      Tensor("out", {1, 1, 2, 3, 2}, RKNN_TENSOR_NC1HWC2, 0)};
  info.native_nhwc_outputs = {Tensor("out", {1, 2, 3, 2}, RKNN_TENSOR_NHWC, 0)};
  info.weight_size = 100;
  info.custom_string = "fake";
  return info;
}

float ReadElement(const std::byte* from, uint32_t type, uint32_t i) {
  switch (type) {
    case RKNN_TENSOR_UINT8:
      return static_cast<float>(static_cast<uint8_t>(from[i]));
    case RKNN_TENSOR_FLOAT16: {
      base::Half half = 0;
      std::memcpy(&half, from + i * sizeof half, sizeof half);
      return base::HalfToFloat(half);
    }
    default: {
      float value = 0;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      return value;
    }
  }
}

void WriteElement(std::byte* to, uint32_t type, uint32_t i, float value) {
  if (type == RKNN_TENSOR_FLOAT16) {
    const base::Half half = base::FloatToHalf(value);
    std::memcpy(to + i * sizeof half, &half, sizeof half);
  } else {
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

FakeDaemon::FakeDaemon(std::string path) : path_(std::move(path)) { Start(); }

FakeDaemon::~FakeDaemon() {
  if (thread_.joinable()) Stop();
}

void FakeDaemon::Start() {
  stop_ = false;
  wakeup_ = Must(base::MakeEventFd());
  UniqueFd listener = Must(base::ListenUnix(path_, 0600));
  thread_ = std::thread(
      [this, socket = std::make_shared<UniqueFd>(std::move(listener))] {
        std::list<Session> sessions;
        while (!stop_) {
          std::vector<pollfd> entries = {{wakeup_.get(), POLLIN, 0},
                                         {socket->get(), POLLIN, 0}};
          for (const Session& session : sessions) {
            entries.push_back({session.socket.get(), POLLIN, 0});
            entries.push_back({session.doorbell.get(), POLLIN, 0});
          }
          poll(entries.data(), entries.size(), -1);
          if (stop_) return;
          size_t at = 2;
          for (auto session = sessions.begin(); session != sessions.end();
               at += 2) {
            if (entries[at + 1].revents != 0) ServeRing(*session);
            const bool open = entries[at].revents == 0 || ServeSocket(*session);
            session = open ? std::next(session) : sessions.erase(session);
          }
          if (entries[1].revents != 0) {
            UniqueFd connection = Must(base::Accept(socket->get()));
            if (connection.valid()) {
              sessions.emplace_back().socket = std::move(connection);
            }
          }
        }
      });
}

void FakeDaemon::Stop(bool keep_models) {
  stop_ = true;
  base::SignalEventFd(wakeup_.get());
  thread_.join();
  unlink(path_.c_str());
  if (!keep_models) models_.clear();
  const base::MutexLock lock(mutex_);
  seen_.contexts.clear();
  seen_.buffers.clear();
  seen_.internal.clear();
}

void FakeDaemon::set_log_line(std::string line) {
  const base::MutexLock lock(mutex_);
  log_line_ = std::move(line);
}

void FakeDaemon::AwaitRuns(uint64_t count) {
  const base::MutexLock lock(mutex_);
  while (seen_.runs < count) run_seen_.wait(mutex_);
}

FakeDaemon::Seen FakeDaemon::seen() {
  const base::MutexLock lock(mutex_);
  return seen_;
}

bool FakeDaemon::ServeSocket(Session& session) {
  for (;;) {
    Expected<wire::FrameResult> result =
        wire::ReceiveFrame(session.socket.get(), base::Block::kNo);
    if (!result.ok()) return false;
    if (result->kind == wire::FrameResult::Kind::kEndOfFile) return false;
    if (result->kind == wire::FrameResult::Kind::kWouldBlock) return true;
    std::string line;
    {
      const base::MutexLock lock(mutex_);
      line = std::exchange(log_line_, "");
    }
    if (!line.empty()) {
      wire::LogEvent event{};
      event.level = 1;
      wire::SetText(event.text, line);
      wire::Frame frame = Reply(event);
      frame.verb = wire::Verb::kLogEvent;
      frame.kind = wire::FrameKind::kEvent;
      Must(wire::SendFrame(session.socket.get(), frame, base::Block::kYes));
    }
    wire::Frame reply = Answer(session, result->frame);
    if (silent_about_buffers_ &&
        (result->frame.verb == wire::Verb::kAllocateBuffer ||
         result->frame.verb == wire::Verb::kImportBuffer)) {
      continue;
    }
    reply.verb = result->frame.verb;
    reply.kind = wire::FrameKind::kReply;
    reply.request = result->frame.request;
    if (!wire::SendFrame(session.socket.get(), reply, base::Block::kYes).ok()) {
      return false;
    }
  }
}

wire::Frame FakeDaemon::Answer(Session& session, wire::Frame& request) {
  const base::MutexLock lock(mutex_);
  switch (request.verb) {
    case wire::Verb::kHello:
      ++seen_.hellos;
      return Hello(session);
    case wire::Verb::kCreateContext:
      return Create(session, request);
    case wire::Verb::kUploadModel:
      return Upload(request);
    case wire::Verb::kBind:
      return Bind(session, request);
    case wire::Verb::kSetInternalMemory:
    case wire::Verb::kSetWeightMemory:
      return SetMemory(session, request);
    case wire::Verb::kAllocateBuffer:
    case wire::Verb::kImportBuffer:
    case wire::Verb::kReleaseBuffer:
      return Buffers(session, request);
    case wire::Verb::kDestroyContext: {
      const auto destroy =
          Must(wire::Decode<wire::DestroyContext>(request.body));
      session.contexts.erase(destroy.context);
      seen_.contexts.erase(destroy.context);
      return Reply(wire::Empty{});
    }
    case wire::Verb::kSetCoreMask: {
      const auto mask = Must(wire::Decode<wire::SetCoreMask>(request.body));
      seen_.core_masks[mask.context] = mask.core_mask;
      return Reply(wire::Empty{});
    }
    case wire::Verb::kSetShapes: {
      const auto shapes = Must(wire::Decode<wire::SetShapes>(request.body));
      if (shapes.shapes.empty()) {
        return Refuse(Code::kInvalidArgument, "not one of the shapes");
      }
      seen_.shapes[shapes.context] = shapes.shapes[0].dims[0];
      return Reply(FakeModel());
    }
    case wire::Verb::kMemorySize: {
      wire::MemorySize size{};
      size.weight = 100;
      size.dma_total = 4096;
      return Reply(size);
    }
    case wire::Verb::kPerfDetail:
      return Reply(wire::PerfDetail{"layers\n", {}});
    default:
      return Refuse(Code::kUnimplemented, "no such verb");
  }
}

wire::Frame FakeDaemon::Hello(Session& session) {
  wire::Welcome welcome{};
  welcome.protocol = wire::kProtocolCurrent;
  welcome.ring_entries = wire::kRingEntries;
  welcome.cores = 3;
  welcome.keeps_models = keeps_models_;
  welcome.limits = limits_;
  wire::SetText(welcome.soc, "rk3588");
  wire::SetText(welcome.api_version, "2.3.2 (fake)");
  wire::SetText(welcome.driver_version, "0.9.8");
  UniqueFd ring = Must(base::MakeMemfd("fake-ring", wire::kRingBytes));
  session.ring = Must(base::Mapping::OfFd(ring.get(), 0, wire::kRingBytes,
                                          base::Mapping::Access::kReadWrite));
  auto* header = reinterpret_cast<wire::RingHeader*>(session.ring.data());
  header->magic = wire::kRingMagic;
  header->entries = wire::kRingEntries;
  session.doorbell = Must(base::MakeEventFd());
  wire::Frame reply = Reply(welcome);
  reply.fds.push_back(std::move(ring));
  reply.fds.push_back(Must(base::Duplicate(session.doorbell.get())));
  return reply;
}

wire::Frame FakeDaemon::Create(Session& session, const wire::Frame& request) {
  const auto create = Must(wire::Decode<wire::CreateContext>(request.body));
  ++seen_.creates;
  base::Sha256Digest id;
  std::copy(std::begin(create.model), std::end(create.model), id.begin());
  if (!models_.contains(id)) {
    return Refuse(Code::kNotFound, "no such model here");
  }
  session.contexts[create.context];
  seen_.contexts.insert(create.context);
  seen_.core_masks[create.context] = create.core_mask;
  seen_.last_flags = create.flags;
  seen_.last_duplicate_of = create.duplicate_of;
  return Reply(FakeModel());
}

wire::Frame FakeDaemon::Upload(const wire::Frame& request) {
  const auto upload = Must(wire::Decode<wire::UploadModel>(request.body));
  ++seen_.uploads;
  seen_.last_upload_name = upload.name;
  seen_.last_upload_options = upload.options;
  const int fd = request.fds.at(0).get();
  if (!base::HasSeals(fd, base::Seals::kImmutable)) {
    return Refuse(Code::kInvalidArgument, "the model is not sealed");
  }
  struct stat status {};
  fstat(fd, &status);
  const auto size = static_cast<size_t>(status.st_size);
  const base::Mapping bytes =
      Must(base::Mapping::OfFd(fd, 0, size, base::Mapping::Access::kRead));
  base::Sha256 hash;
  hash.Update(bytes.bytes());
  hash.Update(std::as_bytes(std::span(upload.options)));
  if (hash.Finish() != upload.model) {
    return Refuse(Code::kInvalidArgument, "the model has another hash");
  }
  if (std::memcmp(bytes.data(), "bad", std::min<size_t>(size, 3)) == 0) {
    return Refuse(Code::kInvalidArgument, "this is no model");
  }
  const auto options = Must(base::SplitModelOptions(upload.options));
  if (options.weights_of.has_value() && !upload.has_weights_of &&
      lacks_owners_) {
    return Refuse(Code::kNotFound, "the model whose weights it shares");
  }
  if (upload.has_weights_of) {
    std::string owner(4096, '\0');
    const ssize_t got =
        pread(request.fds.at(1).get(), owner.data(), owner.size(), 0);
    owner.resize(got < 0 ? 0 : static_cast<size_t>(got));
    seen_.owners.push_back(owner);
    seen_.last_owner_options = upload.weights_of_options;
  }
  models_.insert(upload.model);
  return Reply(wire::Empty{});
}

wire::Frame FakeDaemon::SetMemory(Session& session,
                                  const wire::Frame& request) {
  const auto memory = Must(wire::Decode<wire::SetMemory>(request.body));
  if (!session.contexts.contains(memory.context) ||
      !session.buffers.contains(memory.buffer)) {
    return Refuse(Code::kNotFound, "no such context or buffer");
  }
  if (request.verb == wire::Verb::kSetInternalMemory) {
    seen_.internal[memory.context] = memory;
  } else {
    seen_.last_weights = memory;
  }
  return Reply(wire::Empty{});
}

wire::Frame FakeDaemon::Bind(Session& session, const wire::Frame& request) {
  if (refuses_binds_) return Refuse(Code::kInternal, "no binds today");
  const auto bind = Must(wire::Decode<wire::Bind>(request.body));
  const auto context = session.contexts.find(bind.context);
  if (context == session.contexts.end() ||
      !session.buffers.contains(bind.buffer)) {
    return Refuse(Code::kNotFound, "no such context or buffer");
  }
  auto& ports = bind.output ? context->second.outputs : context->second.inputs;
  ports[bind.index] = bind;
  ++seen_.binds;
  seen_.last_bind = bind;
  return Reply(wire::Empty{});
}

wire::Frame FakeDaemon::Buffers(Session& session, const wire::Frame& request) {
  if (request.verb == wire::Verb::kReleaseBuffer) {
    const auto release = Must(wire::Decode<wire::ReleaseBuffer>(request.body));
    session.buffers.erase(release.buffer);
    seen_.buffers.erase(release.buffer);
    return Reply(wire::Empty{});
  }
  const bool import = request.verb == wire::Verb::kImportBuffer;
  uint32_t number = 0;
  uint64_t size = 0;
  UniqueFd fd;
  if (import) {
    const auto wanted = Must(wire::Decode<wire::ImportBuffer>(request.body));
    number = wanted.buffer;
    size = wanted.size;
    fd = Must(base::Duplicate(request.fds.at(0).get()));
    ++seen_.imports;
  } else {
    const auto wanted = Must(wire::Decode<wire::AllocateBuffer>(request.body));
    number = wanted.buffer;
    size = wanted.size;
    fd = Must(base::MakeMemfd("fake-buffer", size));
    ++seen_.allocations;
  }
  auto mapping = base::Mapping::OfFd(fd.get(), 0, static_cast<size_t>(size),
                                     base::Mapping::Access::kReadWrite);
  if (!mapping.ok()) {
    return Refuse(Code::kInvalidArgument, "this fd cannot be a buffer");
  }
  session.buffers[number].mapping = *std::move(mapping);
  seen_.buffers.insert(number);
  wire::Buffer buffer{};
  buffer.size = size;
  wire::SetText(buffer.heap, "memfd");
  wire::Frame reply = Reply(buffer);
  if (!import) reply.fds.push_back(std::move(fd));
  return reply;
}

void FakeDaemon::ServeRing(Session& session) {
  uint64_t rings = 0;
  [[maybe_unused]] const ssize_t drained =
      read(session.doorbell.get(), &rings, sizeof rings);
  auto* ring = reinterpret_cast<wire::Ring*>(session.ring.data());
  const uint32_t tail = ring->header.tail.load(std::memory_order_acquire);
  for (; session.head != tail; ++session.head) {
    const wire::Submission job =
        ring->submissions[session.head & (wire::kRingEntries - 1)];
    {
      const base::MutexLock lock(mutex_);
      ++seen_.runs;
      seen_.last_timeout_ms = job.timeout_ms;
    }
    if (runs_ != Runs::kIgnore) Complete(session, job);
    run_seen_.notify_all();
  }
}

void FakeDaemon::Complete(Session& session, const wire::Submission& job) {
  auto* ring = reinterpret_cast<wire::Ring*>(session.ring.data());
  wire::Completion& completion = ring->completions[job.slot];
  std::string failure;
  Code code = Code::kOk;
  if (runs_ == Runs::kFail) {
    code = Code::kInternal;
    failure = "told to fail";
  } else if (runs_ == Runs::kDrain) {
    code = Code::kUnavailable;
    failure = "takes no new jobs";
  }
  const auto context = session.contexts.find(job.context);
  if (context == session.contexts.end()) {
    code = Code::kNotFound;
    failure = "no such context";
  } else if (code == Code::kOk) {
    const wire::Bind& in = context->second.inputs[0];
    const wire::Bind& out = context->second.outputs[0];
    if (in.buffer == 0 || out.buffer == 0) {
      code = Code::kFailedPrecondition;
      failure = "not bound";
    } else {
      const std::byte* from =
          session.buffers[in.buffer].mapping.data() + in.offset;
      std::byte* to = session.buffers[out.buffer].mapping.data() + out.offset;
      for (uint32_t i = 0; i < kFakeElements; ++i) {
        WriteElement(to, out.type, i, ReadElement(from, in.type, i));
      }
    }
  }
  completion.code = static_cast<int32_t>(code);
  completion.frame = job.frame;
  completion.queue_ns = 1000;
  completion.run_ns = 5000;
  completion.total_ns = 7000;
  completion.core = 1;
  completion.text_size = static_cast<uint32_t>(failure.size());
  std::memcpy(ring->texts[job.slot].text, failure.data(), failure.size());
  completion.sequence.store(job.sequence, std::memory_order_release);
  base::FutexWakeOne(&completion.sequence);
}

}  // namespace rknnd::client
