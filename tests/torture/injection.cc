// The injection library, preloaded into the daemon and into checking clients of
// a fault campaign: system calls of the C library that fail now and then, a
// disk that is full, and a clock that is wrong. What libc calls by itself
// (malloc's mmap, a thread's stack) goes past it, as these names are not asked
// for there. Any thread of the process; takes no locks and allocates nothing.

#include "tests/torture/injection.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

using rknnd::torture::InjectionPage;

InjectionPage* page = nullptr;

// By system calls: the names that this library has are not ready yet.
__attribute__((constructor)) void FindPage() {
  const char* const path = std::getenv(rknnd::torture::kInjectionVariable);
  if (path == nullptr) return;
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  // The kernel's numbers are a pointer here.
  const long at = syscall(SYS_mmap, nullptr, sizeof(InjectionPage),
                          PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (at != -1) page = reinterpret_cast<InjectionPage*>(at);  // NOLINT
}

template <class Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool Fails(uint32_t call) {
  if (page == nullptr) return false;
  const uint32_t one_in = page->one_in.load(std::memory_order_relaxed);
  if (one_in == 0 || (page->calls.load() & call) == 0) return false;
  // Dice that all threads throw: any order of them is as good as another.
  const uint32_t thrown =
      page->random.fetch_add(2654435761U, std::memory_order_relaxed);
  if ((thrown ^ (thrown >> 15)) % one_in != 0) return false;
  page->failed.fetch_add(1);
  return true;
}

bool IsBelowFolder(const char* path) {
  const size_t size = std::strlen(page->folder);
  return size != 0 && std::strncmp(path, page->folder, size) == 0;
}

bool DiskIsFull() { return page != nullptr && page->disk_full.load() != 0; }

bool DiskIsFullFor(int fd) {
  if (!DiskIsFull()) return false;
  // "/proc/self/fd/", digits.
  char link[32] = "/proc/self/fd/";
  size_t end = std::strlen(link);
  char digits[12];
  int count = 0;
  for (int rest = fd; rest > 0 || count == 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) link[end++] = digits[--count];
  link[end] = '\0';
  char path[512] = {};
  if (readlink(link, path, sizeof path - 1) <= 0 || !IsBelowFolder(path)) {
    return false;
  }
  page->failed.fetch_add(1);
  return true;
}

int Failed(int error) {
  errno = error;
  return -1;
}

int Open(int folder, const char* path, int flags, mode_t mode) {
  if (Fails(rknnd::torture::kFailOpen)) return Failed(EMFILE);
  if ((flags & O_CREAT) != 0 && DiskIsFull() && IsBelowFolder(path)) {
    page->failed.fetch_add(1);
    return Failed(ENOSPC);
  }
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

bool HasMode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

}  // namespace

#define RKNND_INJECTED extern "C" __attribute__((visibility("default")))

// Programs with _FILE_OFFSET_BITS=64 ask for the names that end in 64.
RKNND_INJECTED void* mmap64(void* address, size_t size, int access, int flags,
                            int fd, off64_t offset) noexcept {
  if (Fails(rknnd::torture::kFailMmap)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  static auto* const real = Real<decltype(mmap64)>("mmap64");
  return real(address, size, access, flags, fd, offset);
}

RKNND_INJECTED void* mmap(void* address, size_t size, int access, int flags,
                          int fd, off_t offset) noexcept {
  return mmap64(address, size, access, flags, fd, offset);
}

RKNND_INJECTED int munmap(void* address, size_t size) noexcept {
  if (Fails(rknnd::torture::kFailMunmap)) return Failed(ENOMEM);
  static auto* const real = Real<decltype(munmap)>("munmap");
  return real(address, size);
}

// NOLINTNEXTLINE(cert-dcl50-cpp): libc's own signature
RKNND_INJECTED void* mremap(void* address, size_t size, size_t wanted,
                            int flags, ...) noexcept {
  va_list rest;
  va_start(rest, flags);
  void* const place = va_arg(rest, void*);
  va_end(rest);
  if (Fails(rknnd::torture::kFailMremap)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  static auto* const real = Real<decltype(mremap)>("mremap");
  return real(address, size, wanted, flags, place);
}

RKNND_INJECTED int pthread_create(pthread_t* thread,
                                  const pthread_attr_t* attributes,
                                  void* (*run)(void*), void* argument) {
  if (Fails(rknnd::torture::kFailThread)) return EAGAIN;
  static auto* const real = Real<decltype(pthread_create)>("pthread_create");
  return real(thread, attributes, run, argument);
}

RKNND_INJECTED int memfd_create(const char* name, unsigned flags) noexcept {
  if (Fails(rknnd::torture::kFailMemfd)) return Failed(ENOMEM);
  static auto* const real = Real<decltype(memfd_create)>("memfd_create");
  return real(name, flags);
}

RKNND_INJECTED int accept4(int socket, sockaddr* address, socklen_t* size,
                           int flags) {
  if (Fails(rknnd::torture::kFailAccept)) return Failed(EMFILE);
  static auto* const real = Real<decltype(accept4)>("accept4");
  return real(socket, address, size, flags);
}

RKNND_INJECTED int socketpair(int domain, int type, int protocol,
                              int pair[2]) noexcept {
  if (Fails(rknnd::torture::kFailSockets)) return Failed(EMFILE);
  static auto* const real = Real<decltype(socketpair)>("socketpair");
  return real(domain, type, protocol, pair);
}

RKNND_INJECTED int eventfd(unsigned count, int flags) noexcept {
  if (Fails(rknnd::torture::kFailEventfd)) return Failed(EMFILE);
  static auto* const real = Real<int(unsigned, int)>("eventfd");
  return real(count, flags);
}

// NOLINTBEGIN(cert-dcl50-cpp): libc's own signatures
#define RKNND_MODE_AFTER(flags)  \
  mode_t mode = 0;               \
  if (HasMode(flags)) {          \
    va_list rest;                \
    va_start(rest, flags);       \
    mode = va_arg(rest, mode_t); \
    va_end(rest);                \
  }

RKNND_INJECTED int open(const char* path, int flags, ...) {
  RKNND_MODE_AFTER(flags)
  return Open(AT_FDCWD, path, flags, mode);
}

RKNND_INJECTED int open64(const char* path, int flags, ...) {
  RKNND_MODE_AFTER(flags)
  return Open(AT_FDCWD, path, flags, mode);
}

RKNND_INJECTED int openat(int folder, const char* path, int flags, ...) {
  RKNND_MODE_AFTER(flags)
  return Open(folder, path, flags, mode);
}

RKNND_INJECTED int openat64(int folder, const char* path, int flags, ...) {
  RKNND_MODE_AFTER(flags)
  return Open(folder, path, flags, mode);
}
// NOLINTEND(cert-dcl50-cpp)

RKNND_INJECTED ssize_t write(int fd, const void* bytes, size_t size) {
  if (DiskIsFullFor(fd)) return Failed(ENOSPC);
  static auto* const real = Real<decltype(write)>("write");
  return real(fd, bytes, size);
}

RKNND_INJECTED ssize_t writev(int fd, const iovec* parts, int count) {
  if (DiskIsFullFor(fd)) return Failed(ENOSPC);
  static auto* const real = Real<decltype(writev)>("writev");
  return real(fd, parts, count);
}

RKNND_INJECTED ssize_t pwrite64(int fd, const void* bytes, size_t size,
                                off64_t offset) {
  if (DiskIsFullFor(fd)) return Failed(ENOSPC);
  static auto* const real = Real<decltype(pwrite64)>("pwrite64");
  return real(fd, bytes, size, offset);
}

RKNND_INJECTED ssize_t pwrite(int fd, const void* bytes, size_t size,
                              off_t offset) {
  return pwrite64(fd, bytes, size, offset);
}

RKNND_INJECTED int ftruncate64(int fd, off64_t size) noexcept {
  if (DiskIsFullFor(fd)) return Failed(ENOSPC);
  static auto* const real = Real<decltype(ftruncate64)>("ftruncate64");
  return real(fd, size);
}

RKNND_INJECTED int ftruncate(int fd, off_t size) noexcept {
  return ftruncate64(fd, size);
}

RKNND_INJECTED int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static auto* const real = Real<decltype(clock_gettime)>("clock_gettime");
  const int code = real(clock, now);
  if (code != 0 || clock != CLOCK_REALTIME || page == nullptr) return code;
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t at = now->tv_sec * kSecond + now->tv_nsec +
                     page->realtime_offset.load(std::memory_order_relaxed);
  now->tv_sec = at / kSecond;
  now->tv_nsec = at % kSecond;
  return code;
}

RKNND_INJECTED int gettimeofday(timeval* now, void* zone) noexcept {
  static auto* const real = Real<decltype(gettimeofday)>("gettimeofday");
  const int code = real(now, zone);
  if (code == 0 && page != nullptr) {
    now->tv_sec += page->realtime_offset.load() / 1'000'000'000;
  }
  return code;
}

RKNND_INJECTED time_t time(time_t* now) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now != nullptr) *now = precise.tv_sec;
  return precise.tv_sec;
}
