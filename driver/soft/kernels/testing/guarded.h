// Memory for tests of what reads and writes where it should not: it ends where
// a page ends that cannot be read.

#ifndef DRIVER_SOFT_KERNELS_TESTING_GUARDED_H_
#define DRIVER_SOFT_KERNELS_TESTING_GUARDED_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace rknnd::soft::testing {

// Memory whose last byte is the last that can be read.
class Guarded {
 public:
  explicit Guarded(size_t size) : size_(size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_ = (size + page - 1) / page * page + page;
    base_ =
        static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + mapped_ - page, page, PROT_NONE);
    data_ = base_ + mapped_ - page - size;
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  size_t size_, mapped_ = 0;
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace rknnd::soft::testing

#endif  // DRIVER_SOFT_KERNELS_TESTING_GUARDED_H_
