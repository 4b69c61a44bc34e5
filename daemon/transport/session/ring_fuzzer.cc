// The ring as a hostile client writes it: the input is a list of stores into
// the shared memory, any word of it, with what workers do between them: drains,
// looks by one that waits awake, and answers, which look at who sleeps. The
// first byte says where the counters begin, as they wrap.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/posix/mapping.h"
#include "daemon/transport/session/ring/ring_endpoint.h"

namespace rknnd::transport {
namespace {

// Holds the endpoint to what it promises core.
class CheckingGate final : public core::JobGate {
 public:
  absl::Status Submit(const core::JobSubmission& submission) override {
    if (submission.slot >= wire::kRingEntries || submission.sequence == 0 ||
        submission.deadline < 0) {
      std::abort();
    }
    last = submission;
    // Some are refused, which ends the session.
    if (submission.context % 16 == 15) {
      return absl::FailedPreconditionError("slot in flight");
    }
    return absl::OkStatus();
  }
  core::JobSubmission last;
};

// One store. An offset beyond the ring means: drain now.
struct Step {
  uint16_t word;
  uint32_t value;
} __attribute__((packed));

void Run(const uint8_t* data, size_t size) {
  if (size == 0) return;
  // Half of all inputs begin less than a ring before the wrap.
  const uint32_t first = *data < 128 ? 0 : uint32_t{0} - (*data - 127);
  ++data;
  --size;
  auto endpoint = RingEndpoint::Create(first);
  if (!endpoint.ok()) return;
  const auto gate = std::make_shared<CheckingGate>();
  (*endpoint)->Open(gate, /*marks_sleepers=*/first % 2 == 0);
  auto mapping =
      base::Mapping::OfFd((*endpoint)->memory_fd(), 0, wire::kRingBytes,
                          base::Mapping::Access::kReadWrite);
  if (!mapping.ok()) return;
  for (; size >= sizeof(Step); data += sizeof(Step), size -= sizeof(Step)) {
    Step step;
    std::memcpy(&step, data, sizeof step);
    const size_t offset = step.word * sizeof step.value;
    if (offset < wire::kRingBytes) {
      const uint32_t value = step.value;
      std::memcpy(mapping->data() + offset, &value, sizeof value);
      continue;
    }
    const bool polls = (*endpoint)->BeginPolling();
    const bool before = (*endpoint)->HasEntries();
    // Nobody else is here: what a look sees, the last look sees too.
    if (polls && (*endpoint)->EndPolling() != before) std::abort();
    const RingEndpoint::Drained drained = (*endpoint)->Drain();
    if (drained.entries > wire::kRingEntries) std::abort();
    if (drained.entries > 0 && !before) std::abort();
    if (drained.quiet > drained.entries) std::abort();
    core::JobCompletion answer;
    answer.slot = gate->last.slot;
    answer.sequence = gate->last.sequence;
    (*endpoint)->Complete(answer);
    if (!drained.violation.ok() && (*endpoint)->Drain().entries != 0) {
      std::abort();
    }
  }
  static_cast<void>((*endpoint)->Drain());
}

}  // namespace
}  // namespace rknnd::transport

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rknnd::transport::Run(data, size);
  return 0;
}
