#include "driver/rknnrt/library_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "base/values/elf_machine.h"

namespace rknnd::rknnrt {
namespace {

// Debian's folder of this architecture, and that of boards' images.
constexpr const char* kFolders[] = {
#if defined(__aarch64__)
    "/usr/lib/aarch64-linux-gnu/rknnd-vendor/",
#endif
    "/usr/lib/rknnd-vendor/"};

absl::Status Refuse(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the vendor's library '", path, "' is not loaded: ", why));
}

// Whoever can write to it could have workers run anything.
absl::Status CheckOwner(const std::string& path, const std::string& what,
                        const struct stat& status) {
  if (status.st_uid != 0 && status.st_uid != geteuid()) {
    return Refuse(path, absl::StrCat(what, " belongs to uid ", status.st_uid,
                                     ": chown root it"));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Refuse(path, absl::StrCat("others than its owner may write to ",
                                     what, ": chmod go-w it"));
  }
  return absl::OkStatus();
}

absl::Status CheckElf(const std::string& path, int fd) {
  // The fields that are looked at lie in the same place for 32 and 64 bits.
  Elf64_Ehdr header;
  const ssize_t size = pread(fd, &header, sizeof header, 0);
  if (size < static_cast<ssize_t>(sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return Refuse(path, "it is no ELF file");
  }
  if (header.e_machine != base::kOwnMachine) {
    return Refuse(path, absl::StrCat("it is made for ",
                                     base::MachineName(header.e_machine),
                                     ", and this machine is ",
                                     base::MachineName(base::kOwnMachine)));
  }
  if (header.e_type != ET_DYN) {
    return Refuse(path, "it is no shared library");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LibraryFile> CheckLibraryFile(const std::string& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return base::ToStatus(base::ErrnoError(
        errno, absl::StrCat("open the vendor's library '", path, "'")));
  }
  struct stat file = {};
  struct stat folder = {};
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (fstat(fd.get(), &file) != 0 || stat(parent.c_str(), &folder) != 0) {
    return base::ToStatus(
        base::ErrnoError(errno, absl::StrCat("stat '", path, "'")));
  }
  if (!S_ISREG(file.st_mode)) return Refuse(path, "it is not a file");
  RKNND_RETURN_IF_ERROR(CheckOwner(path, "it", file));
  // Of a folder like /tmp only the owner of a file can replace it.
  if ((folder.st_mode & S_ISVTX) == 0) {
    RKNND_RETURN_IF_ERROR(CheckOwner(path, "its folder", folder));
  }
  RKNND_RETURN_IF_ERROR(CheckElf(path, fd.get()));
  return LibraryFile{
      path, file.st_dev, file.st_ino, static_cast<uint64_t>(file.st_size),
      int64_t{file.st_mtim.tv_sec} * 1000000000 + file.st_mtim.tv_nsec};
}

std::string FindLibraryFile() {
  for (const char* folder : kFolders) {
    const std::string path = absl::StrCat(folder, "librknnrt.so");
    if (access(path.c_str(), F_OK) == 0) return path;
  }
  return "";
}

}  // namespace rknnd::rknnrt
