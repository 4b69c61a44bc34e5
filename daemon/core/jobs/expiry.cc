// See the header. What comes in here are times that clients chose, as jobs that
// their gate has checked.

#include "daemon/core/jobs/expiry.h"

#include <algorithm>
#include <utility>

namespace rknnd::core {
namespace {

// One heap of two; either may be null. Of equal times the first comes first.
Job* Meld(Job* a, Job* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  if (b->expiry.when < a->expiry.when) std::swap(a, b);
  b->expiry.sibling = a->expiry.child;
  if (b->expiry.sibling != nullptr) b->expiry.sibling->expiry.previous = b;
  b->expiry.previous = a;
  a->expiry.child = b;
  return a;
}

// One heap of all children of one that goes. Not recursive: a client has a say
// in how many there are.
Job* MeldChildren(Job* child) {
  // In pairs, which are collected with the last one first...
  Job* pairs = nullptr;
  while (child != nullptr) {
    Job* const a = child;
    Job* const b = a->expiry.sibling;
    child = b == nullptr ? nullptr : b->expiry.sibling;
    for (Job* const one : {a, b}) {
      if (one != nullptr) one->expiry.sibling = one->expiry.previous = nullptr;
    }
    Job* const pair = Meld(a, b);
    pair->expiry.sibling = pairs;
    pairs = pair;
  }
  // ...and then all.
  Job* all = nullptr;
  while (pairs != nullptr) {
    Job* const pair = pairs;
    pairs = std::exchange(pair->expiry.sibling, nullptr);
    all = Meld(pair, all);
  }
  return all;
}

}  // namespace

bool Expiry::Add(Job* job, base::Nanoseconds when) {
  base::MutexLock lock(mutex_);
  job->expiry = {};
  job->expiry.when = when;
  job->expiry.linked = true;
  first_ = Meld(first_, job);
  return when < armed_;
}

void Expiry::Remove(Job* job) {
  base::MutexLock lock(mutex_);
  if (job->expiry.linked) Unlink(job);
}

void Expiry::Unlink(Job* job) {
  ExpiryNode& node = job->expiry;
  Job* const children = MeldChildren(node.child);
  if (job == first_) {
    first_ = children;
  } else {
    Job* const before = node.previous;
    (before->expiry.child == job ? before->expiry.child
                                 : before->expiry.sibling) = node.sibling;
    if (node.sibling != nullptr) node.sibling->expiry.previous = before;
    first_ = Meld(first_, children);
  }
  node = {};
}

bool Expiry::WatchAt(base::Nanoseconds when) {
  base::MutexLock lock(mutex_);
  watch_ = std::min(watch_, when);
  return when < armed_;
}

base::Nanoseconds Expiry::Next() const {
  return first_ == nullptr ? watch_ : std::min(watch_, first_->expiry.when);
}

base::Nanoseconds Expiry::next() const {
  base::MutexLock lock(mutex_);
  return Next();
}

void Expiry::Arm() {
  base::Nanoseconds next = kNever;
  {
    base::MutexLock lock(mutex_);
    next = Next();
    if (next >= armed_) return;
    armed_ = next;
  }
  // Two that come here at once may call in the other order: the waker keeps the
  // earlier time.
  waker_->ExpireBy(next);
}

void Expiry::BeginExpiring() {
  base::MutexLock lock(mutex_);
  armed_ = kNever;
  watch_ = kNever;
}

std::optional<Expiry::Due> Expiry::TakeDue(base::Nanoseconds now) {
  base::MutexLock lock(mutex_);
  if (first_ == nullptr || first_->expiry.when > now) return std::nullopt;
  Job* const job = first_;
  Unlink(job);
  // In the heap it is in flight, and has all of these.
  return Due{job->hold.jobs, job->submission.slot, job->serial};
}

}  // namespace rknnd::core
