// The program's side of one buffer: memory here whose other half lies on the
// board. Used by a bridge on its thread, while the program reads and writes the
// same memory: between a run's start and its end it does not touch what is
// bound to it.

#ifndef CLIENT_REMOTE_LOCAL_BUFFER_H_
#define CLIENT_REMOTE_LOCAL_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::client {

// Thread: bridge.
class LocalBuffer {
 public:
  // Memory of this machine, as the daemon would have made it.
  static base::Expected<std::shared_ptr<LocalBuffer>> Make(uint64_t size);
  // Memory that the program brought: a dma-buf, or a memfd that cannot shrink.
  static base::Expected<std::shared_ptr<LocalBuffer>> Import(
      base::UniqueFd fd, uint64_t expected_size);

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] uint64_t size() const { return mapping_.size(); }

  // Appends bytes of it, with the caches of a dma-buf in order. False when they
  // are not inside.
  bool AppendTo(std::string* to, uint64_t offset, uint64_t size) const;
  bool Store(uint64_t offset, std::span<const std::byte> bytes) const;

 private:
  LocalBuffer(base::UniqueFd fd, base::Mapping mapping, bool writable,
              bool is_dma_buf)
      : fd_(std::move(fd)),
        mapping_(std::move(mapping)),
        writable_(writable),
        is_dma_buf_(is_dma_buf) {}

  [[nodiscard]] bool Has(uint64_t offset, uint64_t size) const;

  const base::UniqueFd fd_;
  const base::Mapping mapping_;
  const bool writable_;
  const bool is_dma_buf_;
};

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_LOCAL_BUFFER_H_
