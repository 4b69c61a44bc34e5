// Where the C API's calls go: one session with a daemon for the whole process,
// used by all its threads, over `unix:`, `local:` or `tcp:`. It remembers what
// the session owns, and when the daemon dies it connects again, replays that,
// and runs again what was on its way; the program sees a late frame and no
// error. The C API checks what a program gave it; nothing here knows rknn_*
// structs.

#ifndef CLIENT_SESSION_TARGET_H_
#define CLIENT_SESSION_TARGET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/values/expected.h"
#include "client/session/connection.h"
#include "client/session/fence_table.h"
#include "client/session/link.h"
#include "client/session/notice.h"
#include "client/session/pending_runs.h"
#include "client/session/record.h"
#include "client/session/run_calls.h"
#include "client/target/model_source.h"
#include "client/target/types.h"

namespace rknnd::client {

// Thread: any. The connection and its return are the link's, which gives one
// thread at a time access to the socket. What the daemon is given again is the
// record's, the fences' and the notices'; the runs go on by themselves.
class Target {
 public:
  static base::Expected<std::shared_ptr<Target>> Open(SessionOptions options);

  [[nodiscard]] TargetInfo info() const;

  // ---- contexts (target.cc) ----
  // Makes a context of the model in `source`, or of the one that duplicate_of
  // has (then `source` is null).
  base::Expected<std::shared_ptr<const ModelDescription>> CreateContext(
      const ContextRequest& request,
      const std::shared_ptr<ModelSource>& source);
  // Where its model came from, and what was asked of it.
  base::Expected<ContextOrigin> OriginOf(uint32_t context);
  // The number is free again, whatever the answer.
  base::Expected<void> DestroyContext(uint32_t context);
  base::Expected<void> SetCoreMask(uint32_t context, uint32_t core_mask);
  // Chooses a row of the model's listed shapes, by the shape of each input; in
  // force from the next Run on, and described by the answer. Bindings that are
  // too small for it are gone.
  base::Expected<std::shared_ptr<const ModelDescription>> SetShapes(
      uint32_t context, const std::vector<InputShape>& shapes);
  // These four are in force from the next Run on. A frame is in place of input
  // `index`.
  base::Expected<void> Bind(uint32_t context, Direction direction,
                            uint32_t index, const Binding& binding);
  base::Expected<void> BindFrame(uint32_t context, uint32_t index,
                                 const FrameBinding& frame);
  base::Expected<void> SetQueue(uint32_t context, const QueuePolicy& policy);
  // Internal memory that the program brought; kept when the target rebuilds.
  base::Expected<void> SetInternalMemory(uint32_t context,
                                         const MemoryRange& memory);
  // Filled with the model's weights when the call returns.
  base::Expected<void> SetWeightMemory(uint32_t context,
                                       const MemoryRange& memory);
  // Whether a stream of the context's frames fits beside those of others.
  // Room that was kept is asked for again when the target rebuilds.
  base::Expected<wire::Admission> Admit(const wire::Admit& request);

  // ---- memory (buffers.cc) ----
  base::Expected<BufferHandle> AllocateBuffer(uint64_t size, uint32_t flags);
  // Keeps a descriptor of its own, the handle's: the caller may close `fd`.
  base::Expected<BufferHandle> ImportBuffer(int fd, uint64_t size);
  // Has no descriptor: the handle's fd is -1.
  base::Expected<BufferHandle> ImportPhysical(uint64_t address, uint64_t size);
  void ReleaseBuffer(uint32_t buffer);
  // The program has written memory, or is about to read it, that the kernel has
  // no cache call for. With most daemons there is nothing to do.
  base::Expected<void> SyncBuffer(uint32_t buffer, bool to_device,
                                  bool from_device);
  // The name by which others of the same board may use the buffer's memory;
  // another one when the target has rebuilt itself.
  base::Expected<wire::BufferKey> GetBufferKey(uint32_t buffer);

  // ---- questions (questions.cc) ----
  base::Expected<MemorySize> GetMemorySize(uint32_t context);
  // What the NPU holds for all its users.
  base::Expected<MemoryKinds> GetMemory();
  base::Expected<std::string> PerfDetail(uint32_t context);
  // With the table's rows as fields.
  base::Expected<wire::PerfDetail> PerfReport(uint32_t context);
  // The layers of the context's model, whether they ran or not; none: the
  // daemon does not say what computes them.
  base::Expected<std::vector<wire::LayerReport>> Kernels(uint32_t context);
  // What the model is and where its tensors lie, in words.
  base::Expected<std::string> ModelDetail(uint32_t context);
  // The context's next run leaves what TakeDump gives, once.
  base::Expected<void> ArmDump(uint32_t context);
  base::Expected<LayerDump> TakeDump(uint32_t context);

  // Shows whoever looks at the NPU what was copied for `context`, in all, until
  // DestroyContext, after which it is not to be called. Asks nobody, so that it
  // costs little. A rebuilt session sees the totals with the next copy.
  void ReportCopies(uint32_t context, uint64_t to_device_inputs_set,
                    uint64_t from_device_outputs_get) {
    if (const auto connection = link_.Current()) {
      connection->ring().ReportCopies(context, to_device_inputs_set,
                                      from_device_outputs_get);
    }
  }

  // ---- runs ----
  // Blocks until the run has ended. Allocates nothing when it succeeds.
  base::Expected<RunReport> Run(const RunRequest& request) {
    return calls_.Run(request);
  }
  // Begins a run and does not wait for it. Runs of one context end in the order
  // of their start. kResourceExhausted: as many as can be are on their way.
  // Whatever the answer, the target gives the request's fences back.
  base::Expected<RunRef> Start(const RunRequest& request) {
    return runs_.Start(request);
  }
  // Whether it has ended; asks nobody and waits for nothing.
  bool Look(StartedRun& run) { return runs_.Look(run); }
  // Waits for its end, until `deadline` at most; whether it has ended.
  bool Await(StartedRun& run, base::Nanoseconds deadline) {
    return runs_.Await(run, deadline);
  }
  // Takes queued runs of that frame, or with 0 all of the context, back; how
  // many they were. They end with kCancelled.
  base::Expected<uint32_t> Cancel(uint32_t context, uint64_t frame) {
    return calls_.Cancel(context, frame);
  }

  // A number for what one run is to wait for. Keeps a descriptor of its own.
  base::Expected<uint32_t> RegisterFence(int fd) {
    return fences_.Register(fd);
  }
  base::Expected<FenceOut> MakeFence() { return fences_.Make(); }
  // Of fences that no run was started with; 0: none.
  void ReleaseFence(uint32_t fence) { fences_.Release(fence); }
  // Lives as long as it is kept. Not to be kept longer than the target.
  base::Expected<std::shared_ptr<RunNotice>> MakeNotice();

 private:
  explicit Target(SessionOptions options);

  // Gives a daemon that is back all that the session owns; with access.
  base::Expected<void> Replay(Connection& connection);
  // step(connection, record of the context or null) as SessionLink::Ask; not
  // for a context that was lost, which has its reason for an answer.
  template <class Step>
  auto AskOf(uint32_t context, Step step);

  const SessionOptions options_;
  // The first two are touched only by the thread that has access.
  SessionRecord record_;
  Grace grace_;
  FenceTable fences_{link_};
  NoticeTable notices_{link_, fences_};
  PendingRuns runs_{options_, link_, record_, grace_, fences_, notices_};
  RunCalls calls_{options_, link_, fences_, runs_};
  // Last, because it calls the others above.
  SessionLink link_;
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_TARGET_H_
