// Memory that program and device share: one buffer of the target with this
// process's view of it. Behind rknn_create_mem and behind the copies that
// rknn_inputs_set and rknn_outputs_get make.

#ifndef CLIENT_RKNNRT_BUFFER_H_
#define CLIENT_RKNNRT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/posix/mapping.h"
#include "base/values/expected.h"
#include "client/session/target.h"

namespace rknnd::client {

enum class CpuAccess : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };

// Given back to the target when destroyed. Thread: any, one at a time.
class Buffer {
 public:
  // Zeroed memory from the target's heap, mapped here.
  static base::Expected<std::unique_ptr<Buffer>> Allocate(
      std::shared_ptr<Target> target, uint64_t size, uint32_t flags);
  // Memory the program brought: `size` bytes at `offset` of `fd`. Mapped only
  // when the program has no mapping itself.
  static base::Expected<std::unique_ptr<Buffer>> Import(
      std::shared_ptr<Target> target, int fd, uint64_t offset, uint64_t size,
      bool map);
  // Memory by its address on the SoC's bus: it has no fd and is not mapped.
  static base::Expected<std::unique_ptr<Buffer>> ImportPhysical(
      std::shared_ptr<Target> target, uint64_t address, uint64_t size);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] uint64_t offset() const { return offset_; }
  [[nodiscard]] uint64_t size() const { return size_; }
  // From the start of the fd; empty when the program has the mapping.
  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }
  [[nodiscard]] const Target* target() const { return target_.get(); }
  // Of all that the fd leads to, from its start.
  [[nodiscard]] base::Expected<wire::BufferKey> Key() const {
    return target_->GetBufferKey(number_);
  }

  // Makes what the CPU is about to read, or has written, current in a dma-buf.
  // Other kinds of memory are coherent: nothing to do, and no error.
  [[nodiscard]] base::Expected<void> Synchronize(CpuAccess access) const;
  // Around reading or writing bytes(): before and after.
  void BeginCpuAccess(CpuAccess access) const;
  void EndCpuAccess(CpuAccess access) const;

 private:
  Buffer() = default;

  std::shared_ptr<Target> target_;
  uint32_t number_ = 0;
  int fd_ = -1;  // the target's
  uint64_t offset_ = 0;
  uint64_t size_ = 0;
  bool dma_buf_ = false;
  base::Mapping mapping_;
};

// The bytes that the kernel says an fd has; 0 where it is no memory.
base::Expected<uint64_t> SizeOfMemory(int fd);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_BUFFER_H_
