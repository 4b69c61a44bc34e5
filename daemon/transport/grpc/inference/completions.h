// Where the answers of the inference session's jobs arrive: workers leave them
// here without waiting for anybody, and the engine's thread takes them.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_COMPLETIONS_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_COMPLETIONS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/terms/types.h"

namespace rknnd::transport {

// A slot has one job at a time, so that each place below has one writer, and
// its reader comes before the next.
class Completions final : public core::CompletionSink {
 public:
  void Complete(const core::JobCompletion& completion) override;

  // Those that have arrived; waits for the first, or for Wake, for at most
  // `timeout`. Thread: the engine's.
  std::vector<core::JobCompletion> Take(base::Nanoseconds timeout);
  // Thread: any.
  void Wake();

 private:
  static constexpr uint32_t kBits = 64;

  std::array<core::JobCompletion, core::kJobSlots> places_;
  std::array<std::atomic<uint64_t>, core::kJobSlots / kBits> arrived_{};
  std::atomic<uint32_t> rings_{0};
  uint32_t seen_ = 0;  // of rings_, by the engine's thread
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_COMPLETIONS_H_
