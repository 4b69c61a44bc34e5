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
  client_.emplace(*std::move(socket));
  auto watch = options_.loop->Watch(client_->socket(), EPOLLIN,
                                    [this](uint32_t) { OnReadable(); });
  if (!watch.ok()) return Lose(base::ToStatus(watch.error()));
  watch_ = *watch;
  SayHello();
}

void DaemonLink::SayHello() {
  auto hello =
      client_->NewHello({.version = RKNND_VERSION, .program = "rknnd-k8s"});
  if (!hello.ok()) return Lose(base::ToStatus(hello.error()));
  Ask({*std::move(hello), [this](const absl::StatusOr<wire::Frame>& reply) {
         if (!reply.ok()) return Lose(reply.status());
         const auto welcome = wire::SessionClient::ReadWelcome(*reply);
         if (!welcome.ok()) return Lose(base::ToStatus(welcome.error()));
         cores_ = welcome->cores;
         AskForCapacity();
       }});
}

void DaemonLink::AskForCapacity() {
  const wire::ReportRequest request{
      static_cast<uint32_t>(rknnd_v1_ReportKind_REPORT_MEMORY)};
  AskFor(wire::Verb::kReport, request,
         [this](const absl::StatusOr<wire::Frame>& reply) {
           if (!reply.ok()) return Lose(reply.status());
           const auto report = wire::Decode<wire::Report>(reply->body);
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
         [this](const absl::StatusOr<wire::Frame>& reply) {
           // Lost: that has been said.
           if (!reply.ok()) return;
           const auto report = wire::Decode<wire::Report>(reply->body);
           if (!report.ok()) return Lose(base::ToStatus(report.error()));
           options_.health(HealthOf(*report));
           timer_ = options_.loop->RunAfter(options_.interval,
                                            [this] { AskForHealth(); });
         });
}

void DaemonLink::OpenShareSocket(const wire::ShareSocket& share_socket,
                                 int listener, Done done) {
  if (!up_) return done(absl::UnavailableError("rknnd does not answer"));
  auto copy = base::Duplicate(listener);
  if (!copy.ok()) return done(base::ToStatus(copy.error()));
  std::vector<base::UniqueFd> fds;
  fds.push_back(*std::move(copy));
  AskFor(
      wire::Verb::kOpenShareSocket, share_socket,
      [done = std::move(done)](const absl::StatusOr<wire::Frame>& reply) {
        done(reply.status());
      },
      std::move(fds));
}

void DaemonLink::CloseShareSocket(const std::string& name, Done done) {
  if (!up_) return done(absl::UnavailableError("rknnd does not answer"));
  wire::CloseShareSocket share_socket{};
  wire::SetText(share_socket.name, name);
  AskFor(wire::Verb::kCloseShareSocket, share_socket,
         [done = std::move(done)](const absl::StatusOr<wire::Frame>& reply) {
           done(reply.status());
         });
}

template <class Message>
void DaemonLink::AskFor(wire::Verb verb, const Message& message,
                        Answered answered, std::vector<base::UniqueFd> fds) {
  auto body = wire::Encode(message);
  if (!body.ok()) return answered(base::ToStatus(body.error()));
  Ask({client_->NewRequest(verb, *std::move(body), std::move(fds)),
       std::move(answered)});
}

void DaemonLink::Ask(Request request) {
  requests_.push_back(std::move(request));
  SendNext();
}

void DaemonLink::SendNext() {
  if (asked_ != 0 || requests_.empty()) return;
  const wire::Frame& next = requests_.front().frame;
  asked_ = next.request;
  patience_timer_ = options_.loop->RunAfter(options_.patience, [this] {
    patience_timer_ = 0;
    Lose(absl::DeadlineExceededError("rknnd does not answer in time"));
  });
  const auto sent = client_->TrySend(next);
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
  // What it says unasked is for programs' logs, and is dropped.
  auto reply = client_->Receive();
  if (!reply.ok()) return Lose(base::ToStatus(reply.error()));
  if (reply->has_value()) Take(**std::move(reply));
}

void DaemonLink::Take(wire::Frame frame) {
  if (asked_ == 0 || frame.request != asked_) {
    return Lose(absl::DataLossError("rknnd answered what nobody has asked"));
  }
  asked_ = 0;
  options_.loop->CancelTimer(patience_timer_);
  patience_timer_ = 0;
  const Answered answered = std::move(requests_.front().answered);
  requests_.pop_front();
  if (frame.code == base::Code::kOk) {
    answered(std::move(frame));
  } else {
    answered(base::ToStatus(wire::DecodeFailure(frame)));
  }
  SendNext();
}

void DaemonLink::Lose(const absl::Status& why) {
  // Whoever is told below may have the same to say.
  if (std::exchange(lost_, true)) return;
  up_ = false;
  asked_ = 0;
  if (watch_ != 0) options_.loop->Unwatch(std::exchange(watch_, 0));
  for (base::EventLoop::TimerId* timer : {&patience_timer_, &timer_}) {
    if (*timer != 0) options_.loop->CancelTimer(std::exchange(*timer, 0));
  }
  client_.reset();
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
