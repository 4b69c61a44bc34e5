// The outputs of all layers of one run, in a memfd for the client that asked
// (rknnctl dump, RKNN_LOG_LEVEL=5). Made by a session, filled by the worker
// that runs the job, taken by the session.
//
//   armed --the context's next job--> filled --Take--> taken
//
// What it holds is charged to the session until the context's next dump or its
// end: the client has the memfd by then, and may keep it.

#ifndef DAEMON_CORE_CONTEXTS_LAYER_DUMP_H_
#define DAEMON_CORE_CONTEXTS_LAYER_DUMP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/accounts/ledger.h"
#include "driver/device.h"

namespace rknnd::core {

struct DumpedTensor {
  uint32_t layer = 0;
  std::string name;
  driver::TensorType type = driver::TensorType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t offset = 0, size = 0;  // in the memfd
};

// What a client gets. The memfd is sealed against all change.
struct Dump {
  base::UniqueFd bytes;
  uint64_t size = 0;
  std::vector<DumpedTensor> tensors;
};

// With the model, which names the layers and lives as long as the context.
struct DumpReport {
  Dump dump;
  const driver::ProgramInfo* program = nullptr;
};

// Thread: one at a time, handed over under RunContext's lock.
class LayerDump final : public driver::LayerSink {
 public:
  // At most `limit` bytes, charged to `account` as they come.
  static absl::StatusOr<std::shared_ptr<LayerDump>> Create(Account& account,
                                                           uint64_t limit);

  // The row of shapes that is about to run. Thread: worker.
  void set_row(uint32_t row) { row_ = row; }
  [[nodiscard]] uint32_t row() const { return row_; }
  // RESOURCE_EXHAUSTED names the limit. Thread: worker.
  absl::Status OnLayer(const driver::LayerTensor& tensor) override;

  // Once, after the run. Thread: loop.
  absl::StatusOr<Dump> Take();

 private:
  LayerDump(base::UniqueFd bytes, Charge charge, uint64_t limit)
      : bytes_(std::move(bytes)), charge_(std::move(charge)), limit_(limit) {}

  base::UniqueFd bytes_;
  Charge charge_;
  const uint64_t limit_;
  uint32_t row_ = 0;
  uint64_t size_ = 0;
  std::vector<DumpedTensor> tensors_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_CONTEXTS_LAYER_DUMP_H_
