// Reads and writes the cache folder. Its files are the daemon's own, but a disk
// may be full, a file cut short or changed: every step can fail, none is fatal.

#include "daemon/core/model_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/posix/sha256.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"

namespace rknnd::core {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'R', 'K', 'N', 'N', 'D', 'M', '0', '1'};

struct Trailer {
  char magic[8];
  uint64_t bytes;
  uint32_t options;
  uint32_t name;
};
static_assert(sizeof(Trailer) == 24);

absl::Status SystemError(int error, const char* call, const std::string& path) {
  return base::ToStatus(
      base::ErrnoError(error, absl::StrCat(call, " '", path, "'")));
}

absl::Status ReadAt(int fd, uint64_t offset, void* to, size_t size,
                    const std::string& path) {
  auto* at = static_cast<std::byte*>(to);
  while (size > 0) {
    const ssize_t got = pread(fd, at, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "read", path);
    if (got == 0) {
      return absl::DataLossError(absl::StrCat("'", path, "' is cut short"));
    }
    at += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, std::span<const std::byte> bytes,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return SystemError(errno, "write", path);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The trailer of an open file, checked against its size.
absl::StatusOr<Trailer> ReadTrailer(int fd, const std::string& path) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return SystemError(errno, "stat", path);
  const auto size = static_cast<uint64_t>(status.st_size);
  Trailer trailer{};
  if (S_ISREG(status.st_mode) && size >= sizeof trailer) {
    RKNND_RETURN_IF_ERROR(
        ReadAt(fd, size - sizeof trailer, &trailer, sizeof trailer, path));
    const uint64_t contents = size - sizeof trailer;
    const uint64_t texts = uint64_t{trailer.options} + trailer.name;
    if (std::memcmp(trailer.magic, kMagic, sizeof kMagic) == 0 &&
        trailer.bytes <= contents && contents - trailer.bytes == texts) {
      return trailer;
    }
  }
  return absl::DataLossError(
      absl::StrCat("'", path, "' is not a file of this cache"));
}

}  // namespace

ModelId IdOf(std::span<const std::byte> bytes, const std::string& options) {
  base::Sha256 hash;
  hash.Update(bytes);
  if (!options.empty()) hash.Update(BytesOf(options));
  return hash.Finish();
}

ModelCache::ModelCache(std::string folder, uint64_t limit)
    : folder_(std::move(folder)), limit_(limit) {}

absl::StatusOr<std::unique_ptr<ModelCache>> ModelCache::Open(
    const std::string& folder, uint64_t limit) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder, error) ||
      access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    return SystemError(error ? error.value() : errno, "use cache folder",
                       folder);
  }
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".tmp") leftovers.push_back(at->path());
  }
  for (const auto& path : leftovers) fs::remove(path, error);
  return std::unique_ptr<ModelCache>(new ModelCache(folder, limit));
}

bool ModelCache::Contains(const ModelId& id) const {
  return access(PathOf(id).c_str(), R_OK) == 0;
}

absl::StatusOr<ModelCache::Entry> ModelCache::Read(const ModelId& id) {
  const std::string path = PathOf(id);
  const base::UniqueFd fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return SystemError(errno, "open", path);

  const auto read = [&]() -> absl::StatusOr<Entry> {
    RKNND_ASSIGN_OR_RETURN(const Trailer trailer, ReadTrailer(fd.get(), path));
    Entry entry;
    entry.size = trailer.bytes;
    const size_t hashed = trailer.bytes + trailer.options;
    // Not mapped from the file: its bytes must be those that were hashed.
    RKNND_ASSIGN_OR_RETURN(entry.memory,
                           base::ToStatusOr(base::Mapping::Anonymous(
                               std::max<size_t>(hashed, 1))));
    RKNND_RETURN_IF_ERROR(
        ReadAt(fd.get(), 0, entry.memory.data(), hashed, path));
    if (base::Sha256Of(entry.memory.bytes().first(hashed)) != id) {
      return absl::DataLossError(
          absl::StrCat("'", path, "' does not hold what its name says"));
    }
    entry.options.assign(
        reinterpret_cast<const char*>(entry.memory.data() + trailer.bytes),
        trailer.options);
    entry.name.resize(trailer.name);
    RKNND_RETURN_IF_ERROR(
        ReadAt(fd.get(), hashed, entry.name.data(), trailer.name, path));
    return entry;
  };
  auto entry = read();
  if (entry.status().code() == absl::StatusCode::kDataLoss) {
    (void)unlink(path.c_str());
  } else if (entry.ok()) {
    // Used now: MakeRoom takes the longest unused first.
    (void)futimens(fd.get(), nullptr);
  }
  return entry;
}

absl::Status ModelCache::Store(const ModelId& id,
                               std::span<const std::byte> bytes,
                               const std::string& options,
                               const std::string& name) {
  const std::string path = PathOf(id);
  const std::string unfinished = absl::StrCat(path, ".", getpid(), ".tmp");
  Trailer trailer{};
  std::memcpy(trailer.magic, kMagic, sizeof kMagic);
  trailer.bytes = bytes.size();
  trailer.options = static_cast<uint32_t>(options.size());
  trailer.name = static_cast<uint32_t>(name.size());
  RKNND_RETURN_IF_ERROR(
      MakeRoom(bytes.size() + options.size() + name.size() + sizeof trailer));

  base::UniqueFd fd(open(unfinished.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                         S_IRUSR | S_IWUSR));
  if (!fd.valid()) return SystemError(errno, "create", unfinished);
  absl::Status written = WriteAll(fd.get(), bytes, unfinished);
  written.Update(WriteAll(fd.get(), BytesOf(options), unfinished));
  written.Update(WriteAll(fd.get(), BytesOf(name), unfinished));
  written.Update(
      WriteAll(fd.get(), std::as_bytes(std::span(&trailer, 1)), unfinished));
  // No fsync: a file that a power cut has spoilt is found out by its hash.
  if (written.ok() && rename(unfinished.c_str(), path.c_str()) != 0) {
    written = SystemError(errno, "rename", unfinished);
  }
  if (!written.ok()) (void)unlink(unfinished.c_str());
  return written;
}

std::string ModelCache::PathOf(const ModelId& id) const {
  return absl::StrCat(folder_, "/", base::ToHex(id), ".model");
}

absl::Status ModelCache::MakeRoom(uint64_t bytes) {
  if (bytes > limit_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a model of ", bytes,
                     " bytes is larger than the cache "
                     "folder '",
                     folder_, "' may grow (", limit_, ")"));
  }
  struct File {
    fs::file_time_type used;
    uint64_t size;
    fs::path path;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    if (at->path().extension() != ".model") continue;
    const uint64_t size = at->file_size(gone);
    if (gone) continue;
    files.push_back({at->last_write_time(gone), size, at->path()});
    total += size;
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (total <= limit_ - bytes) break;
    if (fs::remove(file.path, error)) total -= file.size;
  }
  return absl::OkStatus();
}

}  // namespace rknnd::core
