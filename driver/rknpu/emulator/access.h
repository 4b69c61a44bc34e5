// The memory of a job as one task reaches for it: each access names the
// register that its address comes from, the first one that is not allowed ends
// the task with that name, and so does a job that was stopped. Bytes are
// counted for reports. Used by the engines; one object a task, one thread.

#ifndef DRIVER_RKNPU_EMULATOR_ACCESS_H_
#define DRIVER_RKNPU_EMULATOR_ACCESS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/emulator/memory.h"

namespace rknnd::rknpu {

class Access {
 public:
  // Both outlive the object.
  Access(const Memory& memory, const RunOptions& options);

  // `size` bytes from `address`; null: not allowed, status() says why.
  const std::byte* Read(uint64_t address, uint64_t size, uint16_t reg);
  std::byte* Write(uint64_t address, uint64_t size, uint16_t reg);

  // The first of `size` bytes from `address`, if they lie in one range (which
  // may be written, for `write`); else null, and nothing failed.
  [[nodiscard]] std::byte* Whole(int64_t address, uint64_t size,
                                 bool write) const;

  // Whether the task may go on: nothing failed, nobody stopped the job. Asked
  // in every loop that may take longer than some milliseconds.
  bool GoesOn();
  void Fail(absl::Status status);
  [[nodiscard]] bool ok() const { return status_.ok(); }
  [[nodiscard]] const absl::Status& status() const { return status_; }

  // Refuses sizes that the job's memory cannot hold, which bounds the work
  // that a few registers can ask for.
  bool Holds(uint64_t bytes, uint16_t reg);

 private:
  absl::Status Outside(absl::string_view what, uint64_t address, uint64_t size,
                       uint16_t reg) const;

  const Memory& memory_;
  const RunOptions& options_;
  absl::Status status_;
  uint64_t total_ = 0;
  // Where the last access was: most others are there too.
  const Region* last_read_ = nullptr;
  const Region* last_written_ = nullptr;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_ACCESS_H_
