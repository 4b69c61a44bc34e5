// See the header.

#include "k8s/kubelet.h"

#include <grpcpp/grpcpp.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/blocked_signals.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "kubernetes/device_plugin.grpc.pb.h"

namespace rknnd::k8s {
namespace {

constexpr char kApiVersion[] = "v1beta1";
constexpr std::chrono::seconds kPatience{5};
constexpr uint32_t kChanges =
    IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM;

}  // namespace

class FolderWatch::Impl {
 public:
  Impl(base::EventLoop* loop, Changed changed)
      : loop_(loop), changed_(std::move(changed)) {}
  ~Impl() {
    if (watch_ != 0) loop_->Unwatch(watch_);
  }

  absl::Status Start(const std::string& folder) {
    inotify_ = base::UniqueFd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify_.valid()) return absl::ErrnoToStatus(errno, "make an inotify");
    if (inotify_add_watch(inotify_.get(), folder.c_str(), kChanges) < 0) {
      return absl::ErrnoToStatus(errno,
                                 absl::StrCat("watch folder '", folder, "'"));
    }
    RKNND_ASSIGN_OR_RETURN(
        watch_, base::ToStatusOr(loop_->Watch(inotify_.get(), EPOLLIN,
                                              [this](uint32_t) { Read(); })));
    return absl::OkStatus();
  }

 private:
  void Read() {
    alignas(inotify_event) std::array<char, 4096> bytes{};
    const ssize_t size = read(inotify_.get(), bytes.data(), bytes.size());
    if (size <= 0) return;
    // The kernel writes whole events, each name with its end.
    for (size_t at = 0; at < static_cast<size_t>(size);) {
      const auto* event =
          reinterpret_cast<const inotify_event*>(bytes.data() + at);
      at += sizeof(inotify_event) + event->len;
      // Events that were lost: whatever it was.
      changed_(event->len > 0 ? std::string(event->name) : std::string());
    }
  }

  base::EventLoop* const loop_;
  const Changed changed_;
  base::UniqueFd inotify_;
  base::EventLoop::WatchId watch_ = 0;
};

FolderWatch::FolderWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FolderWatch::~FolderWatch() = default;

absl::StatusOr<std::unique_ptr<FolderWatch>> FolderWatch::Start(
    const std::string& folder, base::EventLoop* loop, Changed changed) {
  auto impl = std::make_unique<Impl>(loop, std::move(changed));
  RKNND_RETURN_IF_ERROR(impl->Start(folder));
  return std::unique_ptr<FolderWatch>(new FolderWatch(std::move(impl)));
}

class RegisterCall::Impl {
 public:
  Impl(const Registration& registration, base::EventLoop* loop,
       std::function<void(absl::Status)> done)
      : loop_(loop),
        done_(std::make_shared<std::function<void(absl::Status)>>(
            std::move(done))) {
    grpc::ChannelArguments arguments;
    // A channel of its own each time: none remembers that the last kubelet
    // could not be reached.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // gRPC's threads take no signals.
    const base::BlockedSignals blocked;
    stub_ = v1beta1::Registration::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("unix:", registration.kubelet_socket),
        grpc::InsecureChannelCredentials(), arguments));
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    request_.set_version(kApiVersion);
    request_.set_endpoint(registration.endpoint);
    request_.set_resource_name(registration.resource);
    request_.mutable_options();
    stub_->async()->Register(
        &context_, &request_, &reply_, [this](const grpc::Status& status) {
          absl::Status answer(
              static_cast<absl::StatusCode>(status.error_code()),
              status.error_message());
          loop_->Post([done = std::weak_ptr(done_), answer] {
            if (const auto alive = done.lock()) (*alive)(answer);
          });
          ended_.set_value();
        });
  }
  ~Impl() {
    context_.TryCancel();
    ended_.get_future().wait();
  }

 private:
  base::EventLoop* const loop_;
  const std::shared_ptr<std::function<void(absl::Status)>> done_;
  std::unique_ptr<v1beta1::Registration::Stub> stub_;
  grpc::ClientContext context_;
  v1beta1::RegisterRequest request_;
  v1beta1::Empty reply_;
  std::promise<void> ended_;
};

RegisterCall::RegisterCall(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
RegisterCall::~RegisterCall() = default;

std::unique_ptr<RegisterCall> RegisterCall::Start(
    const Registration& registration, base::EventLoop* loop,
    std::function<void(absl::Status)> done) {
  return std::unique_ptr<RegisterCall>(new RegisterCall(
      std::make_unique<Impl>(registration, loop, std::move(done))));
}

}  // namespace rknnd::k8s
