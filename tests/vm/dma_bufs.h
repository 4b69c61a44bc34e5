// The dma-bufs that a program meets on a board, made by what Debian's kernel
// has: of plain memory, by a display or GPU, by a camera. For the giver, a
// process that tests in the guest start; what fails is an exception, which ends
// it.

#ifndef TESTS_VM_DMA_BUFS_H_
#define TESTS_VM_DMA_BUFS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"

namespace rknnd::vm {

// Mapped with what the fd allows. Thread: any, one at a time.
class DmaBuf {
 public:
  DmaBuf(base::UniqueFd fd, size_t size, base::Mapping::Access access);

  [[nodiscard]] int fd() const { return fd_.get(); }
  // The first bytes to a file, or from one. The kernel is told of the CPU's
  // access, as a careful program does.
  void Save(const std::string& path, size_t size) const;
  void Load(const std::string& path);

 private:
  base::UniqueFd fd_;
  base::Mapping mapping_;
};

std::vector<DmaBuf> MakeUdmabufs(size_t size, int count);
// vgem's dumb buffers, handed out as PRIME does it.
std::vector<DmaBuf> MakePrimeBuffers(size_t size, int count);

// vivid, which draws test pictures into buffers of its own. Thread: any, one
// at a time.
class Camera {
 public:
  struct Options {
    uint32_t width = 0, height = 0;
    std::string fourcc;  // "RGB3", "NV12"
    int buffers = 4;
    bool writable = true;  // in the hands of others
  };
  // Films from then on.
  explicit Camera(const Options& options);

  [[nodiscard]] std::vector<DmaBuf>& buffers() { return buffers_; }
  [[nodiscard]] size_t frame_size() const { return frame_size_; }
  // Waits for the next picture: the number of its buffer, which the camera
  // leaves alone until it has it back.
  uint32_t NextFrame();
  void GiveBack(uint32_t buffer);

 private:
  base::UniqueFd node_;
  std::vector<DmaBuf> buffers_;
  size_t frame_size_ = 0;
};

}  // namespace rknnd::vm

#endif  // TESTS_VM_DMA_BUFS_H_
