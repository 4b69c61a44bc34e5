// One thread serves all sessions, so that Stop() is its end.

#include "client/session/fake_daemon.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <utility>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/values/half.h"
#include "base/values/model_options.h"
#include "client/include/rknn_api.h"
#include "proto/wire/features.h"

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
          if (entries[0].revents != 0) {
            uint64_t told = 0;
            [[maybe_unused]] const ssize_t drained =
                read(wakeup_.get(), &told, sizeof told);
            for (Session& session : sessions) ReleaseHeld(session);
          }
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
  GoOn();
  base::SignalEventFd(wakeup_.get());
  thread_.join();
  unlink(path_.c_str());
  if (!keep_models) models_.clear();
  const base::MutexLock lock(mutex_);
  seen_.contexts.clear();
  seen_.buffers.clear();
  seen_.internal.clear();
  seen_.open_fences.clear();
  waits_.clear();
}

void FakeDaemon::Release(uint32_t count) {
  to_release_ += count;
  base::SignalEventFd(wakeup_.get());
}

void FakeDaemon::set_log_line(std::string line) {
  const base::MutexLock lock(mutex_);
  log_line_ = std::move(line);
}

void FakeDaemon::set_report(wire::Report report) {
  const base::MutexLock lock(mutex_);
  report_ = std::move(report);
}

void FakeDaemon::set_last_words(std::string words) {
  const base::MutexLock lock(mutex_);
  last_words_ = std::move(words);
}

bool FakeDaemon::FenceCanBeRead(uint32_t number, int timeout_ms) {
  UniqueFd own;
  {
    const base::MutexLock lock(mutex_);
    const auto fence = waits_.find(number);
    if (fence == waits_.end()) return false;
    own = *base::Duplicate(fence->second.get());
  }
  pollfd entry = {own.get(), POLLIN, 0};
  poll(&entry, 1, timeout_ms);
  char byte = 0;
  return read(own.get(), &byte, sizeof byte) == 1;
}

void FakeDaemon::AwaitRuns(uint64_t count) {
  const base::MutexLock lock(mutex_);
  while (seen_.runs < count) run_seen_.wait(mutex_);
}

FakeDaemon::Seen FakeDaemon::seen() {
  const base::MutexLock lock(mutex_);
  return seen_;
}

void FakeDaemon::HangAtBind(uint64_t count) {
  const base::MutexLock lock(mutex_);
  hang_in_ = count;
}

void FakeDaemon::AwaitHang() {
  const base::MutexLock lock(mutex_);
  while (!hangs_) hang_changed_.wait(mutex_);
}

void FakeDaemon::GoOn() {
  const base::MutexLock lock(mutex_);
  hangs_ = false;
  hang_changed_.notify_all();
}

void FakeDaemon::HangIfAsked() {
  const base::MutexLock lock(mutex_);
  if (hang_in_ == 0 || --hang_in_ != 0) return;
  hangs_ = true;
  hang_changed_.notify_all();
  while (hangs_) hang_changed_.wait(mutex_);
}

bool FakeDaemon::ServeSocket(Session& session) {
  for (;;) {
    Expected<wire::FrameResult> result =
        wire::ReceiveFrame(session.socket.get(), base::Block::kNo);
    if (!result.ok()) return false;
    if (result->kind == wire::FrameResult::Kind::kEndOfFile) return false;
    if (result->kind == wire::FrameResult::Kind::kWouldBlock) return true;
    std::string line;
    bool last = false;
    {
      const base::MutexLock lock(mutex_);
      line = std::exchange(log_line_, "");
      last = !last_words_.empty() &&
             result->frame.verb == wire::Verb::kAllocateBuffer;
      if (last) line = last_words_;
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
    if (last) return false;
    wire::Frame reply = Answer(session, result->frame);
    if (result->frame.verb == wire::Verb::kBind) HangIfAsked();
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
  if (session.ring.data() != nullptr) {
    seen_.copiers.clear();
    const auto* ring = reinterpret_cast<const wire::Ring*>(session.ring.data());
    for (const wire::CopyRecord& record : ring->copies) {
      if (record.context != 0) seen_.copiers.insert(record.context);
    }
  }
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
    case wire::Verb::kBufferKey:
      return Buffers(session, request);
    case wire::Verb::kRegisterFence:
    case wire::Verb::kReleaseFence:
      return Fences(session, request);
    case wire::Verb::kSetQueue:
      seen_.last_queue = Must(wire::Decode<wire::SetQueue>(request.body));
      ++seen_.queues;
      return Reply(wire::Empty{});
    case wire::Verb::kDestroyContext: {
      const auto destroy =
          Must(wire::Decode<wire::DestroyContext>(request.body));
      session.contexts.erase(destroy.context);
      wire::Submission all{};
      all.context = destroy.context;
      Cancel(session, all);
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
    case wire::Verb::kReport:
      if (report_.has_value()) return Reply(*report_);
      return Refuse(Code::kUnimplemented, "no reports");
    case wire::Verb::kMemorySize: {
      wire::MemorySize size{};
      size.weight = 100;
      size.dma_total = 4096;
      return Reply(size);
    }
    case wire::Verb::kPerfDetail: {
      const auto asked =
          Must(wire::Decode<wire::PerfDetailRequest>(request.body));
      wire::PerfDetail detail{"layers\n", {}};
      if (asked.kind == rknnd_v1_PerfKind_PERF_KERNELS) {
        detail.layers.resize(2);
        wire::SetText(detail.layers[1].name, "Conv:conv");
        wire::SetText(detail.layers[1].kernel, "oneDNN ref:any");
        detail.layers[1].is_slow = true;
      }
      return Reply(detail);
    }
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
  welcome.features = wire::kFeatureScheduling;
  if (begun_ != Begun::kUntold) welcome.features |= wire::kFeatureBegun;
  if (knows_kernels_) welcome.features |= wire::kFeatureKernels;
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
  if (refuses_binds_ || refuses_one_bind_.exchange(false))
    return Refuse(Code::kInternal, "no binds today");
  const auto bind = Must(wire::Decode<wire::Bind>(request.body));
  const auto context = session.contexts.find(bind.context);
  if (context == session.contexts.end() ||
      !session.buffers.contains(bind.buffer)) {
    return Refuse(Code::kNotFound, "no such context or buffer");
  }
  auto& ports = bind.output ? context->second.outputs : context->second.inputs;
  ports[{bind.set, bind.index}] = bind;
  ++seen_.binds;
  seen_.last_bind = bind;
  return Reply(wire::Empty{});
}

wire::Frame FakeDaemon::Fences(Session& session, wire::Frame& request) {
  if (request.verb == wire::Verb::kReleaseFence) {
    const auto release = Must(wire::Decode<wire::ReleaseFence>(request.body));
    session.fences.erase(release.fence);
    waits_.erase(release.fence);
    seen_.open_fences.erase(release.fence);
    return Reply(wire::Empty{});
  }
  const auto fence = Must(wire::Decode<wire::RegisterFence>(request.body));
  if (fence.out) {
    session.fences[fence.fence] = std::move(request.fds.at(0));
  } else {
    waits_[fence.fence] = std::move(request.fds.at(0));
  }
  seen_.open_fences.insert(fence.fence);
  ++(fence.out ? seen_.notices : seen_.fences);
  return Reply(wire::Empty{});
}

wire::Frame FakeDaemon::Buffers(Session& session, const wire::Frame& request) {
  if (request.verb == wire::Verb::kReleaseBuffer) {
    const auto release = Must(wire::Decode<wire::ReleaseBuffer>(request.body));
    session.buffers.erase(release.buffer);
    seen_.buffers.erase(release.buffer);
    return Reply(wire::Empty{});
  }
  if (request.verb == wire::Verb::kBufferKey) {
    const auto asked = Must(wire::Decode<wire::BufferKeyRequest>(request.body));
    if (!session.buffers.contains(asked.buffer)) {
      return Refuse(Code::kNotFound, "no such buffer here");
    }
    wire::BufferKey answer{};
    answer.key[0] = 0xa5;
    answer.key[1] = static_cast<uint8_t>(asked.buffer);
    answer.key[15] = 0x0f;
    return Reply(answer);
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

}  // namespace rknnd::client
