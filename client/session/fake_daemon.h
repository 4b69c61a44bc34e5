// A daemon for the client's tests: speaks the session protocol on a real
// socket, knows one model of its own making, and dies and comes back when told.
// It checks nothing; what it saw is asked of it afterwards.

#ifndef CLIENT_SESSION_FAKE_DAEMON_H_
#define CLIENT_SESSION_FAKE_DAEMON_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "base/values/sha256.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"
#include "proto/wire/ring.h"

namespace rknnd::client {

// The model, whatever bytes were uploaded: input 'in' of 1x2x3x2 (NHWC)
// halves, output 'out' of 1x2x2x3 (NCHW) halves; out[i] = in[i] in the order
// the bytes lie.
inline constexpr uint32_t kFakeElements = 12;

// Thread: any; Start and Stop one at a time.
class FakeDaemon {
 public:
  explicit FakeDaemon(std::string path);
  ~FakeDaemon();

  void Start();
  // As kill -9: all sockets close, the name disappears, all is forgotten but
  // the models, and those too unless `keep_models`.
  void Stop(bool keep_models = true);

  [[nodiscard]] const std::string& path() const { return path_; }

  // How runs are answered from now on.
  // kHold: one by one, when Release says so.
  enum class Runs { kAnswer, kIgnore, kFail, kDrain, kHold };
  void set_runs(Runs runs) { runs_ = runs; }
  // As one that is stopped, but for its socket.
  void set_reads_rings(bool reads) { reads_rings_ = reads; }
  // Says in Welcome that model bytes survive.
  void set_keeps_models(bool keeps) { keeps_models_ = keeps; }
  // Does not say what computes a layer, as one of an older version.
  void set_knows_kernels(bool knows) { knows_kernels_ = knows; }
  // Says in Welcome that its rings tell which runs have begun; those that it
  // takes have, or have not.
  enum class Begun { kUntold, kNone, kAll };
  void set_begun(Begun begun) { begun_ = begun; }
  // What it answers to those who ask for a report; nothing else: it has none.
  void set_report(wire::Report report);
  // Asks for the models whose weights others share.
  void set_lacks_owners(bool lacks) { lacks_owners_ = lacks; }
  // Says in Welcome that it is a SoC with these limits.
  void set_limits(uint32_t limits) { limits_ = limits; }
  // Requests for buffers are served and not answered, as of a daemon that is
  // late.
  void set_silent_about_buffers(bool silent) { silent_about_buffers_ = silent; }
  // Does nothing more once it has served the `count`-th Bind from now on, which
  // is not answered, until GoOn; and waits for that to come.
  void HangAtBind(uint64_t count);
  void AwaitHang();
  void GoOn();
  // Every Bind from now on.
  void set_refuses_binds(bool refuses) { refuses_binds_ = refuses; }
  // The next one.
  void RefuseOneBind() { refuses_one_bind_ = true; }
  // Sent to every session that asks for a buffer from now on, which is closed
  // then.
  void set_last_words(std::string words);
  // Sent to every session that makes its next request.
  void set_log_line(std::string line);
  // Answers so many of the runs that are held, the oldest of each session
  // first.
  void Release(uint32_t count);
  // Those that found no run to answer.
  void ClearReleases() { to_release_ = 0; }
  // Whether a fence that a run waits for is signalled, with a byte.
  bool FenceCanBeRead(uint32_t number, int timeout_ms = 0);
  // Waits until so many runs were seen, since ever.
  void AwaitRuns(uint64_t count);

  // What it has now and what it saw since ever.
  struct Seen {
    uint64_t hellos = 0, uploads = 0, creates = 0, allocations = 0, imports = 0;
    uint64_t binds = 0, runs = 0, fences = 0, notices = 0;
    std::set<uint32_t> open_fences;  // that were not released, of both kinds
    std::vector<uint64_t> frames;    // of the runs
    std::vector<uint32_t> inputs;    // the buffer bound when each came
    wire::Submission last_job{};
    wire::SetQueue last_queue{};
    uint64_t queues = 0;
    std::set<uint32_t> contexts, buffers;
    // Contexts whose copies the last session to ask for something shows.
    std::set<uint32_t> copiers;
    std::map<uint32_t, uint32_t> core_masks;  // by context
    // Likewise: the first extent of the first input.
    std::map<uint32_t, uint32_t> shapes;
    uint32_t last_timeout_ms = 0;
    uint32_t last_flags = 0;
    uint32_t last_duplicate_of = 0;
    std::string last_upload_name, last_upload_options;
    // Models that came as the second file of another, by their bytes.
    std::vector<std::string> owners;
    std::string last_owner_options;
    wire::Bind last_bind{};
    std::map<uint32_t, wire::SetMemory> internal;  // by context
    wire::SetMemory last_weights{};
  };
  Seen seen();

 private:
  struct Memory {
    base::Mapping mapping;
  };
  // By set and index.
  using Ports = std::map<std::pair<uint32_t, uint32_t>, wire::Bind>;
  struct FakeContext {
    Ports inputs, outputs;
  };
  struct Session {
    base::UniqueFd socket, doorbell;
    base::Mapping ring;
    uint32_t head = 0;
    std::map<uint32_t, FakeContext> contexts;
    std::map<uint32_t, Memory> buffers;
    std::map<uint32_t, base::UniqueFd> fences;
    std::vector<wire::Submission> held;
  };

  void Serve();
  void HangIfAsked();
  bool ServeSocket(Session& session);
  wire::Frame Answer(Session& session, wire::Frame& request);
  static wire::Bind BoundIn(Ports& ports, uint32_t set);
  void ServeRing(Session& session);
  void Complete(Session& session, const wire::Submission& job);
  void Cancel(Session& session, const wire::Submission& job);
  void Finish(Session& session, const wire::Submission& job, base::Code code,
              const std::string& failure, uint32_t count);
  void ReleaseHeld(Session& session);

  wire::Frame Hello(Session& session) RKNND_REQUIRES(mutex_);
  wire::Frame Create(Session& session, const wire::Frame& request)
      RKNND_REQUIRES(mutex_);
  wire::Frame Upload(const wire::Frame& request) RKNND_REQUIRES(mutex_);
  wire::Frame Bind(Session& session, const wire::Frame& request)
      RKNND_REQUIRES(mutex_);
  wire::Frame SetMemory(Session& session, const wire::Frame& request)
      RKNND_REQUIRES(mutex_);
  wire::Frame Buffers(Session& session, const wire::Frame& request)
      RKNND_REQUIRES(mutex_);
  wire::Frame Fences(Session& session, wire::Frame& request)
      RKNND_REQUIRES(mutex_);

  const std::string path_;
  std::atomic<Runs> runs_{Runs::kAnswer};
  std::atomic<bool> reads_rings_{true};
  std::atomic<bool> keeps_models_{true};
  std::atomic<bool> lacks_owners_{true};
  std::atomic<bool> silent_about_buffers_{false};
  std::atomic<bool> refuses_binds_{false};
  std::atomic<bool> refuses_one_bind_{false};
  std::atomic<uint32_t> limits_{0};
  std::atomic<bool> knows_kernels_{true};
  std::atomic<Begun> begun_{Begun::kUntold};
  std::atomic<uint32_t> to_release_{0};
  std::atomic<bool> stop_{false};
  base::UniqueFd wakeup_;
  std::thread thread_;
  std::set<base::Sha256Digest> models_;  // the thread's, or nobody's

  base::Mutex mutex_;
  base::CondVar run_seen_;
  base::CondVar hang_changed_;
  uint64_t hang_in_ RKNND_GUARDED_BY(mutex_) = 0;  // binds; 0: never
  bool hangs_ RKNND_GUARDED_BY(mutex_) = false;
  Seen seen_ RKNND_GUARDED_BY(mutex_);
  std::optional<wire::Report> report_ RKNND_GUARDED_BY(mutex_);
  std::string log_line_ RKNND_GUARDED_BY(mutex_);
  std::string last_words_ RKNND_GUARDED_BY(mutex_);
  std::map<uint32_t, base::UniqueFd> waits_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_FAKE_DAEMON_H_
