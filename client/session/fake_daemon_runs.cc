// The fake daemon's ring: runs that are answered, held or taken back, on its
// one thread.

#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/posix/futex.h"
#include "base/values/half.h"
#include "client/include/rknn_api.h"
#include "client/session/fake_daemon.h"

namespace rknnd::client {
namespace {

using base::Code;

float ReadElement(const std::byte* from, uint32_t type, uint32_t i) {
  switch (type) {
    case RKNN_TENSOR_UINT8:
      return static_cast<float>(static_cast<uint8_t>(from[i]));
    case RKNN_TENSOR_FLOAT16: {
      base::Half half = 0;
      std::memcpy(&half, from + i * sizeof half, sizeof half);
      return base::HalfToFloat(half);
    }
    default: {
      float value = 0;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      return value;
    }
  }
}

void WriteElement(std::byte* to, uint32_t type, uint32_t i, float value) {
  if (type == RKNN_TENSOR_FLOAT16) {
    const base::Half half = base::FloatToHalf(value);
    std::memcpy(to + i * sizeof half, &half, sizeof half);
  } else {
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

wire::Bind FakeDaemon::BoundIn(Ports& ports, uint32_t set) {
  const wire::Bind& own = ports[{set, 0}];
  return own.buffer != 0 ? own : ports[{0, 0}];
}

void FakeDaemon::ServeRing(Session& session) {
  if (!reads_rings_) return;
  uint64_t rings = 0;
  [[maybe_unused]] const ssize_t drained =
      read(session.doorbell.get(), &rings, sizeof rings);
  auto* ring = reinterpret_cast<wire::Ring*>(session.ring.data());
  const uint32_t tail = ring->header.tail.load(std::memory_order_acquire);
  for (; session.head != tail; ++session.head) {
    const wire::Submission job =
        ring->submissions[session.head & (wire::kRingEntries - 1)];
    const bool run =
        job.operation == static_cast<uint32_t>(wire::RingOperation::kRun);
    if (run && begun_ == Begun::kAll) {
      ring->completions[job.slot].begun.store(job.sequence);
    }
    if (run) {
      const base::MutexLock lock(mutex_);
      ++seen_.runs;
      seen_.last_timeout_ms = job.timeout_ms;
      seen_.last_job = job;
      seen_.frames.push_back(job.frame);
      const auto context = session.contexts.find(job.context);
      seen_.inputs.push_back(
          context == session.contexts.end()
              ? 0
              : BoundIn(context->second.inputs, job.set).buffer);
    }
    if (!run) {
      Cancel(session, job);
    } else if (runs_ == Runs::kHold) {
      session.held.push_back(job);
    } else if (runs_ != Runs::kIgnore) {
      Complete(session, job);
    }
    ring->header.head.store(session.head + 1, std::memory_order_release);
    run_seen_.notify_all();
  }
  ReleaseHeld(session);
}

void FakeDaemon::ReleaseHeld(Session& session) {
  while (to_release_ > 0 && !session.held.empty()) {
    --to_release_;
    const wire::Submission job = session.held.front();
    session.held.erase(session.held.begin());
    Complete(session, job);
  }
}

// Of the jobs that are held; an entry of the ring is answered with how many.
void FakeDaemon::Cancel(Session& session, const wire::Submission& job) {
  uint32_t count = 0;
  for (size_t i = 0; i < session.held.size();) {
    const wire::Submission held = session.held[i];
    if (held.context != job.context ||
        (job.frame != 0 && held.frame != job.frame)) {
      ++i;
      continue;
    }
    session.held.erase(session.held.begin() + static_cast<ptrdiff_t>(i));
    ++count;
    Finish(session, held, Code::kCancelled, "taken back", 0);
  }
  if (job.sequence != 0) Finish(session, job, Code::kOk, "", count);
}

void FakeDaemon::Complete(Session& session, const wire::Submission& job) {
  std::string failure;
  Code code = Code::kOk;
  if (runs_ == Runs::kFail) {
    code = Code::kInternal;
    failure = "told to fail";
  } else if (runs_ == Runs::kDrain) {
    code = Code::kUnavailable;
    failure = "takes no new jobs";
  }
  const auto context = session.contexts.find(job.context);
  if (context == session.contexts.end()) {
    code = Code::kNotFound;
    failure = "no such context";
  } else if (code == Code::kOk) {
    const wire::Bind in = BoundIn(context->second.inputs, job.set);
    const wire::Bind out = BoundIn(context->second.outputs, job.set);
    if (in.buffer == 0 || out.buffer == 0) {
      code = Code::kFailedPrecondition;
      failure = "not bound";
    } else {
      const std::byte* from =
          session.buffers[in.buffer].mapping.data() + in.offset;
      std::byte* to = session.buffers[out.buffer].mapping.data() + out.offset;
      for (uint32_t i = 0; i < kFakeElements; ++i) {
        WriteElement(to, out.type, i, ReadElement(from, in.type, i));
      }
    }
  }
  Finish(session, job, code, failure, 0);
}

void FakeDaemon::Finish(Session& session, const wire::Submission& job,
                        Code code, const std::string& failure, uint32_t count) {
  auto* ring = reinterpret_cast<wire::Ring*>(session.ring.data());
  wire::Completion& completion = ring->completions[job.slot];
  completion.code = static_cast<int32_t>(code);
  completion.frame = job.frame;
  completion.queue_ns = 1000;
  completion.run_ns = 5000;
  completion.total_ns = 7000;
  completion.core = 1;
  completion.count = count;
  completion.text_size = static_cast<uint32_t>(failure.size());
  std::memcpy(ring->texts[job.slot].text, failure.data(), failure.size());
  completion.sequence.store(job.sequence, std::memory_order_release);
  base::FutexWakeOne(&completion.sequence);
  for (const uint32_t number : {job.fence_out, job.notify}) {
    const auto fence = session.fences.find(number);
    if (number == 0 || fence == session.fences.end()) continue;
    const char byte = 1;
    [[maybe_unused]] const ssize_t sent = send(
        fence->second.get(), &byte, sizeof byte, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

}  // namespace rknnd::client
