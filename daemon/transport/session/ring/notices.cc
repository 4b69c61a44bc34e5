// See notices.h.

#include "daemon/transport/session/ring/notices.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/socket.h"
#include "base/posix/unique_fd.h"

namespace rknnd::transport {
namespace {

// A send takes some microseconds: so long, and so many times what one takes
// that nobody waits for, is usual. What may be spent on one user's beyond that.
constexpr base::Nanoseconds kUsual = 200 * base::kMicrosecond;
constexpr base::Nanoseconds kUsualTimes = 100;
constexpr base::Nanoseconds kMostLately = 20 * base::kMillisecond;
constexpr base::Nanoseconds kLately = base::kSecond;
// A late user has the loop for one part in so many.
constexpr base::Nanoseconds kPauses = 50;
// And a CPU for one part in so many, as the kernel lets nobody else have that
// one meanwhile.
constexpr base::Nanoseconds kRests = 400;

base::Nanoseconds TimeOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * base::kSecond + now.tv_nsec;
}

// Measured, as an emulated CPU may take so long for any send.
base::Nanoseconds UsualTime() {
  static const base::Nanoseconds usual = [] {
    constexpr int kTries = 16;
    const base::Expected<base::UniqueFd> event = base::MakeEventFd();
    if (!event) return kUsual;
    base::Nanoseconds least = base::kSecond;
    for (int i = 0; i < kTries; ++i) {
      const base::Nanoseconds begin = TimeOf(CLOCK_THREAD_CPUTIME_ID);
      base::SignalEventFd(event->get());
      least = std::min(least, TimeOf(CLOCK_THREAD_CPUTIME_ID) - begin);
    }
    return std::max(kUsual, kUsualTimes * least);
  }();
  return usual;
}

bool Lasts(base::Nanoseconds time) {
  return time > kUsual && time > UsualTime();
}

}  // namespace

void LoopLink::Cut() {
  base::MutexLock lock(mutex_);
  loop_ = nullptr;
}

void LoopLink::Post(std::function<void()> task) {
  base::MutexLock lock(mutex_);
  if (loop_ != nullptr) loop_->Post(std::move(task));
}

Notices::Timed::Timed(Notices* notices)
    : notices_(notices), begin_(TimeOf(CLOCK_THREAD_CPUTIME_ID)) {}

Notices::Timed::~Timed() {
  const base::Nanoseconds took = TimeOf(CLOCK_THREAD_CPUTIME_ID) - begin_;
  if (Lasts(took)) notices_->Took(took);
}

void Notices::Took(base::Nanoseconds time) {
  const base::Nanoseconds now = TimeOf(CLOCK_MONOTONIC);
  {
    base::MutexLock lock(mutex_);
    if (now - since_ > kLately) {
      since_ = now;
      taken_ = 0;
    }
    taken_ += time;
    pause_until_ = std::max(pause_until_, now) + kPauses * time;
    if (taken_ <= kMostLately || late_.exchange(true)) return;
  }
  failures_->Note(absl::StrCat(
      user_,
      " makes it last to send to its programs, as they let very many "
      "wait for it: they are told late from now on, until rknnd is "
      "started again"));
}

base::Nanoseconds Notices::Pause() {
  if (!late()) return 0;
  const base::Nanoseconds now = TimeOf(CLOCK_MONOTONIC);
  base::MutexLock lock(mutex_);
  return std::max<base::Nanoseconds>(pause_until_ - now, 0);
}

bool Notices::Later(Send send,
                    std::function<void(const base::Expected<void>&)> sent) {
  return threads_->Do(
      user_, [loop = loop_, send = std::move(send), sent = std::move(sent)] {
        const base::Expected<void> result = send();
        loop->Post([sent, result] { sent(result); });
        return base::Nanoseconds{0};
      });
}

bool Notices::Seldom(std::function<void()> tell) {
  return threads_->Do(
      absl::StrCat(user_, ", seldom"), [tell = std::move(tell)] {
        const base::Nanoseconds begin = TimeOf(CLOCK_THREAD_CPUTIME_ID);
        tell();
        const base::Nanoseconds took = TimeOf(CLOCK_THREAD_CPUTIME_ID) - begin;
        return Lasts(took) ? kRests * took : 0;
      });
}

std::shared_ptr<Notices> NoticesByUser::Of(const std::string& user) {
  std::erase_if(known_, [](const auto& one) {
    return one.second.use_count() == 1 && !one.second->late();
  });
  std::shared_ptr<Notices>& notices = known_[user];
  if (notices == nullptr) {
    notices = std::make_shared<Notices>(user, threads_, loop_, failures_);
  }
  return notices;
}

}  // namespace rknnd::transport
