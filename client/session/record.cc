// What a session keeps, and how a daemon gets it anew. Called on the program's
// threads, with access to the socket. A program sees buffers' descriptors and
// closes what it should not: none is used before it is looked at.

#include "client/session/record.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "client/session/requests.h"
#include "client/target/log.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;
using base::UniqueFd;

namespace {

// Right after its start a daemon may have no room yet: sessions that its
// predecessor's clients make again come in any order, and one of them may
// bring the model that others know by its hash alone.
constexpr Nanoseconds kCrowdPatience = 2 * base::kSecond;

// Asks again for the room that was kept for a context's frames.
void ReplayStream(Connection& connection, const wire::Admit& stream) {
  // The context is of use without it.
  const auto answer =
      SendFor<wire::Admission>(connection, wire::Verb::kAdmit, stream);
  if (!answer.ok() || answer->fits) return;
  Log(LogLevel::kWarning,
      "rknnd was restarted and keeps no room any more for "
      "the stream of context " +
          std::to_string(stream.context) + ": " + answer->reason);
}

// Bound for another shape and too small for this one: the daemon that died had
// taken it away too, and the next run says so.
bool IsOutgrown(const ContextRecord& record, const Error& error) {
  return !record.shapes.empty() && error.code == Code::kInvalidArgument;
}

}  // namespace

void Grace::BeginOnce() {
  if (until_ == 0) until_ = clock_.Now() + kCrowdPatience;
}

bool Grace::IsPassing(const Connection& connection, const Error& error) const {
  if (connection.broken()) return true;
  switch (error.code) {
    case Code::kUnavailable:  // it is being ended, or drained
    case Code::kDeadlineExceeded:
    case Code::kAborted:
      return true;
    case Code::kResourceExhausted:
      return lasts();
    default:
      return false;
  }
}

bool Grace::GoesOn(const Connection& connection, const Expected<void>& done,
                   const char* what) const {
  if (done.ok()) return true;
  if (IsPassing(connection, done.error())) return false;
  Log(LogLevel::kError, std::string("the restarted rknnd refused ") + what +
                            ": " + done.error().message);
  return true;
}

// ---- buffers ----------------------------------------------------------------

Expected<BufferRecord> BufferRecord::Of(UniqueFd fd, uint64_t size) {
  // Programs take fd 0 for "none".
  if (fd.get() == 0) {
    fd.reset(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
    if (!fd.valid()) return base::ErrnoError(errno, "move a buffer's fd");
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) {
    return base::ErrnoError(errno, "look at a buffer");
  }
  BufferRecord record;
  record.fd = std::move(fd);
  record.device = status.st_dev;
  record.inode = status.st_ino;
  record.size = size;
  return record;
}

bool BufferRecord::IsOurs() const {
  if (address) return true;
  struct stat status {};
  return fstat(fd.get(), &status) == 0 && status.st_dev == device &&
         status.st_ino == inode;
}

uint32_t SessionRecord::NextBufferNumber() {
  do {
    ++last_buffer_;
  } while (last_buffer_ == 0 || buffers.contains(last_buffer_));
  return last_buffer_;
}

bool SessionRecord::HasBuffer(uint32_t number) const {
  const auto record = buffers.find(number);
  return record != buffers.end() && !record->second.lost;
}

SessionRecord::~SessionRecord() {
  for (auto& [number, record] : buffers) {
    if (record.IsOurs()) continue;
    [[maybe_unused]] const int foreign = record.fd.release();
  }
}

// ---- contexts ---------------------------------------------------------------

ContextRecord* SessionRecord::FindContext(uint32_t number) {
  const auto found = contexts.find(number);
  return found == contexts.end() ? nullptr : &found->second;
}

Expected<void> SessionRecord::CheckContext(uint32_t number) const {
  const auto found = contexts.find(number);
  if (found == contexts.end() || !found->second.lost) return {};
  return *found->second.lost;
}

std::shared_ptr<ModelSource> SessionRecord::KeptAlready(
    const std::shared_ptr<ModelSource>& source) const {
  for (const auto& [number, record] : contexts) {
    if (record.source->keeps_bytes() && record.source->id() == source->id()) {
      return record.source;
    }
  }
  return source;
}

// ---- the replay -------------------------------------------------------------

Expected<void> SessionRecord::Replay(Connection& connection,
                                     const Grace& grace) {
  Expected<void> done = ReplayBuffers(connection, grace);
  if (done.ok()) done = ReplayContexts(connection, grace);
  return done;
}

Expected<void> SessionRecord::ReplayBuffers(Connection& connection,
                                            const Grace& grace) {
  for (auto& [number, record] : buffers) {
    record.lost = !record.IsOurs();
    if (record.lost) {
      Log(LogLevel::kError,
          "fd " + std::to_string(record.fd.get()) +
              " of a buffer was closed by the program, so the restarted rknnd "
              "cannot have it");
      continue;
    }
    Expected<void> done =
        record.address ? ImportPhysicalOn(connection, number, *record.address,
                                          record.size, buffer_timeout_)
                       : ImportOn(connection, number, record.fd.get(),
                                  record.size, buffer_timeout_);
    if (!grace.GoesOn(connection, done, "a buffer")) return done;
    // As if the program had destroyed it: what it is bound to can be given
    // other memory.
    record.lost = !done.ok();
  }
  return {};
}

Expected<void> SessionRecord::ReplayContext(Connection& connection,
                                            uint32_t number,
                                            const ContextRecord& record) {
  Expected<ModelDescription> model = CreateOn(connection, number, record, 0);
  if (!model.ok()) return std::move(model).error();
  if (!record.shapes.empty()) {
    Expected<ModelDescription> row =
        SetShapesOn(connection, number, record.shapes);
    if (!row.ok()) return std::move(row).error();
  }
  if (HasBuffer(record.internal.buffer)) {
    Expected<void> set = SetMemoryOn(connection, wire::Verb::kSetInternalMemory,
                                     number, record.internal);
    if (!set.ok()) return set;
  }
  for (const auto& [port, binding] : record.bindings) {
    // Destroyed by the program while it was still bound, or lost: there is no
    // memory any more. A run before it binds other memory fails and says so.
    if (!HasBuffer(binding.buffer)) continue;
    Expected<void> bound = BindOn(connection, number, port, binding);
    if (!bound.ok() && !IsOutgrown(record, bound.error())) return bound;
  }
  if (record.stream.has_value()) ReplayStream(connection, *record.stream);
  if (record.queue) {
    Expected<void> set = SetQueueOn(connection, number, *record.queue);
    if (!set.ok()) return set;
  }
  return ReplayFrames(connection, number, record);
}

Expected<void> SessionRecord::ReplayFrames(Connection& connection,
                                           uint32_t number,
                                           const ContextRecord& record) {
  for (const auto& [port, frame] : record.frames) {
    // As for tensors: memory may be gone, or the shape another.
    const bool there =
        std::all_of(frame.planes.begin(), frame.planes.end(),
                    [&](const MemoryRange& plane) {
                      return plane.buffer == 0 || HasBuffer(plane.buffer);
                    });
    if (!there) continue;
    Expected<void> bound = BindFrameOn(connection, number, port.index, frame);
    if (!bound.ok() && !IsOutgrown(record, bound.error())) return bound;
  }
  return {};
}

Expected<void> SessionRecord::ReplayContexts(Connection& connection,
                                             const Grace& grace) {
  for (auto& [number, record] : contexts) {
    record.lost.reset();
    Expected<void> done = ReplayContext(connection, number, record);
    if (done.ok()) continue;
    if (grace.IsPassing(connection, done.error())) return done;
    // Another client that has the model's bytes may be about to give them.
    if (!record.source->has_bytes() && grace.lasts()) {
      return done;
    }
    // It may be there in part, and a run must not find it: the ring does not
    // wait for the socket.
    wire::DestroyContext destroy{};
    destroy.context = number;
    Expected<void> destroyed =
        Done(Send(connection, wire::Verb::kDestroyContext, destroy));
    if (!destroyed.ok() && grace.IsPassing(connection, destroyed.error())) {
      return destroyed;
    }
    record.lost = std::move(done).error();
    record.lost->message =
        "rknnd was restarted and this context could not be made again: " +
        record.lost->message;
    Log(LogLevel::kError, record.lost->message);
  }
  return {};
}

}  // namespace rknnd::client
