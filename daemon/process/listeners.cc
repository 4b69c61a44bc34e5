// Clients find a socket in the file system by its name; which socket a name
// leads to is told by its inode, which is a part of the name under which the
// service manager keeps it.

#include "daemon/process/listeners.h"

#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/posix/environment.h"
#include "base/posix/socket.h"
#include "base/status/status.h"

namespace rknnd {
namespace {

// Under which the service manager keeps sockets of ours; the file's device and
// inode follow.
constexpr char kOwnSession[] = "session-socket-";
constexpr char kOwnAdmin[] = "admin-socket-";

// How socket units' sockets for operators are called: a name of their own, the
// unit's, or the file's.
bool IsAdmin(const std::string& name) {
  return name == "admin" || absl::EndsWith(name, "-admin.socket") ||
         absl::EndsWith(name, "admin.sock");
}

bool IsOwn(const std::string& name) {
  return absl::StartsWith(name, kOwnSession) ||
         absl::StartsWith(name, kOwnAdmin);
}

std::string NameInStore(bool admin, const struct stat& file) {
  return absl::StrCat(admin ? kOwnAdmin : kOwnSession, file.st_dev, "-",
                      file.st_ino);
}

absl::Status SystemError(absl::string_view call, const std::string& path) {
  return base::ToStatus(
      base::ErrnoError(errno, absl::StrCat(call, " '", path, "'")));
}

// The group of a file that this process makes at `path`.
gid_t GroupOfNew(const std::string& path) {
  struct stat folder {};
  const std::string name = path.substr(0, path.rfind('/') + 1);
  const bool inherits =
      stat(name.c_str(), &folder) == 0 && (folder.st_mode & S_ISGID) != 0;
  return inherits ? folder.st_gid : getegid();
}

// The configuration may have changed since `file` was made.
absl::Status BringUpToDate(const std::string& path, const struct stat& file,
                           mode_t mode, const std::optional<uint32_t>& group) {
  const gid_t wanted = group.has_value() ? *group : GroupOfNew(path);
  if (file.st_gid != wanted &&
      lchown(path.c_str(), static_cast<uid_t>(-1), wanted) != 0) {
    return SystemError(absl::StrCat("give group ", wanted, " the socket"),
                       path);
  }
  if ((file.st_mode & 07777) != mode && chmod(path.c_str(), mode) != 0) {
    return SystemError("chmod", path);
  }
  return absl::OkStatus();
}

// A listener whose name belongs to `group` from its first moment on: a client
// that may connect is never told that it may not.
absl::StatusOr<base::UniqueFd> ListenFor(const std::string& path, mode_t mode,
                                         const std::optional<uint32_t>& group) {
  if (!group.has_value()) return transport::ListenAt(path, mode);
  if (base::ConnectUnix(path).ok()) {
    return absl::AlreadyExistsError(
        absl::StrCat("somebody listens on '", path, "': stop that first"));
  }
  const std::string unnamed = absl::StrCat(path, ".new");
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd fd, transport::ListenAt(unnamed, mode));
  absl::Status status;
  if (chown(unnamed.c_str(), static_cast<uid_t>(-1), *group) != 0) {
    status =
        SystemError(absl::StrCat("give group ", *group, " the socket"), path);
  } else if (chmod(unnamed.c_str(), mode) != 0) {
    status = SystemError("chmod", path);
  } else if (std::rename(unnamed.c_str(), path.c_str()) != 0) {
    status = SystemError("rename to", path);
  }
  if (status.ok()) return fd;
  unlink(unnamed.c_str());
  return status;
}

// What somebody who is not root does about a folder that is the service's.
absl::Status WithOwnSocket(const absl::Status& status) {
  if (!absl::IsPermissionDenied(status) || geteuid() == 0) return status;
  std::string folder = base::FromEnvironment("XDG_RUNTIME_DIR");
  if (folder.empty()) folder = absl::StrCat("/tmp/rknnd-", geteuid());
  const std::string path = absl::StrCat(folder, "/rknnd/session.sock");
  return absl::PermissionDeniedError(absl::StrCat(
      std::string(status.message()),
      ": a daemon of your own listens elsewhere, as 'rknnd --socket ", path,
      "', and programs find it by RKNND_TARGET=unix:", path));
}

}  // namespace

absl::StatusOr<SortedFds> SortFds(std::vector<PassedFd> passed, FdStore& store,
                                  transport::EventLog& log) {
  SortedFds sorted;
  for (PassedFd& one : passed) {
    if (FdStore::IsModel(one.name)) {
      sorted.models.push_back(std::move(one));
      continue;
    }
    const bool listens =
        sd_is_socket(one.fd.get(), AF_UNIX, SOCK_SEQPACKET, 1) > 0;
    if (listens) {
      (IsOwn(one.name) ? sorted.own : sorted.sockets).push_back(std::move(one));
      continue;
    }
    if (!IsOwn(one.name) && sd_is_socket(one.fd.get(), 0, 0, -1) > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "socket '", one.name,
          "' of the service manager is no listening Unix socket of kind "
          "SEQPACKET: use ListenSequentialPacket="));
    }
    log.Write(transport::Severity::kWarning,
              absl::StrCat("file descriptor '", one.name,
                           "' of the service manager is nothing that rknnd "
                           "knows: it is closed"));
    store.Remove(one.name);
  }
  return sorted;
}

Listeners::~Listeners() {
  for (const Name& name : names_) {
    struct stat file {};
    if (lstat(name.path.c_str(), &file) == 0 && file.st_dev == name.device &&
        file.st_ino == name.inode) {
      unlink(name.path.c_str());
    }
  }
}

absl::Status Listeners::Listen(const Config& config,
                               std::vector<PassedFd> sockets,
                               std::vector<PassedFd> own,
                               transport::SessionServer& server) {
  if (sockets.empty()) {
    const SocketFile operators{AdminSocketFor(config.socket), config.admin_mode,
                               config.admin_group, true};
    const SocketFile clients{config.socket, config.socket_mode,
                             config.socket_group, false};
    for (const SocketFile& socket_file : {operators, clients}) {
      const absl::Status opened = Open(socket_file, own, server);
      if (!opened.ok()) return WithOwnSocket(opened);
    }
  }
  bool admin = sockets.empty(), session = sockets.empty();
  for (PassedFd& socket : sockets) {
    const bool is_admin = IsAdmin(socket.name);
    (is_admin ? admin : session) = true;
    RKNND_RETURN_IF_ERROR(server.Serve(std::move(socket.fd), is_admin));
  }
  if (!admin || !session) {
    log_->Write(
        transport::Severity::kWarning,
        absl::StrCat(
            "the service manager passed no socket for ",
            admin ? "clients (rknnd.socket)" : "operators (rknnd-admin.socket)",
            ": they cannot connect until its unit is started and "
            "rknnd restarted"));
  }
  // Of another time: the path has changed, or there is a socket unit now.
  for (const PassedFd& left : own) {
    if (left.fd.valid()) store_->Remove(left.name);
  }
  return absl::OkStatus();
}

absl::Status Listeners::Open(const SocketFile& socket_file,
                             std::vector<PassedFd>& own,
                             transport::SessionServer& server) {
  struct stat file {};
  if (lstat(socket_file.path.c_str(), &file) == 0) {
    const std::string kept = NameInStore(socket_file.admin, file);
    for (PassedFd& socket : own) {
      if (socket.name != kept) continue;
      RKNND_RETURN_IF_ERROR(BringUpToDate(socket_file.path, file,
                                          socket_file.mode, socket_file.group));
      return server.Serve(std::move(socket.fd), socket_file.admin);
    }
  }
  RKNND_ASSIGN_OR_RETURN(
      base::UniqueFd fd,
      ListenFor(socket_file.path, socket_file.mode, socket_file.group));
  if (lstat(socket_file.path.c_str(), &file) != 0) {
    return SystemError("look at", socket_file.path);
  }
  if (store_->keeps()) {
    store_->Store(NameInStore(socket_file.admin, file), fd.get());
  } else {
    names_.push_back({socket_file.path, file.st_dev, file.st_ino});
  }
  return server.Serve(std::move(fd), socket_file.admin);
}

}  // namespace rknnd
