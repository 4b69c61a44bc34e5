// The jobs of late, always: who ran what, where, and when, for the moment when
// somebody asks what happened. Workers write it where jobs begin and end; what
// reads it makes a trace (trace_text.h), on a thread that may take its time.
//
// Of fixed size. A writer claims the next place of a ring by one addition and
// never waits; a reader never holds up a writer, and leaves out what is being
// written while it looks. Names (of models, of programs) are kept apart, as
// numbers in the records: those change only when contexts and sessions are
// made, on the loop.

#ifndef DAEMON_CORE_REPORTS_RECORDER_H_
#define DAEMON_CORE_REPORTS_RECORDER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// One job, as far as it has come. Times are 0 where that has not happened.
struct JobRecord {
  base::Nanoseconds submitted = 0, started = 0, ended = 0, answered = 0;
  uint64_t frame = 0;
  SessionId session = 0;
  int32_t pid = 0;
  uint32_t context = 0;
  uint32_t cores = 0;  // that it ran on, as bits
  uint32_t drops = 0;  // frames dropped before it, as told to its program
  uint32_t model = 0;  // Recorder::NameModel
  absl::StatusCode code = absl::StatusCode::kOk;
};

inline bool SameJob(const JobRecord& a, const JobRecord& b) {
  return a.session == b.session && a.context == b.context &&
         a.submitted == b.submitted && a.frame == b.frame;
}

// Thread: any, but where noted.
class Recorder {
 public:
  // A minute of nine cameras at 30 frames a second: long enough to notice that
  // something went wrong and to ask. At 80 bytes a job that is 1.25 MiB.
  static constexpr size_t kRecords = 16384;
  // A device's, and what CoreChoice can say.
  static constexpr size_t kCores = 32;

  // `records`: a power of two.
  explicit Recorder(size_t records = kRecords);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // ---- hot path: by whoever has the token of `core` ----

  // A job starts there; of a gang, the lowest of its cores.
  void Begin(uint32_t core, const JobRecord& job);
  // More is known of a job that Begin told of. It may have left meanwhile.
  void Update(uint32_t core, const JobRecord& job) {
    running_[core].job.TryWrite(job);
  }
  // It has left. Its record goes into the ring by Add.
  void Leave(uint32_t core) {
    running_[core].busy.store(false, std::memory_order_relaxed);
  }
  // A job has ended, run or not.
  void Add(const JobRecord& job);

  // ---- names: takes a lock, not for the hot path ----

  // A number for a model's name; 0, "other models", for those that come after
  // the 4096th: a client may load any number of them.
  uint32_t NameModel(const std::string& name);
  void NameSession(SessionId session, const SessionPeer& peer);
  // Its name is kept as long as records of it are likely.
  void EndSession(SessionId session);
  [[nodiscard]] std::string ModelName(uint32_t number) const;

  // ---- reading ----

  struct Names {
    std::vector<std::string> models;  // by number
    std::map<SessionId, std::string> programs;
  };
  [[nodiscard]] Names names() const;

  struct Snapshot {
    std::vector<JobRecord> jobs;     // ended ones, the oldest first
    std::vector<JobRecord> running;  // on a core, without an end
    uint64_t lost = 0;  // had no room any more, or were being written
  };
  [[nodiscard]] Snapshot Read() const;
  // The job that `core` has, or had last; session 0: none yet.
  [[nodiscard]] JobRecord LastOf(uint32_t core) const;
  // The job that `core` has, alone or with others; session 0: none.
  [[nodiscard]] JobRecord RunningOn(uint32_t core) const;

 private:
  // A record that is written by one and read by any. The sequence is odd while
  // a writer is at it; a reader that finds it changed behind the words it read
  // throws those away. Each word is stored with release, so that whoever reads
  // a new one sees the new sequence too (a fence instead is beyond what the
  // thread sanitizer understands); it costs nothing on x86 and little on ARM.
  class Slot {
   public:
    // False, and nothing done, while somebody else writes it.
    bool TryWrite(const JobRecord& job);
    // False: nothing yet, or it is being written.
    bool Read(JobRecord* job) const;

   private:
    std::atomic<uint64_t> sequence_{0};
    std::array<std::atomic<uint64_t>, 9> words_{};
  };

  // Apart: workers of different cores share no cache line for it.
  struct alignas(64) CoreSlot {
    Slot job;
    std::atomic<bool> busy{false};
  };

  std::vector<Slot> ring_;
  std::atomic<uint64_t> next_{0};  // ended jobs so far
  std::array<CoreSlot, kCores> running_;

  mutable base::Mutex mutex_;
  std::vector<std::string> models_ RKNND_GUARDED_BY(mutex_);
  std::map<std::string, uint32_t> model_numbers_ RKNND_GUARDED_BY(mutex_);
  std::map<SessionId, std::string> programs_ RKNND_GUARDED_BY(mutex_);
  std::deque<SessionId> ended_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_REPORTS_RECORDER_H_
