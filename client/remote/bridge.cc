// The bridge's thread: its begin, its end and the time in between. What it
// carries is in bridge_frames.cc and bridge_replies.cc.

#include "client/remote/bridge.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "base/posix/blocked_signals.h"
#include "base/posix/socket.h"
#include "rknnd/v1/remote.pb.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

namespace {

// gRPC's threads leave a stream that was cancelled within milliseconds.
constexpr base::Nanoseconds kEndPatience = 10 * base::kSecond;
// As RKNN_LOG_LEVEL counts.
constexpr uint32_t kWarning = 2;

}  // namespace

Expected<Bridge::Opened> Bridge::Open(BridgeOptions options) {
  Expected<Opened> opened = Begin(std::move(options));
  if (!opened.ok()) return opened;
  if (Expected<void> answer = opened->bridge->Await(); !answer.ok()) {
    return std::move(answer).error();
  }
  return opened;
}

Expected<Bridge::Opened> Bridge::Begin(BridgeOptions options) {
  auto pair = base::SeqpacketPair();
  if (!pair.ok()) return std::move(pair).error();
  Opened opened;
  opened.bridge.reset(new Bridge(std::move(options)));
  opened.socket = std::move(pair->first);
  Bridge& bridge = *opened.bridge;
  bridge.socket_ = std::move(pair->second);
  auto loop = base::EventLoop::Create(&bridge.clock_);
  if (!loop.ok()) return std::move(loop).error();
  bridge.loop_ = *std::move(loop);
  {
    // Also threads that gRPC makes later.
    const base::BlockedSignals blocked;
    bridge.thread_ = std::thread([&bridge] { bridge.Run(); });
  }
  return opened;
}

Expected<void> Bridge::Await() {
  const base::MutexLock lock(mutex_);
  while (!answer_) answered_.wait(mutex_);
  return *answer_;
}

Bridge::Bridge(BridgeOptions options) : options_(std::move(options)) {}

Bridge::~Bridge() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void Bridge::Stop() {
  if (loop_ != nullptr) {
    loop_->Post([this] { Close(); });
  }
}

void Bridge::Run() {
  pthread_setname_np(pthread_self(), "rknnd-remote");
  if (Expected<void> set_up = SetUp(); set_up.ok()) {
    loop_->Run();
  } else {
    Answer(std::move(set_up).error());
  }
  TearDown();
  finished_.store(true);
}

Expected<void> Bridge::SetUp() {
  auto ring = LocalRing::Create();
  if (!ring.ok()) return std::move(ring).error();
  ring_ = *std::move(ring);
  waker_ = std::make_shared<Waker>();
  waker_->bridge = this;
  stream_ = Stream::Begin(options_.dial, [waker = waker_] {
    const base::MutexLock lock(waker->mutex);
    if (waker->bridge != nullptr) waker->bridge->Wake();
  });
  outbox_.emplace(stream_.get());
  runs_.emplace(Runs::Parts{loop_.get(), &clock_, ring_.get(), &bindings_,
                            &buffers_, &*outbox_},
                [this](wire::Verb verb, std::vector<std::byte> body) {
                  SendRequest(verb, std::move(body));
                });
  // Its answer is a daemon's, and the permission to have a session.
  auto ping = std::make_unique<v1::ToDaemon>();
  ping->mutable_ping()->set_token(++pings_);
  outbox_->Send(std::move(ping));
  timer_ = loop_->RunAfter(options_.timeout, [this] {
    timer_ = 0;
    Answer(DialFailure(options_.dial, {Code::kDeadlineExceeded, ""}));
    Ended("timed out");
  });
  return {};
}

void Bridge::Wake() {
  if (woken_.exchange(true)) return;
  loop_->Post([this] { OnStream(); });
}

void Bridge::Answer(Expected<void> result) {
  const base::MutexLock lock(mutex_);
  if (answer_) return;
  answer_ = std::move(result);
  answered_.notify_all();
}

void Bridge::OnOpen() {
  state_ = State::kOpen;
  loop_->CancelTimer(std::exchange(timer_, 0));
  const auto socket = loop_->Watch(
      socket_.get(), EPOLLIN, [this](uint32_t events) { OnSocket(events); });
  const auto doorbell =
      loop_->Watch(ring_->doorbell_fd(), EPOLLIN,
                   [this](uint32_t) { runs_->TakeEntries(); });
  if (!socket.ok() || !doorbell.ok()) {
    Answer(socket.ok() ? doorbell.error() : socket.error());
    return Ended("nothing to wait with");
  }
  socket_watch_ = *socket;
  timer_ = loop_->RunAfter(options_.ping_interval, [this] { OnTick(); });
  Answer({});
}

void Bridge::OnTick() {
  timer_ = 0;
  if (clock_.Now() - heard_ > options_.silence) {
    return Ended("nothing was heard from it for " +
                 std::to_string(options_.silence / base::kSecond) + " s");
  }
  auto ping = std::make_unique<v1::ToDaemon>();
  ping->mutable_ping()->set_token(++pings_);
  outbox_->Send(std::move(ping));
  timer_ = loop_->RunAfter(options_.ping_interval, [this] { OnTick(); });
}

void Bridge::Close() {
  state_ = State::kEnded;
  Answer(Error{Code::kCancelled, "the program ended it"});
  loop_->Quit();
}

void Bridge::Ended(const std::string& why) {
  if (state_ == State::kEnded) return;
  if (state_ == State::kOpen) {
    wire::Frame line;
    line.verb = wire::Verb::kLogEvent;
    line.kind = wire::FrameKind::kEvent;
    wire::LogEvent event{};
    event.level = kWarning;
    wire::SetText(event.text, "the session with rknnd at " +
                                  options_.dial.address + " ended: " + why);
    if (auto body = wire::Encode(event); body.ok()) {
      line.body = *std::move(body);
      ToProgram(std::move(line));
    }
  }
  Answer(Error{Code::kUnavailable, why});
  Close();
}

void Bridge::TearDown() {
  if (timer_ != 0) loop_->CancelTimer(timer_);
  // The program sees the end, whichever child of a fork has a copy of this.
  shutdown(socket_.get(), SHUT_RDWR);
  if (socket_watch_ != 0) loop_->Unwatch(socket_watch_);
  socket_.reset();
  // Whoever waits at a fence is told, too.
  runs_.reset();
  outbox_.reset();
  // This object stays until somebody looks for those that have ended.
  ring_.reset();
  buffers_.clear();
  pending_.clear();
  incoming_.clear();
  unsent_.clear();
  if (stream_ == nullptr) return;
  stream_->Cancel();
  if (!stream_->AwaitEnd(kEndPatience)) {
    // gRPC may still call it: it stays where it is.
    [[maybe_unused]] Stream* const kept = stream_.release();
  }
  {
    const base::MutexLock lock(waker_->mutex);
    waker_->bridge = nullptr;
  }
  stream_.reset();
}

}  // namespace rknnd::client
