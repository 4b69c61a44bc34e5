#include "client/rknnrt/context/run_record.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rknnd::client {

using base::Expected;

namespace {

// Runs that have ended and that nobody has asked for: more than can be on their
// way at a time.
constexpr size_t kRemembered = 256;

bool IsOnItsWay(const RecordedRun& run) { return !run.counted; }

}  // namespace

void RunRecord::Count(uint64_t serial, uint64_t frame, const RunReport& report,
                      const Conversions& conversions) {
  copies_.to_device_conversion.fetch_add(conversions.in,
                                         std::memory_order_relaxed);
  copies_.from_device_conversion.fetch_add(conversions.out,
                                           std::memory_order_relaxed);
  if (serial > last_.serial) last_ = {frame, serial, report};
}

void RunRecord::EndWaited(uint64_t serial, const RunReport& report,
                          const Conversions& conversions) {
  CountEnded();
  Count(serial, serial, report, conversions);
}

void RunRecord::FailWaited(uint64_t serial, const base::Error& error) {
  failed_ = serial;
  failure_ = error;
}

void RunRecord::Add(RecordedRun started) {
  begun_ = started.serial;
  previous_ = std::exchange(newest_, started);
  started_.push_back(std::move(started));
}

void RunRecord::CountEnded() {
  for (RecordedRun& started : started_) {
    if (started.counted || !target_.Look(*started.run)) continue;
    started.counted = true;
    if (started.run->code == base::Code::kOk) {
      Count(started.serial, started.frame, started.run->report,
            started.conversions);
    }
  }
  std::erase_if(started_, [](const RecordedRun& started) {
    return started.counted && started.abandoned;
  });
  while (started_.size() > kRemembered && started_.front().counted &&
         !started_.front().queued) {
    started_.erase(started_.begin());
  }
}

size_t RunRecord::OnTheirWay() const {
  return static_cast<size_t>(
      std::count_if(started_.begin(), started_.end(), IsOnItsWay));
}

RunRef RunRecord::OldestOnItsWay(uint64_t last) const {
  const auto oldest =
      std::find_if(started_.begin(), started_.end(), IsOnItsWay);
  if (oldest == started_.end() || oldest->serial > last) return {};
  return oldest->run;
}

std::array<uint64_t, 2> RunRecord::Readers() const {
  std::array<uint64_t, 2> readers = {0, 0};
  for (const RecordedRun& started : started_) {
    if (IsOnItsWay(started)) readers[started.in_bank] = started.serial;
  }
  return readers;
}

std::optional<RecordedRun> RunRecord::Find(WhichRun which,
                                           uint64_t frame) const {
  const auto fits = [&](const RecordedRun& started) {
    if (started.abandoned) return false;
    if (which == WhichRun::kThatFrame) return started.frame == frame;
    return which == WhichRun::kNewest || !started.queued;
  };
  auto it = std::find_if(started_.begin(), started_.end(), fits);
  if (which == WhichRun::kNewest && it != started_.end()) {
    it = std::prev(started_.end());
    if (!newest_ || it->serial != newest_->serial || !fits(*it)) {
      return std::nullopt;
    }
  }
  if (it == started_.end()) return std::nullopt;
  return *it;
}

void RunRecord::Waited(const RecordedRun& run) {
  CountEnded();
  if (!run.queued) Forget(run.serial);
  waited_for_ = std::max(waited_for_, run.serial);
}

void RunRecord::Forget(uint64_t serial) {
  CountEnded();
  std::erase_if(started_, [serial](const RecordedRun& started) {
    return started.serial == serial;
  });
}

void RunRecord::Abandon(uint64_t serial) {
  for (RecordedRun& started : started_) {
    if (started.serial == serial) started.abandoned = true;
  }
  CountEnded();
}

void RunRecord::ForgetOutputs() {
  shape_run_ = begun_;
  newest_.reset();
  previous_.reset();
}

bool RunRecord::HasPrevious() const {
  return newest_ && newest_->async && previous_ && previous_->async;
}

Expected<RecordedRun> RunRecord::OutputsRun() {
  if (newest_ && newest_->serial == begun_) {
    return HasPrevious() && waited_for_ < newest_->serial ? *previous_
                                                          : *newest_;
  }
  // The last one was waited for by rknn_run. One that was given up may have
  // written to the outputs, and may still: they are nobody's.
  if (failed_ != 0 && failed_ == begun_) return failure_;
  CountEnded();
  RecordedRun ended;
  ended.serial = last_.serial;
  ended.frame = last_.frame;
  return ended;
}

bool RunRecord::IsOutputsRun(uint64_t serial) const {
  return (newest_ && newest_->serial == serial) ||
         (HasPrevious() && previous_->serial == serial);
}

}  // namespace rknnd::client
