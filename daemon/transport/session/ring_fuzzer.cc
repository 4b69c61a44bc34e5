// The ring as a hostile client writes it: the input is a list of stores into
// the shared memory with drains between them.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/posix/mapping.h"
#include "daemon/transport/session/ring_endpoint.h"

namespace rknnd::transport {
namespace {

// Holds the endpoint to what it promises core.
class CheckingGate final : public core::JobGate {
 public:
  absl::Status Submit(const core::JobSubmission& submission) override {
    if (submission.slot >= wire::kRingEntries || submission.sequence == 0) {
      std::abort();
    }
    // Some are refused, which ends the session.
    if (submission.context % 16 == 15) {
      return absl::FailedPreconditionError("slot in flight");
    }
    return absl::OkStatus();
  }
};

// One store. An offset beyond the ring means: drain now.
struct Step {
  uint16_t word;
  uint32_t value;
} __attribute__((packed));

void Run(const uint8_t* data, size_t size) {
  auto endpoint = RingEndpoint::Create();
  if (!endpoint.ok()) return;
  (*endpoint)->Open(std::make_shared<CheckingGate>());
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
    const RingEndpoint::Drained drained = (*endpoint)->Drain();
    if (drained.entries > wire::kRingEntries) std::abort();
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
