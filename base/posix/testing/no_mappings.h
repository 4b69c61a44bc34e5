// A process that has nearly all the mappings that the kernel allows it.

#ifndef BASE_POSIX_TESTING_NO_MAPPINGS_H_
#define BASE_POSIX_TESTING_NO_MAPPINGS_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "base/posix/map_count.h"

namespace rknnd::base::testing {

// As long as it exists, at most `left` more can be made.
class NoMappings {
 public:
  explicit NoMappings(uint64_t left) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const uint64_t have = CountMappings() + left;
    const uint64_t missing = MostMappings() > have ? MostMappings() - have : 0;
    size_ = static_cast<size_t>(missing + 1) * page;
    data_ = static_cast<std::byte*>(
        mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (data_ == MAP_FAILED) {
      data_ = nullptr;
      return;
    }
    // Each second page makes two of one.
    for (size_t at = page; at < size_; at += 2 * page) {
      if (mprotect(data_ + at, page, PROT_READ) != 0) break;
    }
  }
  ~NoMappings() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  NoMappings(const NoMappings&) = delete;
  NoMappings& operator=(const NoMappings&) = delete;

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace rknnd::base::testing

#endif  // BASE_POSIX_TESTING_NO_MAPPINGS_H_
