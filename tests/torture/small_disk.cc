// See small_disk.h.

#include "tests/torture/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "base/posix/unique_fd.h"

namespace rknnd::torture {
namespace {

// More than the models of a campaign take, and quickly filled.
constexpr char kSize[] = "size=16m";
constexpr size_t kPiece = 1 << 20;

bool Mount(const std::string& folder) {
  // What is mounted here is nobody else's, and goes with this process.
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", folder.c_str(), "tmpfs", 0, kSize) == 0;
}

}  // namespace

SmallDisk::SmallDisk(const std::string& folder, InjectionPage* page)
    : folder_(folder), filler_(folder + "/filler"), page_(page) {
  if (mkdir(folder_.c_str(), 0700) != 0) {
    throw std::runtime_error("cannot make '" + folder_ + "'");
  }
  mounted_ = Mount(folder_);
  std::snprintf(page_->folder, sizeof page_->folder, "%s", folder_.c_str());
}

SmallDisk::~SmallDisk() {
  if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
}

void SmallDisk::Fill() {
  if (!mounted_) {
    page_->disk_full = 1;
    return;
  }
  const base::UniqueFd fd(
      open(filler_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const std::vector<std::byte> zeros(kPiece);
  for (size_t piece = kPiece; fd.valid() && piece > 0;) {
    if (write(fd.get(), zeros.data(), piece) <= 0) piece /= 2;
  }
}

void SmallDisk::Free() {
  page_->disk_full = 0;
  unlink(filler_.c_str());
}

}  // namespace rknnd::torture
