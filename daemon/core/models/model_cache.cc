// Reads and writes the cache folder. Its files are the daemon's own, but a disk
// may be full, a file cut short or changed: every step can fail, none is fatal.

#include "daemon/core/models/model_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "base/values/sha256.h"
#include "daemon/core/models/checksum.h"
#include "driver/memory/fault_guard.h"

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

constexpr char kCompiledMagic[8] = {'R', 'K', 'N', 'N', 'D', 'C', '0', '1'};

struct CompiledTrailer {
  char magic[8];
  ModelId id;
  uint64_t form;
  uint32_t compiler, options, name, unused;
  uint64_t checksum;  // of the file but for these eight bytes
};
static_assert(sizeof(CompiledTrailer) == 72);
constexpr size_t kSummed = offsetof(CompiledTrailer, checksum);

// Written at once where pieces are small.
constexpr size_t kGathered = size_t{256} << 10;

constexpr char kModelEnding[] = ".model";
constexpr char kCompiledEnding[] = ".compiled";

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

// The form in an open file, checked as far as a checksum can.
absl::StatusOr<ModelCache::Compiled> MapCompiled(int fd,
                                                 const std::string& path,
                                                 const ModelId& id,
                                                 const std::string& compiler) {
  const auto damaged = [&path] {
    return absl::DataLossError(
        absl::StrCat("'", path, "' does not hold what its name says"));
  };
  struct stat status {};
  if (fstat(fd, &status) != 0) return SystemError(errno, "stat", path);
  const auto size = static_cast<uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size < sizeof(CompiledTrailer)) {
    return damaged();
  }
  // A checksum says nothing of who wrote it.
  if (status.st_uid != geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("'", path, "' is of uid ", status.st_uid, ", mode ",
                     absl::Hex(status.st_mode & 0777U),
                     ": compiled models are taken only "
                     "from files that nobody but the daemon's uid ",
                     geteuid(), " can write"));
  }
  // In its own pages: they are there already when the file was written a while
  // ago, and copying them would take longer than all the rest.
  RKNND_ASSIGN_OR_RETURN(base::Mapping mapping,
                         base::ToStatusOr(base::Mapping::OfFd(
                             fd, 0, size, base::Mapping::Access::kRead)));
  auto file = std::make_shared<const base::Mapping>(std::move(mapping));
  const std::span<const std::byte> all = file->bytes();
  const size_t before = all.size() - sizeof(CompiledTrailer);
  CompiledTrailer trailer{};
  uint64_t sum = 0;
  // The disk may fail, or somebody shorten the file.
  const bool there = driver::Guarded(all, [&] {
    std::memcpy(&trailer, all.data() + before, sizeof trailer);
    Checksum checksum;
    checksum.Update(all.first(before + kSummed));
    sum = checksum.Finish();
  });
  const uint64_t texts =
      uint64_t{trailer.compiler} + trailer.options + trailer.name;
  if (!there || sum != trailer.checksum || trailer.id != id ||
      std::memcmp(trailer.magic, kCompiledMagic, sizeof trailer.magic) != 0 ||
      trailer.form > before || before - trailer.form != texts) {
    return damaged();
  }
  ModelCache::Compiled compiled;
  compiled.form = all.first(static_cast<size_t>(trailer.form));
  std::string text(static_cast<size_t>(texts), '\0');
  const bool still_there = driver::Guarded(all, [&] {
    std::memcpy(text.data(), all.data() + compiled.form.size(), text.size());
  });
  if (!still_there || text.substr(0, trailer.compiler) != compiler) {
    return damaged();
  }
  compiled.options = text.substr(trailer.compiler, trailer.options);
  compiled.name = text.substr(size_t{trailer.compiler} + trailer.options);
  compiled.file = std::move(file);
  return compiled;
}

}  // namespace

ModelId IdOf(std::span<const std::byte> bytes, const std::string& options) {
  base::Sha256 hash;
  hash.Update(bytes);
  if (!options.empty()) hash.Update(BytesOf(options));
  return hash.Finish();
}

ModelCache::ModelCache(std::string folder, uint64_t limit, std::string compiler,
                       CacheDisk* disk)
    : folder_(std::move(folder)),
      limit_(limit),
      compiler_(std::move(compiler)),
      disk_(disk == nullptr ? &real_disk_ : disk) {}

absl::StatusOr<std::unique_ptr<ModelCache>> ModelCache::Open(
    const std::string& folder, uint64_t limit, const std::string& compiler,
    CacheDisk* disk) {
  std::error_code error;
  if (fs::create_directories(folder, error)) {
    // Whose models are here is nobody else's business.
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  if (!fs::is_directory(folder, error) ||
      access(folder.c_str(), R_OK | X_OK) != 0) {
    return SystemError(error ? error.value() : errno, "use cache folder",
                       folder);
  }
  std::unique_ptr<ModelCache> cache(
      new ModelCache(folder, limit, compiler, disk));
  if (access(folder.c_str(), W_OK) != 0) {
    cache->writable_ = SystemError(errno, "write to cache folder", folder);
    return cache;
  }
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".tmp") leftovers.push_back(at->path());
  }
  for (const auto& path : leftovers) fs::remove(path, error);
  return cache;
}

bool ModelCache::Contains(const ModelId& id) const {
  return access(PathOf(id).c_str(), R_OK) == 0;
}

bool ModelCache::ContainsCompiled(const ModelId& id) const {
  return !compiler_.empty() && access(CompiledPathOf(id).c_str(), R_OK) == 0;
}

absl::StatusOr<ModelCache::Entry> ModelCache::Read(const ModelId& id) {
  const std::string path = PathOf(id);
  const base::UniqueFd fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
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
  Trailer trailer{};
  std::memcpy(trailer.magic, kMagic, sizeof kMagic);
  trailer.bytes = bytes.size();
  trailer.options = static_cast<uint32_t>(options.size());
  trailer.name = static_cast<uint32_t>(name.size());
  if (bytes.size() > limit_) return TooLarge();
  return WriteFile(PathOf(id), [&](Write write) -> absl::Status {
    RKNND_RETURN_IF_ERROR(write(bytes));
    RKNND_RETURN_IF_ERROR(write(BytesOf(options)));
    RKNND_RETURN_IF_ERROR(write(BytesOf(name)));
    return write(std::as_bytes(std::span(&trailer, 1)));
  });
}

absl::StatusOr<ModelCache::Compiled> ModelCache::ReadCompiled(
    const ModelId& id) {
  if (compiler_.empty()) return absl::NotFoundError("nothing is compiled");
  const std::string path = CompiledPathOf(id);
  const base::UniqueFd fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return SystemError(errno, "open", path);
  auto read = MapCompiled(fd.get(), path, id, compiler_);
  if (absl::IsDataLoss(read.status())) {
    RemoveCompiled(id);
  } else if (read.ok()) {
    // Used now, and so are the bytes, which another compiler may ask for.
    (void)futimens(fd.get(), nullptr);
    (void)utimensat(AT_FDCWD, PathOf(id).c_str(), nullptr, 0);
  }
  return read;
}

absl::Status ModelCache::StoreCompiled(
    const ModelId& id, const std::string& options, const std::string& name,
    absl::FunctionRef<absl::Status(Write)> produce, uint64_t about) {
  if (compiler_.empty()) return absl::OkStatus();
  // Before others are removed for it in vain.
  if (about > limit_) return TooLarge();
  CompiledTrailer trailer{};
  std::memcpy(trailer.magic, kCompiledMagic, sizeof kCompiledMagic);
  trailer.id = id;
  trailer.compiler = static_cast<uint32_t>(compiler_.size());
  trailer.options = static_cast<uint32_t>(options.size());
  trailer.name = static_cast<uint32_t>(name.size());
  return WriteFile(CompiledPathOf(id), [&](Write write) -> absl::Status {
    Checksum sum;
    const auto summed = [&](std::span<const std::byte> bytes) {
      sum.Update(bytes);
      return write(bytes);
    };
    RKNND_RETURN_IF_ERROR(
        produce([&](std::span<const std::byte> bytes) -> absl::Status {
          trailer.form += bytes.size();
          return summed(bytes);
        }));
    for (const std::string& text : {compiler_, options, name}) {
      RKNND_RETURN_IF_ERROR(summed(BytesOf(text)));
    }
    const auto end = std::as_bytes(std::span(&trailer, 1));
    sum.Update(end.first(kSummed));
    trailer.checksum = sum.Finish();
    return write(end);
  });
}

void ModelCache::RemoveCompiled(const ModelId& id) {
  (void)unlink(CompiledPathOf(id).c_str());
}

std::string ModelCache::PathOf(const ModelId& id) const {
  return absl::StrCat(folder_, "/", base::ToHex(id), kModelEnding);
}

std::string ModelCache::CompiledPathOf(const ModelId& id) const {
  const std::string compiler = base::ToHex(base::Sha256Of(BytesOf(compiler_)));
  return absl::StrCat(folder_, "/", base::ToHex(id), ".",
                      compiler.substr(0, 16), kCompiledEnding);
}

absl::Status ModelCache::WriteFile(
    const std::string& path, absl::FunctionRef<absl::Status(Write)> produce) {
  RKNND_RETURN_IF_ERROR(writable_);
  const std::string unfinished = absl::StrCat(path, ".", getpid(), ".tmp");
  // Of this process, from a write that failed: nobody else has the name.
  (void)unlink(unfinished.c_str());
  base::UniqueFd fd = disk_->Create(unfinished);
  if (!fd.valid()) return SystemError(errno, "create", unfinished);
  uint64_t size = 0;
  uint64_t room = 0;
  // A large form is written in many small pieces.
  std::vector<std::byte> gathered;
  gathered.reserve(kGathered);
  const auto flush = [&](std::span<const std::byte> bytes) -> absl::Status {
    const uint64_t end = size + bytes.size();
    if (end > limit_) return TooLarge();
    if (end > room) {
      room = MakeRoom(end, path);
      if (room < end) return Full();
    }
    while (!bytes.empty()) {
      const ssize_t put = disk_->Write(fd.get(), bytes, size);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return SystemError(errno, "write", unfinished);
      size += static_cast<uint64_t>(put);
      bytes = bytes.subspan(static_cast<size_t>(put));
    }
    return absl::OkStatus();
  };
  absl::Status written =
      produce([&](std::span<const std::byte> bytes) -> absl::Status {
        if (gathered.size() + bytes.size() > kGathered) {
          RKNND_RETURN_IF_ERROR(flush(gathered));
          gathered.clear();
        }
        if (bytes.size() >= kGathered) return flush(bytes);
        gathered.insert(gathered.end(), bytes.begin(), bytes.end());
        return absl::OkStatus();
      });
  if (written.ok()) written = flush(gathered);
  if (written.ok() && disk_->Rename(unfinished, path) != 0) {
    written = SystemError(errno, "rename", unfinished);
  }
  if (!written.ok()) (void)unlink(unfinished.c_str());
  return written;
}

absl::Status ModelCache::TooLarge() const {
  return absl::ResourceExhaustedError(
      absl::StrCat("a model is larger than the cache folder '", folder_,
                   "' may grow (", limit_.load(), " bytes)"));
}

absl::Status ModelCache::Full() const {
  return absl::ResourceExhaustedError(
      absl::StrCat("the cache folder '", folder_, "' has all of its ",
                   limit_.load(), " bytes, and nothing in it can be removed"));
}

void ModelCache::SetLimit(uint64_t bytes) {
  limit_ = bytes;
  // Nothing is replaced by nothing.
  MakeRoom(0, "");
}

uint64_t ModelCache::MakeRoom(uint64_t bytes, const std::string& replaced) {
  struct File {
    fs::file_time_type used;
    uint64_t size;
    fs::path path;
  };
  std::vector<File> files;
  const uint64_t limit = limit_;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    const fs::path ending = at->path().extension();
    if ((ending != kModelEnding && ending != kCompiledEnding) ||
        at->path() == replaced) {
      continue;
    }
    const uint64_t size = at->file_size(gone);
    if (gone) continue;
    files.push_back({at->last_write_time(gone), size, at->path()});
    total += size;
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (total <= limit - bytes) break;
    if (fs::remove(file.path, error)) total -= file.size;
  }
  return limit - std::min(total, limit);
}

}  // namespace rknnd::core
