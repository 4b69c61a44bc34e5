// See the header. The folders may be the user's own already, so that what is in
// them is not trusted: only plain files of root's that have no other name are
// given away.

#include "daemon/process/privileges.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "daemon/config/users.h"

namespace rknnd {
namespace {

namespace fs = std::filesystem;

// A folder of this name is the daemon's, whoever made it.
constexpr char kOwnName[] = "rknnd";

absl::Status SystemError(const std::string& action) {
  return base::ToStatus(base::ErrnoError(errno, action));
}

// What is here is inherited by all threads made later.
absl::Status GainNothing() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return SystemError("give up gaining privileges");
  }
  return absl::OkStatus();
}

// The capabilities that neither this process nor what it starts needs again;
// those in force stay until Drop.
absl::Status EmptyCapabilitySets() {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0;
       ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
      return SystemError(
          absl::StrCat("drop capability ", capability,
                       " for good (this root lacks CAP_SETPCAP)"));
    }
  }
  // Old kernels have no ambient set.
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 &&
      errno != EINVAL) {
    return SystemError("clear ambient capabilities");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) {
    return SystemError("read capabilities");
  }
  for (__user_cap_data_struct& set : sets) set.inheritable = 0;
  if (syscall(SYS_capset, &header, sets.data()) != 0) {
    return SystemError("clear inheritable capabilities");
  }
  return absl::OkStatus();
}

std::string LastPart(const std::string& path) {
  const fs::path clean = fs::path(path).lexically_normal();
  return clean.has_filename() ? clean.filename()
                              : clean.parent_path().filename();
}

// The numbers behind "Uid:" in a thread's status. nullopt: no such line, or no
// numbers.
std::optional<std::vector<uint64_t>> Numbers(const std::string& status,
                                             const std::string& key, int base) {
  const size_t begin = status.find("\n" + key + ":");
  if (begin == std::string::npos) return std::nullopt;
  const size_t values = begin + key.size() + 2;
  std::istringstream line(
      status.substr(values, status.find('\n', values) - values));
  std::vector<uint64_t> numbers;
  for (std::string word; line >> word;) {
    const char* const end = word.data() + word.size();
    const auto parsed =
        std::from_chars(word.data(), end, numbers.emplace_back(), base);
    if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  }
  return numbers;
}

// Real, effective, saved, of the file system.
std::vector<uint64_t> FourOf(uint64_t id) { return {id, id, id, id}; }

}  // namespace

Privileges::Privileges(std::optional<User> user,
                       std::vector<std::string> folders)
    : user_(std::move(user)), folders_(std::move(folders)) {}

absl::StatusOr<Privileges> Privileges::Prepare(
    const PrivilegeOptions& options) {
  std::optional<User> user;
  if (!options.user.empty() && geteuid() == 0) {
    RKNND_ASSIGN_OR_RETURN(user, Find(options.user));
  }
  RKNND_RETURN_IF_ERROR(GainNothing());
  if (user.has_value()) RKNND_RETURN_IF_ERROR(EmptyCapabilitySets());
  for (const std::string& folder : options.folders) {
    if (!folder.empty()) RKNND_RETURN_IF_ERROR(MakeFolder(folder, user));
  }
  return Privileges(std::move(user), options.folders);
}

absl::StatusOr<Privileges::User> Privileges::Find(const std::string& name) {
  const std::optional<UserEntry> found = FindUser(name);
  if (!found.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the daemon cannot become user '", name,
        "': this machine has none of that name. Make it (systemd-sysusers "
        "rknnd.conf), or set [service] user"));
  }
  if (found->uid == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("[service] user is '", name,
                     "', which is root: name another, or none to stay root"));
  }
  User user;
  user.name = found->name;
  user.uid = found->uid;
  user.gid = found->gid;
  int count = 0;
  getgrouplist(user.name.c_str(), user.gid, nullptr, &count);
  user.groups.resize(static_cast<size_t>(count));
  if (getgrouplist(user.name.c_str(), user.gid, user.groups.data(), &count) <
      0) {
    return absl::UnavailableError(absl::StrCat(
        "the groups of user '", name, "' changed while they were read"));
  }
  std::sort(user.groups.begin(), user.groups.end());
  return user;
}

absl::Status Privileges::MakeFolder(const std::string& path,
                                    const std::optional<User>& user) {
  // Without the slash that it may end in, so that its parent is another folder.
  const std::filesystem::path whole =
      (std::filesystem::path(path) / "").parent_path();
  std::error_code ignored;  // mkdir says what is wrong
  std::filesystem::create_directories(whole.parent_path(), ignored);
  const bool made = mkdir(path.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) {
    return SystemError(absl::StrCat("mkdir '", path, "'"));
  }
  if (!user.has_value()) return absl::OkStatus();
  const base::UniqueFd folder(
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat now {};
  if (!folder.valid() || fstat(folder.get(), &now) != 0) {
    return SystemError(absl::StrCat("open folder '", path, "'"));
  }
  if (now.st_uid == user->uid) return absl::OkStatus();
  // A name that was typed wrongly must not give /var/lib away.
  if (now.st_uid != 0 || !(made || LastPart(path) == kOwnName)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "folder '", path, "' belongs to uid ", now.st_uid,
        ", but the daemon becomes user '", user->name, "': chown -R ",
        user->name, " '", path, "', or name another folder"));
  }
  if (fchown(folder.get(), user->uid, user->gid) != 0) {
    return SystemError(absl::StrCat("chown '", path, "'"));
  }
  return absl::OkStatus();
}

absl::Status Privileges::GiveFiles(const std::string& folder) const {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()),
                                                    closedir);
  if (entries == nullptr) {
    return SystemError(absl::StrCat("read folder '", folder, "'"));
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this function's own
  while (const dirent* entry = readdir(entries.get())) {
    const base::UniqueFd file(openat(dirfd(entries.get()), entry->d_name,
                                     O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat now {};
    // Gone meanwhile, or not what we make.
    if (!file.valid() || fstat(file.get(), &now) != 0 ||
        !S_ISREG(now.st_mode) || now.st_uid != 0 || now.st_nlink != 1) {
      continue;
    }
    if (fchownat(file.get(), "", user_->uid, user_->gid, AT_EMPTY_PATH) != 0) {
      return SystemError(
          absl::StrCat("chown '", folder, "/", entry->d_name, "'"));
    }
  }
  return absl::OkStatus();
}

absl::Status Privileges::Drop() {
  if (!user_.has_value()) return absl::OkStatus();
  for (const std::string& folder : folders_) {
    if (!folder.empty()) RKNND_RETURN_IF_ERROR(GiveFiles(folder));
  }
  const std::string become = absl::StrCat("become ", Describe());
  // The user last: it may not change the others.
  if (setgroups(user_->groups.size(), user_->groups.data()) != 0 ||
      setresgid(user_->gid, user_->gid, user_->gid) != 0 ||
      setresuid(user_->uid, user_->uid, user_->uid) != 0) {
    return SystemError(become +
                       " (this root lacks CAP_SETUID, CAP_SETGID or that id)");
  }
  // As a process that was started by this user is: it may leave a core, and
  // read its own files below /proc.
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) return SystemError(become);
  return base::Annotate(Verify(), become);
}

absl::Status Privileges::Verify() const {
  // Another thread than this one must not have kept a way back, either.
  if (setresuid(static_cast<uid_t>(-1), 0, static_cast<uid_t>(-1)) == 0) {
    return absl::InternalError("the process can become root again");
  }
  std::error_code error;
  size_t threads = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task", error)) {
    ++threads;
    RKNND_RETURN_IF_ERROR(VerifyThread(task.path()));
  }
  if (threads == 0) {
    return absl::FailedPreconditionError(
        "/proc/self/task cannot be read, so that nothing shows what was "
        "dropped: mount /proc");
  }
  return absl::OkStatus();
}

absl::Status Privileges::VerifyThread(const std::string& path) const {
  std::ifstream file(path + "/status");
  const std::string status((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
  // It has ended.
  if (status.empty()) return absl::OkStatus();
  struct Line {
    const char* key;
    int base;
    std::vector<uint64_t> values;
  };
  const std::vector<uint64_t> groups(user_->groups.begin(),
                                     user_->groups.end());
  for (const Line& line :
       {Line{"Uid", 10, FourOf(user_->uid)},
        Line{"Gid", 10, FourOf(user_->gid)}, Line{"Groups", 10, groups},
        Line{"CapInh", 16, {0}}, Line{"CapPrm", 16, {0}},
        Line{"CapEff", 16, {0}}, Line{"CapBnd", 16, {0}},
        Line{"CapAmb", 16, {0}}, Line{"NoNewPrivs", 10, {1}}}) {
    if (Numbers(status, line.key, line.base) != line.values) {
      return absl::InternalError(absl::StrCat(
          "thread '", LastPart(path), "' kept more than the user has: its ",
          line.key, " is not ", absl::StrJoin(line.values, " ")));
    }
  }
  return absl::OkStatus();
}

std::string Privileges::Describe() const {
  if (!user_.has_value()) return "";
  return absl::StrCat("user '", user_->name, "' (uid ", user_->uid, ")");
}

}  // namespace rknnd
