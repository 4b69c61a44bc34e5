#include "driver/soft/testing/failing_maps.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>

namespace rknnd::soft::testing {
namespace {

std::atomic<MapCall> failing{MapCall::kMmap};
std::atomic<uint64_t> calls{0}, begin{0}, end{0}, failed{0};

bool Fails(MapCall call) {
  if (end == 0 || call != failing) return false;
  const uint64_t number = ++calls;
  if (number < begin || number >= end) return false;
  ++failed;
  errno = ENOMEM;
  return true;
}

template <class Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// Whatever the tree's own libraries hide.
#define RKNND_EXPORTED __attribute__((visibility("default")))

RKNND_EXPORTED void FailMaps(MapCall call, uint64_t first, uint64_t count) {
  failing = call;
  calls = failed = 0;
  begin = first;
  end = first + count;
}

RKNND_EXPORTED uint64_t StopFailingMaps() {
  end = 0;
  return failed;
}

extern "C" {

// Both names: which of them is asked for is up to who asks.
RKNND_EXPORTED void* Map(void* address, size_t size, int access, int flags,
                         int fd, long offset) noexcept asm("mmap");
RKNND_EXPORTED void* Map64(void* address, size_t size, int access, int flags,
                           int fd, long offset) noexcept asm("mmap64");

void* Map(void* address, size_t size, int access, int flags, int fd,
          long offset) noexcept {
  static auto* const real = Real<decltype(Map)>("mmap");
  if (Fails(MapCall::kMmap)) return MAP_FAILED;
  return real(address, size, access, flags, fd, offset);
}

void* Map64(void* address, size_t size, int access, int flags, int fd,
            long offset) noexcept {
  return Map(address, size, access, flags, fd, offset);
}

RKNND_EXPORTED int munmap(void* address, size_t size) noexcept {
  static auto* const real = Real<decltype(munmap)>("munmap");
  return Fails(MapCall::kMunmap) ? -1 : real(address, size);
}

RKNND_EXPORTED int memfd_create(const char* name, unsigned flags) noexcept {
  static auto* const real = Real<decltype(memfd_create)>("memfd_create");
  return Fails(MapCall::kMemfd) ? -1 : real(name, flags);
}

}  // extern "C"

}  // namespace rknnd::soft::testing
