// Called on the program's threads, several at once. The order of three steps
// loses no end of a run: the notice is cleared, then the runs are looked at,
// and who leaves one that has ended reminds the notice.

#include "client/rknnrt/completion_queue.h"

#include <algorithm>
#include <utility>

#include "client/rknnrt/first_ended.h"
#include "client/rknnrt/status_map.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

namespace {

// Of one queue, on their way or not taken: a program that takes none is told so
// before it has filled its memory.
constexpr size_t kLargestQueue = 4096;

Error Closed() {
  return {Code::kFailedPrecondition, "the queue was destroyed"};
}

}  // namespace

Expected<std::shared_ptr<CompletionQueue>> CompletionQueue::Make(
    std::shared_ptr<Target> target) {
  Expected<std::shared_ptr<RunNotice>> notice = target->MakeNotice();
  if (!notice.ok()) return std::move(notice).error();
  return std::shared_ptr<CompletionQueue>(
      new CompletionQueue(std::move(target), *std::move(notice)));
}

CompletionQueue::CompletionQueue(std::shared_ptr<Target> target,
                                 std::shared_ptr<RunNotice> notice)
    : target_(std::move(target)), notice_(std::move(notice)) {}

size_t CompletionQueue::size() {
  const base::MutexLock lock(mutex_);
  return entries_.size();
}

Outcome CompletionQueue::Submit(const std::shared_ptr<Context>& context,
                                RunOptions options, const Label& label,
                                Submitted* submitted) {
  {
    const base::MutexLock lock(mutex_);
    if (closed_) return Failure{Closed(), Subject::kNone};
    if (entries_.size() >= kLargestQueue) {
      return Failure{{Code::kResourceExhausted,
                      std::to_string(kLargestQueue) +
                          " completions wait in the queue: take them by "
                          "rknnd_queue_next or rknnd_dispatch"},
                     Subject::kNone};
    }
    entries_.reserve(entries_.size() + 1);
  }
  options.notice = notice_->number();
  if (Outcome done = context->Submit(options, submitted); !done.ok())
    return done;
  bool closed = false;
  {
    const base::MutexLock lock(mutex_);
    closed = closed_;
    if (!closed) {
      entries_.push_back({submitted->run, context, submitted->frame,
                          submitted->serial, options.set, label});
    }
  }
  if (closed) context->MarkAbandoned(submitted->serial);
  // Another thread may have cleared the notice of its end before it was here.
  if (target_->Look(*submitted->run)) notice_->Remind();
  return {};
}

Expected<bool> CompletionQueue::Next(Taken* taken) {
  {
    const base::MutexLock lock(mutex_);
    if (closed_) return Closed();
  }
  notice_->Clear();
  Entry entry;
  {
    const base::MutexLock lock(mutex_);
    const auto ended = [this](const Entry& candidate) {
      return target_->Look(*candidate.run);
    };
    const auto first = FirstEnded(
        entries_.begin(), entries_.end(), ended,
        [](const Entry& a, const Entry& b) { return a.context == b.context; });
    if (first == entries_.end()) return false;
    if (std::any_of(std::next(first), entries_.end(), ended)) {
      notice_->Remind();
    }
    entry = std::move(*first);
    entries_.erase(first);
  }
  entry.context->MarkReported(entry.serial);
  rknnd_completion& completion = taken->completion;
  completion = {};
  completion.context = entry.context->number();
  completion.frame_id = entry.frame;
  completion.user = entry.label.user;
  completion.code = ToRknnError(entry.run->code, Subject::kContext);
  completion.core = entry.run->report.core;
  completion.queue_ns = entry.run->report.queue_ns;
  completion.run_ns = entry.run->report.run_ns;
  completion.total_ns = entry.run->report.total_ns;
  completion.drops = entry.run->report.drops;
  completion.set = entry.set;
  taken->callback = entry.label.callback;
  taken->text.assign(entry.run->text);
  return true;
}

void CompletionQueue::Close() {
  std::vector<Entry> entries;
  {
    const base::MutexLock lock(mutex_);
    closed_ = true;
    entries.swap(entries_);
  }
  for (const Entry& entry : entries) entry.context->MarkAbandoned(entry.serial);
}

}  // namespace rknnd::client
