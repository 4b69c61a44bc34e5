// See the header.

#include "daemon/transport/grpc/session/sender.h"

#include <pthread.h>

#include <utility>

#include "base/posix/blocked_signals.h"

namespace rknnd::transport {

Sender::Sender() {
  const base::BlockedSignals blocked;
  thread_ = std::thread([this] { Run(); });
}

Sender::~Sender() { Stop(); }

void Sender::Add(std::shared_ptr<Sendable> sendable) {
  {
    base::MutexLock lock(mutex_);
    if (stopping_) return;
    Sendable* const last = sendable.get();
    if (first_ == nullptr) {
      first_ = std::move(sendable);
    } else {
      last_->next_ = std::move(sendable);
    }
    last_ = last;
  }
  wake_.notify_one();
}

void Sender::Stop() {
  std::shared_ptr<Sendable> left;
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
    left = std::move(first_);
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  // One by one: each holds the next.
  while (left != nullptr) left = std::move(left->next_);
}

void Sender::Run() {
  pthread_setname_np(pthread_self(), "rknnd-sender");
  for (;;) {
    std::shared_ptr<Sendable> sendable;
    {
      base::MutexLock lock(mutex_);
      while (first_ == nullptr && !stopping_) wake_.wait(mutex_);
      if (stopping_) return;
      sendable = std::move(first_);
      first_ = std::move(sendable->next_);
    }
    sendable->SendNext();
  }
}

}  // namespace rknnd::transport
