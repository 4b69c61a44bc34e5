// A session's contexts by the numbers that its client chose, also those whose
// model is still on its way, and what is asked about one of them.

#ifndef DAEMON_CORE_SESSIONS_CONTEXT_TABLE_H_
#define DAEMON_CORE_SESSIONS_CONTEXT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/contexts/context.h"
#include "daemon/core/contexts/layer_dump.h"
#include "daemon/core/reports/perf_report.h"
#include "daemon/core/scheduling/admission.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

//   (free) --Expect--> expected --TakeExpected, Add--> there --Drop--> (free)
//                          `-------------Drop------------------------> (free)
// Thread: loop.
class ContextTable {
 public:
  // `device` outlives it.
  explicit ContextTable(const driver::DeviceInfo& device) : device_(device) {}

  // One that no other change of this session has had.
  uint64_t NewToken() { return next_token_++; }

  // The answer tells this context from a later one of the same number.
  uint64_t Expect(uint32_t number);
  [[nodiscard]] bool IsExpected(uint32_t number, uint64_t token) const;
  // Whether it was still expected; not any more then.
  bool TakeExpected(uint32_t number, uint64_t token);
  void Add(uint32_t number, Context context);
  void Drop(uint32_t number);
  void Clear();

  // Null: there is none, or it is only expected.
  [[nodiscard]] Context* Find(uint32_t number);
  [[nodiscard]] const Context* Find(uint32_t number) const;
  // NOT_FOUND in place of null.
  [[nodiscard]] absl::StatusOr<Context*> Get(uint32_t number);
  [[nodiscard]] absl::StatusOr<const Context*> Get(uint32_t number) const;
  // The same of those that memory can be bound to: FAILED_PRECONDITION for one
  // that only answers queries.
  [[nodiscard]] absl::StatusOr<Context*> GetForBinding(uint32_t number);

  [[nodiscard]] bool IsThere(uint32_t number) const;
  // Whether it is there or expected.
  [[nodiscard]] bool IsTaken(uint32_t number) const;
  [[nodiscard]] uint32_t size() const;
  // With those that are expected.
  [[nodiscard]] uint32_t taken() const;
  [[nodiscard]] const std::map<uint32_t, Context>& all() const {
    return contexts_;
  }
  [[nodiscard]] std::map<uint32_t, Context>& all() { return contexts_; }

  // The per-layer text of the last run; says so when nothing was recorded.
  [[nodiscard]] absl::StatusOr<std::string> PerfDetail(uint32_t number) const;
  // The rows of that text; they point into the context's model.
  [[nodiscard]] absl::StatusOr<std::vector<LayerRow>> PerfLayers(
      uint32_t number) const;
  // The model's layers in the shape that is chosen, whether they ran or not;
  // they are the context's model's.
  [[nodiscard]] absl::StatusOr<std::span<const driver::LayerInfo>> ModelLayers(
      uint32_t number) const;
  // What the model is and where its tensors lie, as text.
  [[nodiscard]] absl::StatusOr<std::string> ModelDetail(uint32_t number) const;
  // What the job that a dump was asked of has left, once.
  [[nodiscard]] absl::StatusOr<DumpReport> TakeDump(uint32_t number) const;

  // Streams that room is kept for, but that of one context.
  void AppendStreams(uint32_t but, std::vector<Stream>* streams) const;
  // Weights and internal memory counted once per context.
  [[nodiscard]] uint64_t UnsharedModelBytes() const;

 private:
  const driver::DeviceInfo& device_;
  uint64_t next_token_ = 1;
  std::map<uint32_t, uint64_t> expected_;  // and their tokens
  std::map<uint32_t, Context> contexts_;
};

// Of the shapes that the next run of `context` has.
uint32_t RowOf(const Context& context);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_CONTEXT_TABLE_H_
