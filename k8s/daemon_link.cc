// See the header.

#include "k8s/daemon_link.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/socket.h"
#include "base/status/status.h"

namespace rknnd::k8s {
namespace {

// A daemon that is started again is back within this.
constexpr base::Nanoseconds kFirstDelay = 50 * base::kMillisecond;
constexpr base::Nanoseconds kLongestDelay = 2 * base::kSecond;

}  // namespace

absl::Status HealthOf(const wire::Report& status) {
  if (status.draining) {
    return absl::UnavailableError("rknnd is draining: it takes no new work");
  }
  if (status.cores != 0 && status.cores_hung >= status.cores) {
    return absl::UnavailableError(absl::StrCat(
        "all ", status.cores,
        " cores have jobs that do not end: 'rknnctl status' shows them, "
        "'rknnctl reset' resets the NPU"));
  }
  return absl::OkStatus();
}

DaemonLink::DaemonLink(Options options)
    : options_(std::move(options)), delay_(kFirstDelay) {}

DaemonLink::~DaemonLink() {
  // Nobody is called any more.
  if (watch_ != 0) options_.loop->Unwatch(watch_);
  if (patience_timer_ != 0) options_.loop->CancelTimer(patience_timer_);
  if (timer_ != 0) options_.loop->CancelTimer(timer_);
}

void DaemonLink::Start() { Connect(); }

void DaemonLink::Connect() {
  timer_ = 0;
  lost_ = false;
  auto socket = base::ConnectUnix(options_.socket);
  if (!socket.ok()) return Lose(base::ToStatus(socket.error()));
  socket_ = *std::move(socket);
  auto watch = options_.loop->Watch(socket_.get(), EPOLLIN,
                                    [this](uint32_t) { OnReadable(); });
  if (!watch.ok()) return Lose(base::ToStatus(watch.error()));
  watch_ = *watch;
  Greet();
}

void DaemonLink::Greet() {
  wire::Hello hello{};
  hello.protocol_min = wire::kProtocolMinimum;
  hello.protocol_max = wire::kProtocolCurrent;
  wire::SetText(hello.client_version, RKNND_VERSION);
  wire::SetText(hello.comm, "rknnd-k8s");
  AskFor(wire::Verb::kHello, hello,
         [this](absl::StatusOr<std::vector<std::byte>> body) {
           if (!body.ok()) return Lose(body.status());
           const auto welcome = wire::Decode<wire::Welcome>(*body);
           if (!welcome.ok()) return Lose(base::ToStatus(welcome.error()));
           cores_ = welcome->cores;
           AskForCapacity();
         });
}

void DaemonLink::AskForCapacity() {
  const wire::ReportRequest request{
      static_cast<uint32_t>(rknnd_v1_ReportKind_REPORT_MEMORY)};
  AskFor(wire::Verb::kReport, request,
         [this](absl::StatusOr<std::vector<std::byte>> body) {
           if (!body.ok()) return Lose(body.status());
           const auto report = wire::Decode<wire::Report>(*body);
           if (!report.ok()) return Lose(base::ToStatus(report.error()));
           up_ = true;
           delay_ = kFirstDelay;
           Capacity capacity;
           capacity.cores = cores_;
           capacity.memory = report->budget;
           options_.up(capacity);
           AskForHealth();
         });
}

void DaemonLink::AskForHealth() {
  timer_ = 0;
  const wire::ReportRequest request{
      static_cast<uint32_t>(rknnd_v1_ReportKind_REPORT_STATUS)};
  AskFor(wire::Verb::kReport, request,
         [this](absl::StatusOr<std::vector<std::byte>> body) {
           // Lost: that has been said.
           if (!body.ok()) return;
           const auto report = wire::Decode<wire::Report>(*body);
           if (!report.ok()) return Lose(base::ToStatus(report.error()));
           options_.health(HealthOf(*report));
           timer_ = options_.loop->RunAfter(options_.interval,
                                            [this] { AskForHealth(); });
         });
}

void DaemonLink::OpenDoor(const wire::Door& door, int listener, Done done) {
  if (!up_) return done(absl::UnavailableError("rknnd does not answer"));
  auto copy = base::Duplicate(listener);
  if (!copy.ok()) return done(base::ToStatus(copy.error()));
  std::vector<base::UniqueFd> fds;
  fds.push_back(*std::move(copy));
  AskFor(
      wire::Verb::kOpenDoor, door,
      [done = std::move(done)](
          const absl::StatusOr<std::vector<std::byte>>& body) {
        done(body.status());
      },
      std::move(fds));
}

void DaemonLink::CloseDoor(const std::string& name, Done done) {
  if (!up_) return done(absl::UnavailableError("rknnd does not answer"));
  wire::CloseDoor door{};
  wire::SetText(door.name, name);
  AskFor(wire::Verb::kCloseDoor, door,
         [done = std::move(done)](
             const absl::StatusOr<std::vector<std::byte>>& body) {
           done(body.status());
         });
}

template <class Message>
void DaemonLink::AskFor(wire::Verb verb, const Message& message,
                        Answered answered, std::vector<base::UniqueFd> fds) {
  auto body = wire::Encode(message);
  if (!body.ok()) return answered(base::ToStatus(body.error()));
  Ask({verb, *std::move(body), std::move(fds), std::move(answered)});
}

void DaemonLink::Ask(Request request) {
  requests_.push_back(std::move(request));
  SendNext();
}

void DaemonLink::SendNext() {
  if (asked_ || requests_.empty()) return;
  Request& next = requests_.front();
  wire::Frame frame;
  frame.verb = next.verb;
  frame.kind = wire::FrameKind::kRequest;
  frame.request = ++last_request_;
  frame.body = std::move(next.body);
  frame.fds = std::move(next.fds);
  asked_ = true;
  patience_timer_ = options_.loop->RunAfter(options_.patience, [this] {
    patience_timer_ = 0;
    Lose(absl::DeadlineExceededError("rknnd does not answer in time"));
  });
  const auto sent = wire::SendFrame(socket_.get(), frame, base::Block::kNo);
  // In the loop's next round: whoever asks is not called before it returns.
  if (!sent.ok()) {
    options_.loop->CancelTimer(patience_timer_);
    patience_timer_ =
        options_.loop->RunAfter(0, [this, why = base::ToStatus(sent.error())] {
          patience_timer_ = 0;
          Lose(why);
        });
  }
}

void DaemonLink::OnReadable() {
  auto received = wire::ReceiveFrame(socket_.get(), base::Block::kNo);
  if (!received.ok()) return Lose(base::ToStatus(received.error()));
  switch (received->kind) {
    case wire::FrameResult::Kind::kWouldBlock:
      return;
    case wire::FrameResult::Kind::kEndOfFile:
      return Lose(absl::UnavailableError("rknnd has ended"));
    case wire::FrameResult::Kind::kFrame:
      return Take(std::move(received->frame));
  }
}

void DaemonLink::Take(wire::Frame frame) {
  // What it says unasked is for programs' logs.
  if (frame.kind != wire::FrameKind::kReply) return;
  if (!asked_ || frame.request != last_request_) {
    return Lose(absl::DataLossError("rknnd answered what nobody has asked"));
  }
  asked_ = false;
  options_.loop->CancelTimer(patience_timer_);
  patience_timer_ = 0;
  const Answered answered = std::move(requests_.front().answered);
  requests_.pop_front();
  if (frame.code == base::Code::kOk) {
    answered(std::move(frame.body));
  } else {
    const auto error = wire::Decode<wire::Error>(frame.body);
    answered(absl::Status(
        static_cast<absl::StatusCode>(frame.code),
        error.ok() ? std::string(error->message) : "rknnd said no reason"));
  }
  SendNext();
}

void DaemonLink::Lose(const absl::Status& why) {
  // Whoever is told below may have the same to say.
  if (std::exchange(lost_, true)) return;
  up_ = false;
  asked_ = false;
  if (watch_ != 0) options_.loop->Unwatch(std::exchange(watch_, 0));
  for (base::EventLoop::TimerId* timer : {&patience_timer_, &timer_}) {
    if (*timer != 0) options_.loop->CancelTimer(std::exchange(*timer, 0));
  }
  socket_.reset();
  timer_ = options_.loop->RunAfter(delay_, [this] { Connect(); });
  delay_ = std::min(delay_ * 2, kLongestDelay);
  // Those who ask again find no connection.
  const std::deque<Request> lost = std::exchange(requests_, {});
  for (const Request& request : lost) {
    request.answered(absl::UnavailableError(std::string(why.message())));
  }
  options_.health(absl::UnavailableError(
      absl::StrCat("no answer from rknnd at '", options_.socket, "' (",
                   std::string(why.message()), "): systemctl status rknnd")));
}

}  // namespace rknnd::k8s
