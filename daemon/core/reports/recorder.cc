// See the header for who writes and who reads.

#include "daemon/core/reports/recorder.h"

#include <algorithm>
#include <utility>

#include "base/posix/hot_path.h"

namespace rknnd::core {
namespace {

// Names of models at most, and of programs that have gone: what a client can
// make us keep is bounded, and a trace needs no more.
constexpr size_t kMostModels = 4096;
constexpr size_t kMostEnded = 4096;

constexpr uint64_t Pair(uint32_t high, uint32_t low) {
  return uint64_t{high} << 32 | low;
}
constexpr uint32_t High(uint64_t word) {
  return static_cast<uint32_t>(word >> 32);
}
constexpr uint32_t Low(uint64_t word) { return static_cast<uint32_t>(word); }

}  // namespace

RKNND_HOT_PATH bool Recorder::Slot::TryWrite(const JobRecord& job) {
  uint64_t sequence = sequence_.load(std::memory_order_relaxed);
  if ((sequence & 1) != 0 ||
      !sequence_.compare_exchange_strong(sequence, sequence + 1,
                                         std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
    return false;
  }
  const std::array<uint64_t, 9> words = {
      static_cast<uint64_t>(job.submitted),
      static_cast<uint64_t>(job.started),
      static_cast<uint64_t>(job.ended),
      static_cast<uint64_t>(job.answered),
      job.frame,
      job.session,
      Pair(static_cast<uint32_t>(job.pid), job.context),
      Pair(job.cores, job.drops),
      Pair(job.model, static_cast<uint32_t>(job.code))};
  for (size_t i = 0; i < words.size(); ++i) {
    words_[i].store(words[i], std::memory_order_release);
  }
  sequence_.store(sequence + 2, std::memory_order_release);
  return true;
}

RKNND_HOT_PATH bool Recorder::Slot::Read(JobRecord* job) const {
  const uint64_t sequence = sequence_.load(std::memory_order_acquire);
  if (sequence == 0 || (sequence & 1) != 0) return false;
  std::array<uint64_t, 9> words;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = words_[i].load(std::memory_order_acquire);
  }
  if (sequence_.load(std::memory_order_relaxed) != sequence) return false;
  job->submitted = static_cast<base::Nanoseconds>(words[0]);
  job->started = static_cast<base::Nanoseconds>(words[1]);
  job->ended = static_cast<base::Nanoseconds>(words[2]);
  job->answered = static_cast<base::Nanoseconds>(words[3]);
  job->frame = words[4];
  job->session = words[5];
  job->pid = static_cast<int32_t>(High(words[6]));
  job->context = Low(words[6]);
  job->cores = High(words[7]);
  job->drops = Low(words[7]);
  job->model = High(words[8]);
  job->code = static_cast<absl::StatusCode>(Low(words[8]));
  return true;
}

Recorder::Recorder(size_t records) : ring_(records), models_{"other models"} {
  static_assert(sizeof(Slot) == 80, "see kRecords");
}

RKNND_HOT_PATH void Recorder::Begin(uint32_t core, const JobRecord& job) {
  CoreSlot& slot = running_[core];
  // Whoever has the core is alone with it.
  slot.job.TryWrite(job);
  slot.busy.store(true, std::memory_order_release);
}

RKNND_HOT_PATH void Recorder::Add(const JobRecord& job) {
  const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  // A writer that was held up while all others went once around the ring still
  // has the place: this record is the loss, nobody's time.
  ring_[number & (ring_.size() - 1)].TryWrite(job);
}

uint32_t Recorder::NameModel(const std::string& name) {
  base::MutexLock lock(mutex_);
  const auto found = model_numbers_.find(name);
  if (found != model_numbers_.end()) return found->second;
  if (models_.size() > kMostModels) return 0;
  const auto number = static_cast<uint32_t>(models_.size());
  models_.push_back(name);
  model_numbers_[name] = number;
  return number;
}

void Recorder::NameSession(SessionId session, const SessionPeer& peer) {
  base::MutexLock lock(mutex_);
  programs_[session] = peer.comm;
}

void Recorder::EndSession(SessionId session) {
  base::MutexLock lock(mutex_);
  ended_.push_back(session);
  if (ended_.size() <= kMostEnded) return;
  programs_.erase(ended_.front());
  ended_.pop_front();
}

std::string Recorder::ModelName(uint32_t number) const {
  base::MutexLock lock(mutex_);
  return models_[number < models_.size() ? number : 0];
}

Recorder::Names Recorder::names() const {
  base::MutexLock lock(mutex_);
  return {models_, programs_};
}

Recorder::Snapshot Recorder::Read() const {
  Snapshot snapshot;
  // Those that run first: one that ends meanwhile is met in the ring.
  JobRecord job;
  for (const CoreSlot& slot : running_) {
    if (slot.busy.load(std::memory_order_acquire) && slot.job.Read(&job)) {
      snapshot.running.push_back(job);
    }
  }
  const uint64_t end = next_.load(std::memory_order_acquire);
  const uint64_t begin = end - std::min<uint64_t>(end, ring_.size());
  snapshot.jobs.reserve(end - begin);
  for (uint64_t number = begin; number < end; ++number) {
    if (ring_[number & (ring_.size() - 1)].Read(&job)) {
      snapshot.jobs.push_back(job);
    }
  }
  snapshot.lost = end - snapshot.jobs.size();
  std::erase_if(snapshot.running, [&snapshot](const JobRecord& running) {
    return std::any_of(
        snapshot.jobs.rbegin(), snapshot.jobs.rend(),
        [&running](const JobRecord& ended) { return SameJob(running, ended); });
  });
  return snapshot;
}

RKNND_HOT_PATH JobRecord Recorder::LastOf(uint32_t core) const {
  JobRecord job;
  // Written right now: the next look finds it.
  return running_[core].job.Read(&job) ? job : JobRecord{};
}

JobRecord Recorder::RunningOn(uint32_t core) const {
  JobRecord job;
  // A gang's record is with the lowest of its cores.
  for (uint32_t at = 0; at <= core; ++at) {
    const CoreSlot& slot = running_[at];
    if (slot.busy.load(std::memory_order_acquire) && slot.job.Read(&job) &&
        (job.cores >> core & 1) != 0) {
      return job;
    }
  }
  return {};
}

}  // namespace rknnd::core
