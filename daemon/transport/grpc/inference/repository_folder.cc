// Reads the repository on its own thread. Nothing is taken for granted between
// two looks at the disk: a file is opened once, checked by its descriptor, read
// to its end and looked at again.

#include "daemon/transport/grpc/inference/repository_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <set>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "base/values/sha256.h"
#include "daemon/transport/grpc/inference/open_beneath.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {
namespace {

constexpr std::array<const char*, 2> kEndings = {".onnx", ".rknn"};
constexpr char kOptions[] = ".yml";
constexpr char kFirstVersion[] = "1";
constexpr size_t kModelNameBytes = 128;
// More digits than any counter of versions has, and no overflow.
constexpr size_t kVersionDigits = 18;
// As for models that come over the session socket: a page of text.
constexpr uint64_t kOptionsBytes = uint64_t{64} << 10;
// Entries of a folder that are looked at: a folder with more holds something
// else than models.
constexpr size_t kEntries = 10000;
constexpr size_t kChunk = size_t{256} << 10;

absl::StatusOr<struct stat> Look(const base::UniqueFd& file,
                                 const std::string& path) {
  struct stat status {};
  if (fstat(file.get(), &status) == 0) return status;
  return base::ToStatus(
      base::ErrnoError(errno, absl::StrCat("look at '", path, "'")));
}

bool SameFile(const struct stat& a, const struct stat& b) {
  const auto same = [](const timespec& left, const timespec& right) {
    return left.tv_sec == right.tv_sec && left.tv_nsec == right.tv_nsec;
  };
  return a.st_size == b.st_size && same(a.st_mtim, b.st_mtim) &&
         same(a.st_ctim, b.st_ctim);
}

// Calls use(bytes) for all of the file, in order. ABORTED: it changed
// meanwhile, and what was used is worth nothing.
template <class Use>
absl::Status ReadAll(const base::UniqueFd& file, const std::string& path,
                     uint64_t largest, const std::atomic<bool>& stop, Use use) {
  RKNND_ASSIGN_OR_RETURN(const struct stat before, Look(file, path));
  const auto size = static_cast<uint64_t>(before.st_size);
  if (!S_ISREG(before.st_mode) || size == 0 || size > largest) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' of the model repository is no file of 1 to ",
                     largest, " bytes"));
  }
  const auto changed = [&path] {
    return absl::AbortedError(
        absl::StrCat("'", path,
                     "' of the model repository changed while it was read: "
                     "load it again when it is complete; to replace a file, "
                     "write another one and rename it"));
  };
  std::vector<std::byte> chunk(std::min<uint64_t>(kChunk, size));
  uint64_t at = 0;
  for (;;) {
    if (stop) return absl::CancelledError("the server stops");
    // Goes on until nothing comes: a file that grew is seen by that.
    const ssize_t got =
        pread(file.get(), chunk.data(), chunk.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return base::ToStatus(
          base::ErrnoError(errno, absl::StrCat("read '", path, "'")));
    }
    if (got == 0) break;
    at += static_cast<uint64_t>(got);
    if (at > size) return changed();
    RKNND_RETURN_IF_ERROR(
        use(std::span(chunk.data(), static_cast<size_t>(got))));
  }
  RKNND_ASSIGN_OR_RETURN(const struct stat after, Look(file, path));
  return at == size && SameFile(before, after) ? absl::OkStatus() : changed();
}

bool HasModelEnding(std::string_view name) {
  return std::any_of(kEndings.begin(), kEndings.end(), [&](const char* ending) {
    return name.ends_with(ending);
  });
}

std::string WithoutEnding(const std::string& path) {
  return path.substr(0, path.rfind('.'));
}

core::ModelId HashOf(base::Sha256 bytes, const std::string& options) {
  bytes.Update(std::as_bytes(std::span(options.data(), options.size())));
  return bytes.Finish();
}

}  // namespace

absl::Status CheckModelName(std::string_view name) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           c == '-' || c == '.';
  };
  if (!name.empty() && name.size() <= kModelNameBytes && name[0] != '.' &&
      std::all_of(name.begin(), name.end(), allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", Printable(name.substr(0, kModelNameBytes)),
                   "' is no name of a model: 1 to ", kModelNameBytes,
                   " letters, digits, '_', '-' and '.', and no '.' first"));
}

bool IsModelVersion(std::string_view version) {
  return !version.empty() && version.size() <= kVersionDigits &&
         version[0] != '0' &&
         std::all_of(version.begin(), version.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c));
         });
}

bool IsNewerVersion(std::string_view version, std::string_view other) {
  if (version.size() != other.size()) return version.size() > other.size();
  return version > other;
}

absl::StatusOr<std::unique_ptr<RepositoryFolder>> RepositoryFolder::Open(
    const std::string& path, uint64_t largest, const std::atomic<bool>* stop) {
  base::UniqueFd folder(
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (!folder.valid()) {
    return base::ToStatus(base::ErrnoError(
        errno, absl::StrCat("open model repository '", path, "'")));
  }
  return std::unique_ptr<RepositoryFolder>(
      new RepositoryFolder(std::move(folder), largest, stop));
}

absl::StatusOr<std::vector<std::string>> RepositoryFolder::List(
    const base::UniqueFd& folder) const {
  // A descriptor of its own: that of the folder would share its position.
  base::UniqueFd own(openat(folder.get(), ".",
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (!own.valid()) {
    return base::ToStatus(
        base::ErrnoError(errno, "list a folder of the model repository"));
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(own.get()),
                                                    closedir);
  if (entries == nullptr) {
    return base::ToStatus(
        base::ErrnoError(errno, "list a folder of the model repository"));
  }
  [[maybe_unused]] const int theirs = own.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    // Nobody else has this stream. NOLINTNEXTLINE(concurrency-mt-unsafe)
    const dirent* const entry = readdir(entries.get());
    if (entry == nullptr) break;
    if (names.size() == kEntries) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a folder of the model repository has more than ",
                       kEntries, " entries"));
    }
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) {
    return base::ToStatus(
        base::ErrnoError(errno, "list a folder of the model repository"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<std::string>> RepositoryFolder::Names() const {
  RKNND_ASSIGN_OR_RETURN(const std::vector<std::string> entries, List(folder_));
  std::set<std::string> names;
  for (const std::string& entry : entries) {
    std::string name = HasModelEnding(entry) ? WithoutEnding(entry) : entry;
    if (!CheckModelName(name).ok()) continue;
    // A folder may be there for something else, and be empty or a link.
    const auto versions = Versions(name);
    if (absl::IsNotFound(versions.status()) ||
        absl::IsInvalidArgument(versions.status())) {
      continue;
    }
    names.insert(std::move(name));
    if (names.size() == kRepositoryModels) break;
  }
  return std::vector<std::string>(names.begin(), names.end());
}

std::vector<std::string> RepositoryFolder::Stems(
    const std::string& name, const std::string& version) const {
  std::vector<std::string> stems = {absl::StrCat(name, "/", version, "/model")};
  if (version == kFirstVersion) {
    stems.push_back(absl::StrCat(name, "/model"));
    stems.push_back(name);
  }
  return stems;
}

absl::StatusOr<std::string> RepositoryFolder::Locate(
    const std::string& name, const std::string& version) const {
  absl::Status elsewhere;
  for (const std::string& stem : Stems(name, version)) {
    for (const char* ending : kEndings) {
      std::string path = absl::StrCat(stem, ending);
      const auto file = OpenBeneath(folder_.get(), path, /*directory=*/false);
      if (file.ok()) return path;
      if (!absl::IsNotFound(file.status())) elsewhere.Update(file.status());
    }
  }
  RKNND_RETURN_IF_ERROR(elsewhere);
  return absl::NotFoundError(absl::StrCat("model '", name, "' version ",
                                          version,
                                          " is not in the model repository"));
}

absl::StatusOr<std::vector<std::string>> RepositoryFolder::Versions(
    const std::string& name) const {
  RKNND_RETURN_IF_ERROR(CheckModelName(name));
  std::vector<std::string> versions;
  const auto folder = OpenBeneath(folder_.get(), name, /*directory=*/true);
  if (folder.ok()) {
    RKNND_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                           List(*folder));
    for (const std::string& entry : entries) {
      if (!IsModelVersion(entry)) continue;
      // One that cannot be read is one all the same: its state says why.
      if (!absl::IsNotFound(Locate(name, entry).status())) {
        versions.push_back(entry);
      }
    }
  } else if (!absl::IsNotFound(folder.status())) {
    return folder.status();
  }
  if (versions.empty()) {
    RKNND_RETURN_IF_ERROR(Locate(name, kFirstVersion).status());
    versions.emplace_back(kFirstVersion);
  }
  std::sort(versions.begin(), versions.end(),
            [](const std::string& a, const std::string& b) {
              return IsNewerVersion(b, a);
            });
  // The newest are those that anybody asks for.
  if (versions.size() > kRepositoryVersions) {
    versions.erase(versions.begin(), versions.end() - kRepositoryVersions);
  }
  return versions;
}

absl::StatusOr<core::ModelUpload> RepositoryFolder::Read(
    const std::string& name, const std::string& version) const {
  RKNND_RETURN_IF_ERROR(CheckModelName(name));
  if (!IsModelVersion(version)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(version), "' is no version of a model"));
  }
  RKNND_ASSIGN_OR_RETURN(const std::string path, Locate(name, version));
  RKNND_ASSIGN_OR_RETURN(const base::UniqueFd file,
                         OpenBeneath(folder_.get(), path, /*directory=*/false));
  core::ModelUpload upload;
  upload.name = absl::StrCat(name, path.substr(path.rfind('.')));
  RKNND_ASSIGN_OR_RETURN(
      upload.bytes, base::ToStatusOr(base::MakeGrowingMemfd("rknnd-model")));
  base::Sha256 hash;
  RKNND_RETURN_IF_ERROR(ReadAll(
      file, path, largest_, *stop_, [&](std::span<const std::byte> bytes) {
        hash.Update(bytes);
        return base::ToStatus(base::AppendToMemfd(upload.bytes.get(), bytes));
      }));
  RKNND_RETURN_IF_ERROR(base::ToStatus(base::SealMemfd(upload.bytes.get())));
  const std::string beside = WithoutEnding(path) + kOptions;
  const auto options = OpenBeneath(folder_.get(), beside, /*directory=*/false);
  if (options.ok()) {
    RKNND_ASSIGN_OR_RETURN(const struct stat text, Look(*options, beside));
    // An empty one says nothing.
    if (text.st_size != 0) {
      RKNND_RETURN_IF_ERROR(ReadAll(
          *options, beside, kOptionsBytes, *stop_,
          [&upload](std::span<const std::byte> bytes) {
            upload.options.append(reinterpret_cast<const char*>(bytes.data()),
                                  bytes.size());
            return absl::OkStatus();
          }));
    }
  } else if (!absl::IsNotFound(options.status())) {
    return options.status();
  }
  upload.id = HashOf(hash, upload.options);
  return upload;
}

absl::StatusOr<std::vector<std::pair<std::string, core::ModelUpload>>>
PackModelFiles(const std::string& name, const ModelFiles& files) {
  const auto newer = [](const std::string& a, const std::string& b) {
    return IsNewerVersion(b, a);
  };
  std::map<std::string, core::ModelUpload, decltype(newer)> versions(newer);
  std::map<std::string, base::Sha256> hashes;
  for (const auto& [path, bytes] : files) {
    const size_t slash = path.find('/');
    const std::string version = path.substr(0, slash);
    const std::string file =
        slash == std::string::npos ? "" : path.substr(slash + 1);
    const bool model = HasModelEnding(file);
    if (!IsModelVersion(version) || !CheckModelName(file).ok() ||
        (!model && !absl::EndsWith(file, kOptions))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "file '", Printable(path), "' of model '", name,
          "': what can be loaded is \"<version>/model.onnx\" and its options, "
          "\"<version>/model.yml\""));
    }
    core::ModelUpload& upload = versions[version];
    if (model ? upload.bytes.valid() : !upload.options.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model '", name, "' comes with two files for version ",
                       version, " of which one is enough"));
    }
    if (versions.size() > kRepositoryVersions) {
      return absl::ResourceExhaustedError(
          absl::StrCat("model '", name, "' comes with more than ",
                       kRepositoryVersions, " versions"));
    }
    if (!model) {
      upload.options = bytes;
      continue;
    }
    const auto contents = std::as_bytes(std::span(bytes.data(), bytes.size()));
    upload.name = absl::StrCat(name, file.substr(file.rfind('.')));
    RKNND_ASSIGN_OR_RETURN(
        upload.bytes,
        base::ToStatusOr(base::MakeImmutableMemfd("rknnd-model", contents)));
    hashes[version].Update(contents);
  }
  std::vector<std::pair<std::string, core::ModelUpload>> packed;
  for (auto& [version, upload] : versions) {
    if (!upload.bytes.valid()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model '", name,
                       "' comes without a model file for "
                       "version ",
                       version));
    }
    upload.id = HashOf(hashes[version], upload.options);
    packed.emplace_back(version, std::move(upload));
  }
  return packed;
}

}  // namespace rknnd::transport
