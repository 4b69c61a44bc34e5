// Called under rknn_init and under the rebuild of a session, on the program's
// threads. The file is not trusted: it may change, shrink or vanish between
// two looks, so it is read and never mapped.

#include "client/target/model_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "base/values/model_options.h"
#include "base/values/overflow.h"
#include "proto/wire/codec.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::ErrnoError;
using base::Error;
using base::Expected;
using base::UniqueFd;

constexpr size_t kChunk = size_t{64} * 1024;
// What the API's sizes can say of bytes or of a slice; a file above it is no
// model, and hashing it would take minutes.
constexpr uint64_t kMaxModel = std::numeric_limits<uint32_t>::max();

Error TooSmall(uint64_t size) {
  return {Code::kInvalidArgument,
          "model of " + std::to_string(size) +
              " bytes is truncated. If you pass a path, size must be 0; if you "
              "pass a buffer, its length"};
}

struct OpenFile {
  UniqueFd fd;
  uint64_t size = 0;
};

Expected<OpenFile> OpenModel(const std::string& path) {
  OpenFile file;
  do {
    file.fd.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  } while (!file.fd.valid() && errno == EINTR);
  if (!file.fd.valid()) return ErrnoError(errno, "open model '" + path + "'");
  struct stat status {};
  if (fstat(file.fd.get(), &status) != 0) {
    return ErrnoError(errno, "look at model '" + path + "'");
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{
        Code::kInvalidArgument,
        "model '" + path + "' is no regular file: give the model file"};
  }
  file.size = static_cast<uint64_t>(status.st_size);
  return file;
}

// Calls use(bytes) for all of [offset, offset + size), in order.
template <class Use>
Expected<void> ReadThrough(const UniqueFd& fd, const std::string& path,
                           uint64_t offset, uint64_t size, Use use) {
  std::vector<std::byte> chunk(
      static_cast<size_t>(std::min<uint64_t>(kChunk, size)));
  while (size > 0) {
    const size_t want = static_cast<size_t>(std::min<uint64_t>(kChunk, size));
    const ssize_t got =
        pread(fd.get(), chunk.data(), want, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read model '" + path + "'");
    if (got == 0) {
      return Error{Code::kDataLoss,
                   "model '" + path + "' became shorter while it was read"};
    }
    const size_t part = static_cast<size_t>(got);
    if (Expected<void> used = use(std::span(chunk.data(), part)); !used.ok()) {
      return used;
    }
    offset += part;
    size -= part;
  }
  return {};
}

// The text of the options file beside `path`; empty when there is none.
Expected<std::string> ReadOptions(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  const bool has_ending =
      dot != std::string::npos && (slash == std::string::npos || dot > slash);
  const std::string beside =
      path.substr(0, has_ending ? dot : path.size()) + ".yml";
  if (beside == path) return std::string();
  UniqueFd fd(open(beside.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return std::string();
  if (!fd.valid()) return ErrnoError(errno, "open options '" + beside + "'");
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) {
    return ErrnoError(errno, "look at options '" + beside + "'");
  }
  if (!S_ISREG(status.st_mode)) return std::string();
  if (static_cast<uint64_t>(status.st_size) > wire::kMaxModelOptions) {
    return Error{Code::kInvalidArgument,
                 "options '" + beside + "' have " +
                     std::to_string(status.st_size) + " bytes: at most " +
                     std::to_string(wire::kMaxModelOptions)};
  }
  std::string text;
  Expected<void> read = ReadThrough(
      fd, beside, 0, static_cast<uint64_t>(status.st_size),
      [&text](std::span<const std::byte> part) -> Expected<void> {
        text.append(reinterpret_cast<const char*>(part.data()), part.size());
        return {};
      });
  if (!read.ok()) return std::move(read).error();
  return text;
}

void HashOptions(base::Sha256& hash, const std::string& options) {
  hash.Update(std::as_bytes(std::span(options.data(), options.size())));
}

// `path` as it will be found after the program has changed its folder.
std::string AbsolutePath(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  std::string result = resolved != nullptr ? resolved : path;
  free(resolved);  // NOLINT(cppcoreguidelines-no-malloc): realpath's
  return result;
}

ModelSlice WholeOr(std::optional<ModelSlice> slice, uint64_t size) {
  return slice ? *slice : ModelSlice{0, size};
}

std::optional<ModelSlice> IfInside(std::optional<ModelSlice> slice,
                                   uint64_t size) {
  if (slice && slice->size > 0 &&
      base::RangeFits(slice->offset, slice->size, size)) {
    return slice;
  }
  return std::nullopt;
}

}  // namespace

Expected<std::shared_ptr<ModelSource>> ModelSource::OfFile(
    const std::string& path, std::optional<ModelSlice> slice) {
  Expected<OpenFile> file = OpenModel(path);
  if (!file.ok()) return std::move(file).error();
  if (file->size == 0) {
    return Error{Code::kInvalidArgument,
                 "model '" + path + "' of 0 bytes is truncated"};
  }
  Expected<std::string> options = ReadOptions(path);
  if (!options.ok()) return std::move(options).error();

  std::shared_ptr<ModelSource> source(new ModelSource);
  source->path_ = AbsolutePath(path);
  source->name_ = path.substr(path.rfind('/') + 1);
  source->slice_ = IfInside(slice, file->size);
  source->options_ = *std::move(options);
  const ModelSlice part = WholeOr(source->slice_, file->size);
  if (part.size > kMaxModel) {
    return Error{Code::kInvalidArgument,
                 "model '" + path + "' of " + std::to_string(part.size) +
                     " bytes is larger than the 4 GiB a model can have"};
  }
  base::Sha256& hash = source->hash_;
  Expected<void> read =
      ReadThrough(file->fd, path, part.offset, part.size,
                  [&hash](std::span<const std::byte> bytes) -> Expected<void> {
                    hash.Update(bytes);
                    return {};
                  });
  if (!read.ok()) return std::move(read).error();
  HashOptions(hash, source->options_);
  source->id_ = base::Sha256(hash).Finish();
  return source;
}

Expected<std::shared_ptr<ModelSource>> ModelSource::OfBytes(
    std::span<const std::byte> bytes, std::optional<ModelSlice> slice) {
  if (const auto inside = IfInside(slice, bytes.size())) {
    bytes = bytes.subspan(static_cast<size_t>(inside->offset),
                          static_cast<size_t>(inside->size));
  }
  if (bytes.empty()) return TooSmall(0);
  std::shared_ptr<ModelSource> source(new ModelSource);
  source->bytes_ = bytes;
  source->hash_.Update(bytes);
  source->id_ = base::Sha256(source->hash_).Finish();
  return source;
}

Expected<std::shared_ptr<ModelSource>> ModelSource::ForCustomOperators(
    const std::shared_ptr<ModelSource>& of,
    const base::CustomOperatorsOption& custom) {
  const std::shared_ptr<ModelSource>& plain =
      of->plain_ == nullptr ? of : of->plain_;
  if (!plain->has_bytes()) {
    return Error{Code::kFailedPrecondition,
                 "the model was given as bytes, which are no longer there, and "
                 "has no operator that rknnd lacks: to override one that it "
                 "has, give rknn_init the path of the model's file"};
  }
  std::shared_ptr<ModelSource> source(new ModelSource);
  if (plain->kept_.valid()) {
    Expected<UniqueFd> kept = base::Duplicate(plain->kept_.get());
    if (!kept.ok()) return std::move(kept).error();
    source->kept_ = *std::move(kept);
  }
  source->plain_ = plain;
  source->path_ = plain->path_;
  source->name_ = plain->name_;
  source->slice_ = plain->slice_;
  source->owner_ = plain->owner_;
  source->hash_ = plain->hash_;
  source->options_ = base::WithCustomOperators(plain->options_, custom);
  HashOptions(source->hash_, source->options_.substr(plain->options_.size()));
  source->id_ = base::Sha256(source->hash_).Finish();
  return source;
}

void ModelSource::ShareWeightsOf(std::shared_ptr<ModelSource> owner) {
  owner_ = std::move(owner);
  const size_t hashed = options_.size();
  options_ = base::WithWeightsOf(std::move(options_), owner_->id());
  HashOptions(hash_, options_.substr(hashed));
  id_ = base::Sha256(hash_).Finish();
}

std::shared_ptr<ModelSource> ModelSource::OfId(const ModelId& id) {
  std::shared_ptr<ModelSource> source(new ModelSource);
  source->id_ = id;
  source->id_only_ = true;
  return source;
}

Expected<UniqueFd> ModelSource::CopyFile() const {
  Expected<OpenFile> file = OpenModel(path_);
  if (!file.ok()) return std::move(file).error();
  Expected<UniqueFd> memfd = base::MakeGrowingMemfd("rknnd-model");
  if (!memfd.ok()) return memfd;
  const ModelSlice part = WholeOr(slice_, file->size);
  base::Sha256 hash;
  Expected<void> copied =
      ReadThrough(file->fd, path_, part.offset, part.size,
                  [&](std::span<const std::byte> bytes) -> Expected<void> {
                    hash.Update(bytes);
                    return base::AppendToMemfd(memfd->get(), bytes);
                  });
  if (!copied.ok()) return std::move(copied).error();
  HashOptions(hash, options_);
  if (hash.Finish() != id_) {
    return Error{Code::kFailedPrecondition,
                 "model '" + path_ +
                     "' is not what it was when it was loaded: the daemon "
                     "needs those bytes again; call rknn_init anew"};
  }
  if (auto sealed = base::SealMemfd(memfd->get()); !sealed.ok()) {
    return std::move(sealed).error();
  }
  return memfd;
}

Expected<UniqueFd> ModelSource::ToMemfd() {
  if (kept_.valid()) return base::Duplicate(kept_.get());
  if (!path_.empty()) return CopyFile();
  if (id_only_) {
    return Error{Code::kNotFound,
                 "the daemon does not have model " +
                     base::ToHex(id_).substr(0, 12) +
                     " of this token (any more): hand the token over while a "
                     "context of the model exists, or use rknn_init with the "
                     "model's file"};
  }
  if (bytes_.empty()) {
    return Error{Code::kFailedPrecondition,
                 "the daemon lost model " + base::ToHex(id_).substr(0, 12) +
                     ", which was given as bytes and is no longer there; call "
                     "rknn_init anew"};
  }
  return base::MakeImmutableMemfd("rknnd-model", bytes_);
}

Expected<void> ModelSource::KeepBytes() {
  if (kept_.valid() || bytes_.empty()) return {};
  Expected<UniqueFd> memfd = base::MakeImmutableMemfd("rknnd-model", bytes_);
  if (!memfd.ok()) return std::move(memfd).error();
  kept_ = *std::move(memfd);
  return {};
}

}  // namespace rknnd::client
