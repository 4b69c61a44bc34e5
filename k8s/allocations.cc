// See the header. Whoever may write in the folder is root already; what is read
// back is checked all the same, as a crash may have cut it short.

#include "k8s/allocations.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/posix/socket.h"
#include "base/status/status.h"
#include "k8s/log.h"
#include "k8s/shares.h"

namespace rknnd::k8s {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPodsMode = 0700;
constexpr mode_t kPodMode = 0755;
constexpr mode_t kSocketMode = 0666;
constexpr char kSocketName[] = "/session.sock";
constexpr char kSocketDraft[] = "/session.new";  // no longer than the name
constexpr char kRecordEnd[] = ".shares";
constexpr size_t kTokenBytes = 16;

absl::StatusOr<std::string> NewToken() {
  std::array<char, kTokenBytes> bytes{};
  // So few bytes come at once, or not at all before the kernel has any.
  if (getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    return absl::ErrnoToStatus(errno, "get random bytes");
  }
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

// With this mode whatever the umask is.
absl::Status MakeFolder(const std::string& path, mode_t mode) {
  if ((mkdir(path.c_str(), mode) != 0 && errno != EEXIST) ||
      chmod(path.c_str(), mode) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("make folder '", path, "'"));
  }
  return absl::OkStatus();
}

// Whole or not at all.
absl::Status WriteRecord(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  {
    const base::UniqueFd file(
        open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.valid()) {
      return absl::ErrnoToStatus(errno, absl::StrCat("write '", draft, "'"));
    }
    if (write(file.get(), text.data(), text.size()) !=
        static_cast<ssize_t>(text.size())) {
      return absl::ErrnoToStatus(errno, absl::StrCat("write '", draft, "'"));
    }
  }
  if (rename(draft.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("rename '", draft, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> ReadRecord(const std::string& path) {
  std::ifstream file(path);
  std::set<uint32_t> shares;
  uint32_t share = 0;
  while (file >> share) {
    if (share >= kMostShares || !shares.insert(share).second) {
      return absl::DataLossError(
          absl::StrCat("'", path, "' names share ", share, ", or twice"));
    }
  }
  if (shares.empty() || !file.eof()) {
    return absl::DataLossError(
        absl::StrCat("'", path, "' is no list of shares"));
  }
  return std::vector<uint32_t>(shares.begin(), shares.end());
}

bool Overlap(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Allocations>> Allocations::Open(
    const std::string& socket_dir) {
  constexpr size_t kMostPath = sizeof sockaddr_un{}.sun_path - 1;
  constexpr size_t kBelow =
      sizeof "/pods/" - 1 + 2 * kTokenBytes + sizeof kSocketName - 1;
  if (socket_dir.size() > kMostPath - kBelow) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", socket_dir, "' has ", socket_dir.size(),
                     " characters: with more than ", kMostPath - kBelow,
                     " the pods' sockets in it cannot be named, use a shorter "
                     "--socket-dir"));
  }
  std::unique_ptr<Allocations> allocations(
      new Allocations(absl::StrCat(socket_dir, "/pods")));
  RKNND_RETURN_IF_ERROR(MakeFolder(allocations->folder_, kPodsMode));
  RKNND_RETURN_IF_ERROR(allocations->Lock());
  RKNND_RETURN_IF_ERROR(allocations->Restore());
  return allocations;
}

absl::Status Allocations::Lock() {
  lock_ = base::UniqueFd(
      open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!lock_.valid()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("open '", folder_, "'"));
  }
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) {
    return absl::ErrnoToStatus(errno, absl::StrCat("lock '", folder_, "'"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "another rknnd-k8s has '", folder_, "': one of them must end"));
}

absl::Status Allocations::Restore() {
  std::error_code error;
  std::set<std::string> tokens, rest;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename();
    // A record's folder is made before it, and goes after it.
    if (name.ends_with(kRecordEnd)) {
      tokens.insert(name.substr(0, name.size() - sizeof kRecordEnd + 1));
    } else {
      rest.insert(name);
    }
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("read folder '", folder_, "'"));
  }
  for (const std::string& token : tokens) {
    rest.erase(token);
    const absl::Status taken = Take(token);
    if (taken.ok()) continue;
    Log(Severity::kWarning,
        absl::StrCat("an allocation of before is given up: ",
                     std::string(taken.message())));
    Remove(token);
  }
  for (const std::string& name : rest) Remove(name);
  return absl::OkStatus();
}

absl::Status Allocations::Take(const std::string& token) {
  Allocation allocation;
  allocation.folder = absl::StrCat(folder_, "/", token);
  RKNND_ASSIGN_OR_RETURN(
      allocation.shares,
      ReadRecord(absl::StrCat(folder_, "/", token, kRecordEnd)));
  for (const auto& [name, other] : allocations_) {
    if (Overlap(other.shares, allocation.shares)) {
      return absl::DataLossError(absl::StrCat(
          "'", allocation.folder, "' has a share of '", other.folder, "'"));
    }
  }
  // Beside the old one, then in its place: rknnd may not have noticed yet that
  // whoever gave it that one has ended, so that somebody still listens there.
  const std::string draft = allocation.folder + kSocketDraft;
  const std::string path = allocation.folder + kSocketName;
  unlink(draft.c_str());
  RKNND_ASSIGN_OR_RETURN(allocation.listener, base::ToStatusOr(base::ListenUnix(
                                                  draft, kSocketMode)));
  if (rename(draft.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("rename '", draft, "'"));
  }
  allocation.name = ShareId(allocation.shares.front());
  allocations_.emplace(allocation.name, std::move(allocation));
  return absl::OkStatus();
}

absl::StatusOr<const Allocation*> Allocations::Make(
    const std::vector<uint32_t>& shares, std::vector<std::string>* ended) {
  for (auto it = allocations_.begin(); it != allocations_.end();) {
    if (!Overlap(it->second.shares, shares)) {
      ++it;
      continue;
    }
    ended->push_back(it->first);
    Remove(fs::path(it->second.folder).filename());
    it = allocations_.erase(it);
  }
  RKNND_ASSIGN_OR_RETURN(const std::string token, NewToken());
  const std::string folder = absl::StrCat(folder_, "/", token);
  absl::Status made = MakeFolder(folder, kPodMode);
  if (made.ok()) {
    made = WriteRecord(folder + kRecordEnd,
                       absl::StrCat(absl::StrJoin(shares, " "), "\n"));
  }
  if (made.ok()) made = Take(token);
  if (!made.ok()) {
    Remove(token);
    return made;
  }
  return &allocations_.at(ShareId(shares.front()));
}

void Allocations::Remove(const std::string& token) const {
  // First the record, without which the rest is rubbish to a next life.
  std::error_code error;
  fs::remove(absl::StrCat(folder_, "/", token, kRecordEnd), error);
  fs::remove_all(absl::StrCat(folder_, "/", token), error);
  if (error) {
    Log(Severity::kWarning, absl::StrCat("cannot remove '", folder_, "/", token,
                                         "': ", error.message()));
  }
}

}  // namespace rknnd::k8s
