// Buffers of one session, by the numbers its client chose; they are valid in
// this session only. Called by the session with numbers, sizes and fds that
// nobody has checked yet.

#ifndef DAEMON_CORE_BUFFER_TABLE_H_
#define DAEMON_CORE_BUFFER_TABLE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/ledger.h"
#include "daemon/core/types.h"
#include "driver/device.h"
#include "driver/memory/heap.h"
#include "driver/memory/import.h"

namespace rknnd::core {

// Memory behind one fd. Lives as long as its number, a binding or a job needs
// it; the last of them may be a worker. Immutable. Thread: any.
class Buffer {
 public:
  struct Parts {
    // Destroyed from the last to the first: unmapped, closed, given back.
    std::shared_ptr<std::atomic<uint32_t>> live;
    Charge charge;
    base::UniqueFd fd;
    std::unique_ptr<driver::Memory> memory;
    uint64_t size = 0;
    std::string heap;
    bool imported = false;
    bool read_only = false;  // the fd allows no writing: inputs only
    driver::MemoryIdentity identity;
  };
  explicit Buffer(Parts parts);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] driver::Memory* memory() const { return parts_.memory.get(); }
  [[nodiscard]] uint64_t size() const { return parts_.size; }
  [[nodiscard]] const std::string& heap() const { return parts_.heap; }
  [[nodiscard]] bool imported() const { return parts_.imported; }
  [[nodiscard]] bool read_only() const { return parts_.read_only; }
  [[nodiscard]] const driver::MemoryIdentity& identity() const {
    return parts_.identity;
  }

 private:
  Parts parts_;
};

// Thread: loop. Import() takes the fd even when it fails.
class BufferTable {
 public:
  BufferTable(driver::Device* device, const driver::Heaps* heaps,
              std::shared_ptr<Account> account, const SessionLimits& limits);

  absl::StatusOr<BufferInfo> Allocate(uint32_t number, uint64_t size,
                                      uint32_t flags);
  absl::StatusOr<BufferInfo> Import(uint32_t number, base::UniqueFd fd,
                                    uint64_t expected_size);
  absl::Status Release(uint32_t number);
  void Clear() { buffers_.clear(); }

  [[nodiscard]] absl::StatusOr<std::shared_ptr<Buffer>> Find(
      uint32_t number) const;
  [[nodiscard]] const std::map<uint32_t, std::shared_ptr<Buffer>>& all() const {
    return buffers_;
  }

 private:
  [[nodiscard]] absl::Status CheckNew(uint32_t number) const;
  [[nodiscard]] absl::Status CheckSize(uint32_t number, uint64_t size) const;

  driver::Device* const device_;
  const driver::Heaps* const heaps_;
  const std::shared_ptr<Account> account_;
  const SessionLimits limits_;
  // Buffers that exist, with or without a number: each is a mapping and an fd
  // of this process.
  const std::shared_ptr<std::atomic<uint32_t>> live_;
  std::map<uint32_t, std::shared_ptr<Buffer>> buffers_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_BUFFER_TABLE_H_
