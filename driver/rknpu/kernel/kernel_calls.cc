#include "driver/rknpu/kernel/kernel_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xf86drm.h>

#include <algorithm>
#include <cerrno>

namespace rknnd::rknpu {
namespace {

class RealKernelCalls final : public KernelCalls {
 public:
  std::vector<std::string> List(const std::string& folder) override {
    std::vector<std::string> names;
    DIR* const directory = opendir(folder.c_str());
    if (directory == nullptr) return names;
    while (const dirent* const entry = readdir(directory)) {
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    closedir(directory);
    std::sort(names.begin(), names.end());
    return names;
  }
  int Open(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    return fd >= 0 ? fd : -errno;
  }
  void Close(int fd) override { close(fd); }
  int Ioctl(int fd, uint64_t request, void* argument) override {
    return ioctl(fd, static_cast<unsigned long>(request), argument) < 0 ? -errno
                                                                        : 0;
  }
  int RestartedIoctl(int fd, uint64_t request, void* argument) override {
    return drmIoctl(fd, static_cast<unsigned long>(request), argument) < 0
               ? -errno
               : 0;
  }
  std::byte* Map(int fd, uint64_t offset, size_t size, int* error) override {
    void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED,
                            fd, static_cast<off_t>(offset));
    if (data != MAP_FAILED) return static_cast<std::byte*>(data);
    *error = errno;
    return nullptr;
  }
  void Unmap(std::byte* data, size_t size) override { munmap(data, size); }
  bool Identify(int fd, uint64_t* device, uint64_t* inode) override {
    struct stat about = {};
    if (fstat(fd, &about) != 0) return false;
    *device = about.st_dev;
    *inode = about.st_ino;
    return true;
  }
};

}  // namespace

std::unique_ptr<KernelCalls> MakeKernelCalls() {
  return std::make_unique<RealKernelCalls>();
}

}  // namespace rknnd::rknpu
