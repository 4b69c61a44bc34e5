// See the header. Nobody waits here: a fence is looked at, or watched by the
// bridge's loop.

#include "client/remote/local_fences.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <string>
#include <utility>

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

bool IsSocket(int fd) {
  int domain = 0;
  socklen_t size = sizeof domain;
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0;
}

}  // namespace

LocalFences::~LocalFences() {
  for (const auto& [fence, watched] : watched_) loop_->Unwatch(watched.watch);
}

Expected<void> LocalFences::Register(uint32_t number, bool out,
                                     base::UniqueFd fd) {
  if (number == 0) {
    return Error{Code::kInvalidArgument, "a fence's number cannot be 0"};
  }
  if (fences_.contains(number)) {
    return Error{Code::kAlreadyExists,
                 "fence " + std::to_string(number) +
                     " is registered already: release it first"};
  }
  if (out && !IsSocket(fd.get())) {
    return Error{Code::kInvalidArgument,
                 "fence " + std::to_string(number) +
                     " is no socket: to be signalled, use one end of a "
                     "socketpair"};
  }
  // Files and the like are always ready, and epoll takes none of them.
  if (!out) {
    const base::UniqueFd set(epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    if (epoll_ctl(set.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
      return Error{Code::kInvalidArgument,
                   "fence " + std::to_string(number) +
                       " cannot be waited for: a fence is an eventfd, a "
                       "sync_file, a pipe, a timerfd or a Unix socket"};
    }
  }
  fences_[number] = std::make_shared<const LocalFence>(
      LocalFence{number, out, std::move(fd)});
  return {};
}

Expected<void> LocalFences::Release(uint32_t number) {
  if (fences_.erase(number) != 0) return {};
  return Error{Code::kNotFound, "fence " + std::to_string(number) +
                                    " is not registered in this session"};
}

Expected<std::shared_ptr<const LocalFence>> LocalFences::Find(uint32_t number,
                                                              bool out) const {
  if (number == 0) return std::shared_ptr<const LocalFence>();
  const auto found = fences_.find(number);
  if (found == fences_.end() || found->second->out != out) {
    return Error{Code::kInvalidArgument,
                 "fence " + std::to_string(number) +
                     " is not registered in this session for that: register a "
                     "fence before the run that names it"};
  }
  return found->second;
}

LocalFences::State LocalFences::Look(const LocalFence& fence) {
  pollfd look{fence.fd.get(), POLLIN | POLLRDHUP, 0};
  if (poll(&look, 1, 0) <= 0) return State::kPending;
  if ((look.revents & POLLIN) == 0) return State::kClosed;
  if ((look.revents & (POLLHUP | POLLRDHUP)) == 0) return State::kSignalled;
  // The end of a socket can be read, too; what was sent before it counts.
  int unread = 0;
  if (IsSocket(fence.fd.get()) &&
      (ioctl(fence.fd.get(), SIOCINQ, &unread) != 0 || unread == 0)) {
    return State::kClosed;
  }
  return State::kSignalled;
}

void LocalFences::Signal(const LocalFence& fence) {
  const char byte = 1;
  // A full socket can be read already; one that nobody has any more tells
  // nobody.
  [[maybe_unused]] const ssize_t sent =
      send(fence.fd.get(), &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL);
}

Expected<void> LocalFences::Watch(
    const std::shared_ptr<const LocalFence>& fence) {
  Watched& watched = watched_[fence.get()];
  if (watched.runs++ != 0) return {};
  watched.fence = fence;
  const Expected<base::EventLoop::WatchId> watch =
      loop_->Watch(fence->fd.get(), EPOLLIN | EPOLLRDHUP | EPOLLONESHOT,
                   [this](uint32_t) { changed_(); });
  if (!watch.ok()) {
    watched_.erase(fence.get());
    return watch.error();
  }
  watched.watch = *watch;
  return {};
}

void LocalFences::Forget(const LocalFence& fence) {
  const auto found = watched_.find(&fence);
  if (found == watched_.end() || --found->second.runs != 0) return;
  loop_->Unwatch(found->second.watch);
  watched_.erase(found);
}

}  // namespace rknnd::client
