// Reads a few bytes of a file that may be anything; see command.h.

#include "client/under/command.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/posix/unique_fd.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

enum class Kind { kAbsent, kNotExecutable, kExecutable };

Kind KindOf(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return Kind::kAbsent;
  if (!S_ISREG(status.st_mode) || ::access(path.c_str(), X_OK) != 0) {
    return Kind::kNotExecutable;
  }
  return Kind::kExecutable;
}

std::string Quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

Error NotFound(std::string_view name, std::string_view reason) {
  return Error{Code::kNotFound, "command " + Quoted(name) +
                                    " not found: " + std::string(reason)};
}

Error NotExecutable(const std::string& path) {
  return Error{Code::kPermissionDenied,
               Quoted(path) +
                   " cannot be executed: it is no program, or user " +
                   std::to_string(::getuid()) + " has no right to"};
}

// As the kernel decides on AT_SECURE, but for mounts with nosuid and for
// no_new_privs, where such a program keeps our rights: refused there too.
bool ChangesRights(const std::string& path, const struct stat& status) {
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid()) {
    return true;
  }
  if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
      status.st_gid != ::getgid()) {
    return true;
  }
  return ::getuid() != 0 &&
         ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

// The header of a program as this one is; its type is the word size.
#if __SIZEOF_POINTER__ == 8
using Header = Elf64_Ehdr;
#else
using Header = Elf32_Ehdr;
#endif

bool ReadHeader(const char* path, Header& header) {
  const base::UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return false;
  return ::pread(file.get(), &header, sizeof(header), 0) ==
             static_cast<ssize_t>(sizeof(header)) &&
         std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
}

bool IsOfAnotherMachine(const std::string& path) {
  Header own = {};
  Header header = {};
  if (!ReadHeader("/proc/self/exe", own) || !ReadHeader(path.c_str(), header)) {
    return false;  // a script, or not ours to read: the loader will tell
  }
  return header.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] ||
         header.e_machine != own.e_machine;
}

}  // namespace

Expected<std::string> FindCommand(std::string_view name,
                                  std::string_view path_list) {
  if (name.empty()) return NotFound(name, "its name is empty");
  if (name.find('/') != std::string_view::npos) {
    const std::string path(name);
    switch (KindOf(path)) {
      case Kind::kExecutable:
        return path;
      case Kind::kNotExecutable:
        return NotExecutable(path);
      case Kind::kAbsent:
        break;
    }
    return errno == EACCES ? NotExecutable(path)
                           : NotFound(name, "there is no such file");
  }
  std::string found_but_not_executable;
  size_t begin = 0;
  while (begin <= path_list.size()) {
    size_t end = path_list.find(':', begin);
    if (end == std::string_view::npos) end = path_list.size();
    std::string folder(path_list.substr(begin, end - begin));
    if (folder.empty()) folder = ".";
    begin = end + 1;
    const std::string path = folder + "/" + std::string(name);
    const Kind kind = KindOf(path);
    if (kind == Kind::kExecutable) return path;
    if (kind == Kind::kNotExecutable && found_but_not_executable.empty()) {
      found_but_not_executable = path;
    }
  }
  if (!found_but_not_executable.empty()) {
    return NotExecutable(found_but_not_executable);
  }
  return NotFound(name, "it is in no folder of PATH");
}

Expected<void> CheckCommand(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    return base::ErrnoError(errno, "look at " + Quoted(path));
  }
  if (ChangesRights(path, status)) {
    return Error{Code::kFailedPrecondition,
                 Quoted(path) +
                     " runs with the rights of another user or group, or with "
                     "capabilities: the loader ignores for it what rknnd-run "
                     "sets. Start it as that user, put rknnd-run behind it "
                     "(sudo rknnd-run COMMAND), or use rknnd-divert"};
  }
  if (IsOfAnotherMachine(path)) {
    return Error{Code::kFailedPrecondition,
                 Quoted(path) +
                     " is a program for another machine or word size than this "
                     "rknnd-run: install librknnd1 of its architecture, and "
                     "use the rknnd-run of that package"};
  }
  return {};
}

int ExitCodeOf(Code code) { return code == Code::kNotFound ? 127 : 126; }

}  // namespace rknnd::client
