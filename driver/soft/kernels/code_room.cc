// See code_room.h. mmap and munmap are called by all of the process, by oneDNN
// as their generators of code (Xbyak) call them.

#include "driver/soft/kernels/code_room.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/posix/mapping.h"
#include "base/posix/mutex.h"

namespace rknnd::soft {
namespace {

// Layers of the networks we know ask for up to 2 MiB, and the kernels that
// oneDNN makes once, in the first job, for 6 MiB.
constexpr size_t kRoom = size_t{32} << 20;

struct Room {
  base::Mutex mutex;
  std::byte* next RKNND_GUARDED_BY(mutex) = nullptr;
  size_t left RKNND_GUARDED_BY(mutex) = 0;
};
constinit Room room;

// Where oneDNN's code is. Constant once KeepCodeRoom has been called.
constinit std::atomic<uintptr_t> dnnl_begin = 0;
constinit std::atomic<uintptr_t> dnnl_end = 0;

int FindDnnl(dl_phdr_info* library, size_t /*size*/, void* /*unused*/) {
  if (std::strstr(library->dlpi_name, "libdnnl") == nullptr) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& part = library->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    dnnl_end = library->dlpi_addr + part.p_vaddr + part.p_memsz;
    dnnl_begin = library->dlpi_addr + part.p_vaddr;
  }
  return 1;
}

bool IsDnnl(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  return at >= dnnl_begin.load(std::memory_order_relaxed) &&
         at < dnnl_end.load(std::memory_order_relaxed);
}

void* TakeRoom(size_t size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size = (size + page - 1) / page * page;
  base::MutexLock lock(room.mutex);
  if (size > room.left) return MAP_FAILED;
  std::byte* const taken = room.next;
  room.next += size;
  room.left -= size;
  return taken;
}

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

base::Expected<void> KeepCodeRoom() {
  if (dnnl_begin == 0) dl_iterate_phdr(FindDnnl, nullptr);
  base::MutexLock lock(room.mutex);
  if (room.left == kRoom) return {};
  void* const fresh = mmap(nullptr, kRoom, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) {
    return base::ErrnoError(errno, "map room for the code of kernels");
  }
  // What of the last one is taken is its takers'.
  if (room.left > 0) base::Unmap(room.next, room.left);
  room.next = static_cast<std::byte*>(fresh);
  room.left = kRoom;
  return {};
}

}  // namespace rknnd::soft

// The names that oneDNN asks for, which is without 64: our own calls, with
// _FILE_OFFSET_BITS, go past here.
#define RKNND_EXPORTED(name) \
  asm(name) __attribute__((visibility("default"), used))

extern "C" {
void* MapForAll(void* address, size_t size, int access, int flags, int fd,
                long offset) noexcept RKNND_EXPORTED("mmap");
int UnmapForAll(void* address, size_t size) noexcept RKNND_EXPORTED("munmap");
}

void* MapForAll(void* address, size_t size, int access, int flags, int fd,
                long offset) noexcept {
  static auto* const real = rknnd::soft::Next<decltype(MapForAll)>("mmap");
  void* const mapped = real(address, size, access, flags, fd, offset);
  if (mapped != MAP_FAILED || address != nullptr || fd != -1 ||
      !rknnd::soft::IsDnnl(__builtin_return_address(0))) {
    return mapped;
  }
  return rknnd::soft::TakeRoom(size);
}

int UnmapForAll(void* address, size_t size) noexcept {
  static auto* const real = rknnd::soft::Next<decltype(UnmapForAll)>("munmap");
  const int code = real(address, size);
  if (code == 0 || errno != ENOMEM ||
      !rknnd::soft::IsDnnl(__builtin_return_address(0))) {
    return code;
  }
  rknnd::base::Unmap(static_cast<std::byte*>(address), size);
  return 0;
}
