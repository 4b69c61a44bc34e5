#include "daemon/transport/session/testing/test_daemon.h"

#include <dirent.h>

#include <array>
#include <cstring>
#include <future>
#include <span>

#include "base/posix/futex.h"
#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/values/sha256.h"
#include "proto/wire/features.h"

namespace rknnd::transport::testing {
namespace {

constexpr uint64_t kTensorBytes = 64;

// A model of the fake device.
std::string SmallModel() { return "bytes=64 weight=1000 internal=4096"; }

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

void RecordingEventLog::Write(Severity /*severity*/, const std::string& text) {
  base::MutexLock lock(mutex_);
  lines_.push_back(text);
}

std::vector<std::string> RecordingEventLog::lines() const {
  base::MutexLock lock(mutex_);
  return lines_;
}

class TestDaemon::Timers final : public core::TimerQueue {
 public:
  explicit Timers(base::EventLoop* loop) : loop_(loop) {}
  uint64_t RunAfter(base::Nanoseconds delay,
                    std::function<void()> task) override {
    return loop_->RunAfter(delay, std::move(task));
  }
  void Cancel(uint64_t timer) override { loop_->CancelTimer(timer); }

 private:
  base::EventLoop* const loop_;
};

TestDaemon::TestDaemon(const TestDaemonOptions& options) {
  std::promise<void> up;
  loop_thread_ = std::thread(
      [this, &options, &up] { Run(options, [&up] { up.set_value(); }); });
  up.get_future().wait();
}

TestDaemon::~TestDaemon() {
  device_->HoldJobs(false);
  while (device_->Release()) {
  }
  loop_->Post([this] {
    server_->CloseAll(absl::CancelledError("the test ends"));
    loop_->Quit();
  });
  loop_thread_.join();
}

void TestDaemon::Run(const TestDaemonOptions& options,
                     const std::function<void()>& up) {
  loop_ = *base::EventLoop::Create(&clock_);
  loader_ = *base::EventLoop::Create(&clock_);
  pager_ = *base::EventLoop::Create(&clock_);
  loader_thread_ = std::thread([this] { loader_->Run(); });
  pager_thread_ = std::thread([this] { pager_->Run(); });
  device_ = std::make_unique<core::testing::FakeDevice>(options.cores, &clock_);
  std::vector<std::unique_ptr<driver::Heap>> heaps;
  heaps.push_back(driver::MakeMemfdHeap());
  heaps_.emplace(std::move(heaps));
  WorkersOptions workers;
  workers.clock = &clock_;
  workers.spin = options.spin;
  workers_ = *Workers::Create(loop_.get(), workers);
  fences_.emplace(workers_->epoll_fd());
  Timers timers(loop_.get());

  core::ServiceOptions service;
  service.device = device_.get();
  service.heaps = &*heaps_;
  service.clock = &clock_;
  service.loop = loop_.get();
  service.loader = service.quick_loader = loader_.get();
  service.pager = pager_.get();
  service.timers = &timers;
  service.waker = workers_.get();
  service.fences = &*fences_;
  service.limits = options.limits;
  service.incoherent = options.incoherent;
  service.sessions = options.server_limits.sessions;
  service_ = *core::Service::Create(service);
  failures_.emplace(&log_, &clock_);
  Environment environment;
  environment.loop = loop_.get();
  environment.service = service_.get();
  environment.workers = workers_.get();
  environment.failures = &*failures_;
  environment.board = options.board;
  server_ = std::make_unique<SessionServer>(environment, options.server_limits);
  fences_->set_runner(&service_->runner());
  workers_->set_fences(&*fences_);
  workers_->Start(options.cores + 1, &service_->runner(),
                  [this](core::SessionId session, const absl::Status& reason) {
                    server_->CloseSession(session, reason);
                  });
  loop_->Post(up);
  loop_->Run();

  server_.reset();
  loader_->Quit();
  loader_thread_.join();
  pager_->Quit();
  pager_thread_.join();
  workers_->Stop();
  // What was posted meanwhile still finds its service.
  loop_->Quit();
  loop_->Run();
  service_.reset();
  workers_.reset();
}

base::UniqueFd TestDaemon::Connect(bool admin) {
  auto pair = base::SeqpacketPair();
  EXPECT_TRUE(pair.ok());
  RunOnLoop([&] {
    const absl::Status adopted = server_->Adopt(std::move(pair->second), admin);
    EXPECT_TRUE(adopted.ok()) << adopted;
  });
  return std::move(pair->first);
}

void TestDaemon::RunOnLoop(const std::function<void()>& task) {
  std::promise<void> done;
  loop_->Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void TestDaemon::Advance(base::Nanoseconds time) {
  clock_.Advance(time);
  // One round in which timers fire, one that shows they have.
  RunOnLoop([] {});
  RunOnLoop([] {});
}

core::StatusReport TestDaemon::Status() {
  core::StatusReport status;
  RunOnLoop([&] { status = service_->Status(); });
  return status;
}

void TestDaemon::WaitUntil(
    const std::function<bool(const core::StatusReport&)>& wanted) {
  while (!wanted(Status())) std::this_thread::yield();
}

wire::Frame TestClient::Call(wire::Verb verb, std::vector<std::byte> body,
                             std::vector<base::UniqueFd> fds) {
  wire::Frame request;
  request.verb = verb;
  request.request = ++request_;
  request.body = std::move(body);
  request.fds = std::move(fds);
  const auto sent = wire::SendFrame(socket_.get(), request, base::Block::kYes);
  EXPECT_TRUE(sent.ok()) << sent.error().message;
  for (;;) {
    auto received = wire::ReceiveFrame(socket_.get(), base::Block::kYes);
    EXPECT_TRUE(received.ok());
    if (!received.ok() || received->kind != wire::FrameResult::Kind::kFrame) {
      ADD_FAILURE() << "no answer to verb " << static_cast<int>(verb);
      wire::Frame none;
      none.code = base::Code::kUnavailable;
      return none;
    }
    wire::Frame& frame = received->frame;
    if (frame.kind == wire::FrameKind::kEvent) {
      const auto event = wire::Decode<wire::LogEvent>(frame.body);
      if (event.ok()) log_.emplace_back(event->text);
      continue;
    }
    EXPECT_EQ(frame.request, request_);
    EXPECT_EQ(frame.verb, verb);
    return std::move(frame);
  }
}

wire::Frame TestClient::SayHello(uint32_t protocol_min, uint32_t protocol_max) {
  wire::Hello hello{};
  hello.protocol_min = protocol_min;
  hello.protocol_max = protocol_max;
  hello.features = wire::kKnownFeatures;
  hello.log_level = 5;
  wire::SetText(hello.comm, "test");
  wire::Frame reply = Call(wire::Verb::kHello, hello);
  if (reply.code != base::Code::kOk) return reply;
  const auto welcome = wire::Decode<wire::Welcome>(reply.body);
  EXPECT_TRUE(welcome.ok());
  session_ = welcome->session;
  EXPECT_EQ(reply.fds.size(), 2U);
  memory_ = std::move(reply.fds[0]);
  doorbell_ = std::move(reply.fds[1]);
  auto mapping = base::Mapping::OfFd(memory_.get(), 0, wire::kRingBytes,
                                     base::Mapping::Access::kReadWrite);
  EXPECT_TRUE(mapping.ok());
  mapping_ = *std::move(mapping);
  ring_ = reinterpret_cast<wire::Ring*>(mapping_.data());
  return reply;
}

void TestClient::ExpectEnd() {
  for (;;) {
    auto received = wire::ReceiveFrame(socket_.get(), base::Block::kYes);
    if (!received.ok() ||
        received->kind == wire::FrameResult::Kind::kEndOfFile) {
      return;
    }
    if (received->frame.kind != wire::FrameKind::kEvent) continue;
    const auto event = wire::Decode<wire::LogEvent>(received->frame.body);
    if (event.ok()) log_.emplace_back(event->text);
  }
}

base::Code TestClient::Upload(const std::string& model) {
  wire::UploadModel upload;
  upload.model = base::Sha256Of(BytesOf(model));
  upload.name = "test-model";
  auto memfd = base::MakeImmutableMemfd("model", BytesOf(model));
  EXPECT_TRUE(memfd.ok());
  std::vector<base::UniqueFd> fds;
  fds.push_back(*std::move(memfd));
  return Call(wire::Verb::kUploadModel, upload, std::move(fds)).code;
}

base::Code TestClient::CreateContext(uint32_t number,
                                     const std::string& model) {
  wire::CreateContext create{};
  create.context = number;
  const auto id = base::Sha256Of(BytesOf(model));
  std::memcpy(create.model, id.data(), id.size());
  return Call(wire::Verb::kCreateContext, create).code;
}

base::Code TestClient::Allocate(uint32_t number, uint64_t size,
                                uint32_t flags) {
  wire::AllocateBuffer allocate{};
  allocate.buffer = number;
  allocate.size = size;
  allocate.flags = flags;
  wire::Frame reply = Call(wire::Verb::kAllocateBuffer, allocate);
  if (reply.code != base::Code::kOk) return reply.code;
  EXPECT_EQ(reply.fds.size(), 1U);
  auto mapping = base::Mapping::OfFd(reply.fds[0].get(), 0, size,
                                     base::Mapping::Access::kReadWrite);
  EXPECT_TRUE(mapping.ok());
  buffers_.push_back({number, *std::move(mapping)});
  return base::Code::kOk;
}

base::Code TestClient::BindTo(uint32_t context, bool output, uint32_t buffer) {
  wire::Bind bind{};
  bind.context = context;
  bind.output = output;
  bind.buffer = buffer;
  bind.size = kTensorBytes;
  bind.type = static_cast<uint32_t>(driver::TensorType::kUint8);
  bind.layout = static_cast<uint32_t>(driver::TensorLayout::kNhwc);
  return Call(wire::Verb::kBind, bind).code;
}

void TestClient::MakeReady(uint32_t context) {
  if (CreateContext(context, SmallModel()) == base::Code::kNotFound) {
    ASSERT_EQ(Upload(SmallModel()), base::Code::kOk);
    ASSERT_EQ(CreateContext(context, SmallModel()), base::Code::kOk);
  }
  ASSERT_EQ(Allocate(context * 10, 4096), base::Code::kOk);
  ASSERT_EQ(Allocate(context * 10 + 1, 4096), base::Code::kOk);
  ASSERT_EQ(BindTo(context, false, context * 10), base::Code::kOk);
  ASSERT_EQ(BindTo(context, true, context * 10 + 1), base::Code::kOk);
}

void TestClient::Submit(uint32_t context, uint32_t slot) {
  wire::Submission entry{};
  entry.context = context;
  entry.slot = slot;
  Submit(entry);
}

void TestClient::Submit(wire::Submission entry) {
  const uint32_t tail = ring_->header.tail.load();
  if (entry.operation == 0) {
    entry.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  }
  entry.sequence = ++sequence_;
  sequences_[entry.slot] = sequence_;
  ring_->submissions[tail % wire::kRingEntries] = entry;
  ring_->header.tail.store(tail + 1);
  if (ring_->header.polled.load() == 0) base::SignalEventFd(doorbell_.get());
}

bool TestClient::HasEnded(uint32_t slot) const {
  return ring_->completions[slot].sequence.load() == sequences_[slot];
}

std::string TestClient::ReasonOf(uint32_t slot) const {
  return {ring_->texts[slot].text, ring_->completions[slot].text_size};
}

base::Code TestClient::WaitFor(uint32_t slot) {
  const wire::Completion& completion = ring_->completions[slot];
  ring_->header.asleep[slot / 32].fetch_or(uint32_t{1} << (slot % 32));
  for (;;) {
    const uint32_t seen = completion.sequence.load(std::memory_order_acquire);
    if (seen == sequences_[slot]) break;
    base::FutexWait(&completion.sequence, seen, 20 * base::kMillisecond);
  }
  return static_cast<base::Code>(completion.code);
}

base::Code TestClient::RunOnce(uint32_t context) {
  Submit(context, 0);
  return WaitFor(0);
}

std::byte* TestClient::buffer(uint32_t number) {
  for (const MappedBuffer& buffer : buffers_) {
    if (buffer.number == number) return buffer.mapping.data();
  }
  ADD_FAILURE() << "no buffer " << number;
  return nullptr;
}

size_t OpenFds() {
  size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of its own
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

}  // namespace rknnd::transport::testing
