// The one owner of a memory mapping.

#ifndef BASE_POSIX_MAPPING_H_
#define BASE_POSIX_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/values/expected.h"

namespace rknnd::base {

// Unmaps whole pages, for good: what the kernel refuses to take back now, as
// the area around them would become two and there are too many already, it is
// offered again with each further call. Thread: any.
void Unmap(std::byte* data, size_t size);

// Thread: any, one at a time.
class Mapping {
 public:
  enum class Access { kRead, kReadWrite };

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  // Maps `size` bytes of `fd` from `offset` (page aligned), shared. A file
  // sealed against writing can be mapped kRead only.
  static Expected<Mapping> OfFd(int fd, uint64_t offset, size_t size,
                                Access access);
  // Zeroed private memory of this process alone.
  static Expected<Mapping> Anonymous(size_t size);

  // Gives back all but the first `size` bytes, up to whole pages: size() is
  // then what is still mapped.
  void ShrinkTo(size_t size);
  // No store through this mapping from now on.
  Expected<void> MakeReadOnly();
  // Faults every page in now, so that lack of memory, or a file shorter than
  // the mapping, is an error here and not a signal later. For file mappings a
  // hole is filled.
  Expected<void> Populate(Access access);
  // What Populate does for files where the kernel has no better way (before
  // Linux 5.14, and for device memory); public for its test.
  Expected<void> PopulateByReading() const;

  // So many there are now, each an area of memory in the kernel's count
  // (map_count.h). Thread: any.
  [[nodiscard]] static uint64_t Live();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool valid() const { return data_ != nullptr; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  Mapping(std::byte* data, size_t size, bool of_file);

  std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool of_file_ = false;
};

}  // namespace rknnd::base

#endif  // BASE_POSIX_MAPPING_H_
