// See the header: every fd here has another owner, and he is hostile.

#include "daemon/transport/session/ring/fences.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/ring/notices.h"

namespace rknnd::transport {
namespace {

constexpr char kInKinds[] =
    "a fence is an eventfd, a sync_file, a pipe, a timerfd or a Unix socket";

// What the kernel calls an open file; for all that is no file with a path this
// is its kind, which nobody can choose.
std::string LinkOf(int fd) {
  std::array<char, 256> link{};
  const std::string path = absl::StrCat("/proc/self/fd/", fd);
  const ssize_t size = readlink(path.c_str(), link.data(), link.size());
  return size <= 0 ? "" : std::string(link.data(), static_cast<size_t>(size));
}

// The set that this worker waits in; -1: it is no worker.
thread_local int epoll_of_thread = -1;

// Asks no file system for news, which for one in user space would be to wait
// for its owner.
bool IsFifo(int fd) {
  struct statx status {};
  return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
               &status) == 0 &&
         (status.stx_mask & STATX_TYPE) != 0 && S_ISFIFO(status.stx_mode);
}

template <class T>
bool GetOption(int fd, int option, T* value) {
  socklen_t size = sizeof *value;
  return getsockopt(fd, SOL_SOCKET, option, value, &size) == 0;
}

bool IsUnixSocket(int fd) {
  int domain = 0;
  return GetOption(fd, SO_DOMAIN, &domain) && domain == AF_UNIX;
}

// Of this end or the other; not OK with errno when there is none.
template <class Get>
bool HasNoName(Get get, int fd, bool* unnamed) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (get(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  *unnamed = size <= sizeof(sa_family_t);
  return true;
}

absl::Status CheckOutSocket(const std::string& name, int fd) {
  bool near = false;
  bool far = false;
  if (!HasNoName(getpeername, fd, &far)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name,
                     " is a socket that is not connected: use one end of a "
                     "socketpair"));
  }
  if (!HasNoName(getsockname, fd, &near) || !near || !far) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        " is a socket with a name, or leads to one: the daemon sends to "
        "nobody but the other end of a socketpair"));
  }
  return absl::OkStatus();
}

// Two fds of one eventfd say the same here.
std::string EventFdId(int fd) {
  const std::string path = absl::StrCat("/proc/self/fdinfo/", fd);
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return "";
  std::string id;
  std::array<char, 128> line{};
  while (std::fgets(line.data(), line.size(), file) != nullptr) {
    if (std::strncmp(line.data(), "eventfd-id:", 11) == 0) id = line.data();
  }
  std::fclose(file);
  return id;
}

absl::Status CheckInFence(const std::string& name, const std::string& link,
                          int fd, int doorbell) {
  if (link == "anon_inode:[eventfd]") {
    const std::string id = EventFdId(fd);
    if (id.empty() || id != EventFdId(doorbell)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is the session's own doorbell"));
  }
  if (link == "anon_inode:sync_file" || link == "anon_inode:[timerfd]" ||
      absl::StartsWith(link, "pipe:[") || IsFifo(fd)) {
    return absl::OkStatus();
  }
  if (absl::StartsWith(link, "socket:[")) {
    if (!IsUnixSocket(fd)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is a socket of the network: ", kInKinds));
    }
    // A client's end of its own session would keep that open behind it.
    bool unnamed = true;
    if (HasNoName(getpeername, fd, &unnamed) && !unnamed) {
      return absl::InvalidArgumentError(absl::StrCat(
          name,
          " is a connection to a socket with a name, as a session is: use one "
          "end of a socketpair"));
    }
    return absl::OkStatus();
  }
  if (link == "anon_inode:[eventpoll]") {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is an epoll set: register what is in it"));
  }
  if (absl::StartsWith(link, "/dmabuf:")) {
    return absl::InvalidArgumentError(
        absl::StrCat(name,
                     " is a dma-buf: register the sync_file that "
                     "DMA_BUF_IOCTL_EXPORT_SYNC_FILE gives for it"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is '", Printable(link), "': ", kInKinds));
}

}  // namespace

absl::Status CheckFence(uint32_t number, bool out, int fd, int doorbell) {
  const std::string name = absl::StrCat("fence ", number);
  const std::string link = LinkOf(fd);
  if (link.empty()) {
    return absl::UnavailableError(
        absl::StrCat(name, " cannot be looked at: this daemon has no /proc"));
  }
  if (!out) return CheckInFence(name, link, fd, doorbell);
  if (absl::StartsWith(link, "socket:[") && IsUnixSocket(fd)) {
    return CheckOutSocket(name, fd);
  }
  if (link == "anon_inode:[eventfd]") {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        " is an eventfd, and its owner could make a write to it block "
        "the daemon: to be signalled, use one end of a socketpair"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is '", Printable(link),
                   "': to be signalled, use one end of a socketpair"));
}

void Fences::EnterWorker(int epoll) { epoll_of_thread = epoll; }

core::FenceState Fences::Look(const core::Fence& fence) {
  pollfd look{fence.fd.get(), POLLIN | POLLRDHUP, 0};
  if (poll(&look, 1, 0) <= 0) return core::FenceState::kPending;
  if ((look.revents & POLLIN) == 0) return core::FenceState::kClosed;
  if ((look.revents & (POLLHUP | POLLRDHUP)) == 0) {
    return core::FenceState::kSignalled;
  }
  // The end of a socket can be read, too; what was sent before it counts. Not
  // recv: another reader of the socket may keep its lock for as long as the
  // memory that he reads into takes to appear.
  int unread = 0;
  if (IsUnixSocket(fence.fd.get()) &&
      (ioctl(fence.fd.get(), SIOCINQ, &unread) != 0 || unread == 0)) {
    return core::FenceState::kClosed;
  }
  return core::FenceState::kSignalled;
}

absl::Status Fences::Watch(uint64_t token,
                           const std::shared_ptr<core::Fence>& fence) {
  base::MutexLock lock(mutex_);
  const auto known = by_fence_.find(fence.get());
  if (known != by_fence_.end()) {
    watched_[known->second].tokens.push_back(token);
    by_token_[token] = known->second;
    return absl::OkStatus();
  }
  const uint64_t number = next_number_++;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;
  event.data.u64 = EventTag(WorkerEvent::kFence, number);
  // Under the lock, so that its event finds what follows: it asks the fd once
  // whether it can be read, and CheckFence has let in none that could wait.
  const int epoll = epoll_of_thread == -1 ? epoll_ : epoll_of_thread;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fence->fd.get(), &event) != 0) {
    const int error = errno;
    const std::string name = absl::StrCat("watch fence ", fence->number);
    if (error == ENOSPC) {
      return absl::ResourceExhaustedError(
          absl::StrCat(name,
                       ": the kernel watches no more for this daemon "
                       "(fs.epoll.max_user_watches)"));
    }
    return base::ToStatus(base::ErrnoError(error, name));
  }
  watched_[number] = {fence, epoll, {token}};
  by_fence_[fence.get()] = number;
  by_token_[token] = number;
  return absl::OkStatus();
}

void Fences::Forget(uint64_t number) {
  const auto found = watched_.find(number);
  epoll_ctl(found->second.epoll, EPOLL_CTL_DEL, found->second.fence->fd.get(),
            nullptr);
  by_fence_.erase(found->second.fence.get());
  for (const uint64_t token : found->second.tokens) by_token_.erase(token);
  watched_.erase(found);
}

void Fences::Unwatch(uint64_t token) {
  std::shared_ptr<core::Fence> last;  // goes outside the lock
  base::MutexLock lock(mutex_);
  const auto known = by_token_.find(token);
  if (known == by_token_.end()) return;
  const uint64_t number = known->second;
  Watched& watched = watched_[number];
  if (watched.tokens.size() == 1) {
    last = watched.fence;
    return Forget(number);
  }
  std::erase(watched.tokens, token);
  by_token_.erase(known);
}

void Fences::OnFenceEvent(uint64_t number) {
  Watched event;
  {
    base::MutexLock lock(mutex_);
    const auto found = watched_.find(number);
    if (found == watched_.end()) return;
    event.fence = found->second.fence;
    event.tokens = found->second.tokens;
    Forget(number);
  }
  // What was signalled and is not any more, because somebody has read it, was.
  const core::FenceState state = Look(*event.fence);
  for (const uint64_t token : event.tokens) {
    runner_->FenceReady(token, state == core::FenceState::kPending
                                   ? core::FenceState::kSignalled
                                   : state);
  }
}

void Fences::Signal(const std::shared_ptr<core::Fence>& fence) {
  const auto tell = [](const core::Fence& told) {
    // Nothing to be done where it fails: the other end is full, which can be
    // read, or closed.
    constexpr char kByte = 1;
    static_cast<void>(
        send(told.fd.get(), &kByte, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
  };
  auto* const notices = static_cast<Notices*>(fence->owner.get());
  if (notices == nullptr) {
    tell(*fence);
  } else if (!notices->late()) {
    notices->Now([&] { tell(*fence); });
  } else {
    // Where too many wait already, this one is lost, as it is where the other
    // end is full. One that its session has released by then, or which ended
    // with it, is closed, which can be read as well.
    notices->Seldom([tell, weak = std::weak_ptr(fence)] {
      if (const auto told = weak.lock()) tell(*told);
    });
  }
}

size_t Fences::watched() const {
  base::MutexLock lock(mutex_);
  return watched_.size();
}

}  // namespace rknnd::transport
