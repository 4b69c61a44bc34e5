// Reads, hashes and compiles a model on the loaders' threads. The bytes are a
// client's: immutable, and otherwise whatever it liked.

#include "daemon/core/models/model_load.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/map_count.h"
#include "base/status/status.h"
#include "base/values/model_options.h"
#include "base/values/sha256.h"

namespace rknnd::core {

std::string NameForMessages(const std::string& name, const ModelId& id) {
  constexpr size_t kDigits = 8;
  if (!name.empty()) return name;
  return absl::StrCat("bytes-", base::ToHex(id).substr(0, kDigits));
}

namespace {

// All of a sealed memfd.
absl::StatusOr<base::Mapping> MapUpload(const base::UniqueFd& fd) {
  struct stat file {};
  if (fstat(fd.get(), &file) != 0 || file.st_size <= 0) {
    return absl::InvalidArgumentError("a model of 0 bytes was uploaded");
  }
  RKNND_ASSIGN_OR_RETURN(base::Mapping mapping,
                         base::ToStatusOr(base::Mapping::OfFd(
                             fd.get(), 0, static_cast<size_t>(file.st_size),
                             base::Mapping::Access::kRead)));
  // A sparse memfd would be filled while it is read, and fail by a signal.
  RKNND_RETURN_IF_ERROR(
      base::ToStatus(mapping.Populate(base::Mapping::Access::kRead)));
  return mapping;
}

// MODEL.yml is a page of text.
constexpr uint64_t kMaxOptions = uint64_t{64} << 10;

// Of a file that the configuration names.
absl::StatusOr<base::Mapping> ReadWhole(const std::string& path,
                                        uint64_t largest) {
  const auto failed = [&path](const char* call) {
    return base::ToStatus(
        base::ErrnoError(errno, absl::StrCat(call, " '", path, "'")));
  };
  const base::UniqueFd fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return failed("open");
  struct stat file {};
  if (fstat(fd.get(), &file) != 0) return failed("stat");
  const auto size = static_cast<uint64_t>(file.st_size);
  if (!S_ISREG(file.st_mode) || size == 0 || size > largest) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is no file of 1 to ", largest, " bytes"));
  }
  // Not mapped from the file: its bytes must stay those that are hashed.
  RKNND_ASSIGN_OR_RETURN(
      base::Mapping mapping,
      base::ToStatusOr(base::Mapping::Anonymous(static_cast<size_t>(size))));
  size_t at = 0;
  while (at < mapping.size()) {
    const ssize_t got = pread(fd.get(), mapping.data() + at,
                              mapping.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read");
    if (got == 0) {
      return absl::DataLossError(
          absl::StrCat("'", path, "' became shorter while it was read"));
    }
    at += static_cast<size_t>(got);
  }
  return mapping;
}

// Libraries that compile models do not look whether what they map is there. Of
// what the process may have, the last eighth is theirs while they do, and of
// what it does meanwhile.
absl::Status CheckMappings(const std::string& title) {
  static const uint64_t most = base::MostMappings();
  const uint64_t have = base::CountMappings();
  if (have <= most - most / 8 || most == 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "model '", title, "': the daemon has ", have, " of the ", most,
      " mappings that the kernel allows it, and needs the last ", most / 8,
      " to load models: unload some, release buffers, or raise "
      "vm.max_map_count"));
}

}  // namespace

bool ModelLoad::SameAs(const ModelLoad& other) const {
  return size == other.size && options == other.options;
}

absl::StatusOr<std::shared_ptr<ModelLoad>> ModelLoad::OfFile(
    const std::string& path, uint64_t largest) {
  auto load = std::make_shared<ModelLoad>();
  RKNND_ASSIGN_OR_RETURN(load->file_, ReadWhole(path, largest));
  const std::filesystem::path name(path);
  auto beside = name;
  beside.replace_extension(".yml");
  std::error_code error;
  if (beside != name && std::filesystem::is_regular_file(beside, error) &&
      std::filesystem::file_size(beside, error) > 0) {
    RKNND_ASSIGN_OR_RETURN(const base::Mapping text,
                           ReadWhole(beside.string(), kMaxOptions));
    load->options.assign(reinterpret_cast<const char*>(text.data()),
                         text.size());
  }
  load->name = name.filename().string();
  load->contents_ = load->file_.bytes();
  load->size = load->contents_.size();
  load->id = IdOf(load->contents_, load->options);
  return load;
}

absl::Status ModelLoad::LoadWith(driver::Device& device,
                                 const driver::LoadRequest& request) {
  RKNND_RETURN_IF_ERROR(CheckMappings(title()));
  // Compilers of models are other people's code on a client's bytes.
  try {
    RKNND_ASSIGN_OR_RETURN(model, device.Load(request));
  } catch (const std::exception& error) {
    return absl::InternalError(
        absl::StrCat("loading model '", title(), "' failed: ", error.what()));
  }
  if (!model->info().programs.empty()) return absl::OkStatus();
  model = nullptr;
  return absl::InternalError(
      absl::StrCat("model '", title(), "' has no program to run"));
}

bool ModelLoad::RunCompiled(driver::Device& device, ModelCache& cache) {
  auto compiled = cache.ReadCompiled(id);
  if (!compiled.ok()) {
    if (!absl::IsNotFound(compiled.status())) unusable_ = compiled.status();
    return false;
  }
  name = compiled->name;
  options = compiled->options;
  driver::LoadRequest request;
  request.name = title();
  request.options = options;
  request.compiled = compiled->form;
  request.compiled_keeper = compiled->file;
  request.sha256 = base::ToHex(id);
  absl::Status loaded = LoadWith(device, request);
  // It has just been written by this very compiler: what it cannot load is
  // damaged in a way that no checksum shows.
  if (!loaded.ok() && !absl::IsResourceExhausted(loaded)) {
    cache.RemoveCompiled(id);
  }
  const bool good = loaded.ok();
  if (!good) unusable_ = std::move(loaded);
  return good;
}

bool ModelLoad::MayRestore(const ModelCache* cache) const {
  return (!bytes.valid() || kept) && !copies_weights && cache != nullptr &&
         cache->ContainsCompiled(id);
}

bool ModelLoad::Restore(driver::Device& device, ModelCache& cache) {
  restored_ = RunCompiled(device, cache);
  if (restored_) {
    result = Result::kLoaded;
    return true;
  }
  // To compile it takes more memory still.
  if (!absl::IsResourceExhausted(unusable_)) return false;
  status = std::exchange(unusable_, absl::OkStatus());
  result = Result::kRefused;
  return true;
}

void ModelLoad::Run(driver::Device& device, ModelCache* cache) {
  if (!file_.valid()) status = from_cache() ? ReadCache(cache) : ReadUpload();
  if (status.ok()) status = ReadOwner(cache);
  if (!status.ok()) {
    result = Result::kWrongBytes;
    return;
  }
  result = Result::kRefused;
  driver::LoadRequest request;
  request.bytes = contents_;
  request.options = options;
  request.name = title();
  request.sha256 = base::ToHex(id);
  request.weights_of = owner_contents_;
  request.share_weights = !copies_weights || owner_.has_value();
  status = LoadWith(device, request);
  if (status.ok()) result = Result::kLoaded;
}

absl::Status ModelLoad::KeepInCache(ModelCache& cache, driver::Model& loaded) {
  if (restored_) return absl::OkStatus();
  // It is loaded again with the model whose weights it shares.
  if (weights_of.valid() && !cache.Contains(*owner_)) {
    RKNND_RETURN_IF_ERROR(
        cache.Store(*owner_, owner_contents_, weights_of_options, ""));
  }
  const bool may_be_there = file_.valid() || kept;
  if (!from_cache() && !(may_be_there && cache.Contains(id))) {
    RKNND_RETURN_IF_ERROR(cache.Store(id, contents_, options, name));
  }
  const absl::Status compiled = cache.StoreCompiled(
      id, options, name,
      [&](ModelCache::Write write) { return loaded.WriteCompiled(write); },
      loaded.info().weight_size);
  // A file that is only described has no compiled form.
  return absl::IsUnimplemented(compiled) ? absl::OkStatus() : compiled;
}

void ModelLoad::LetGo() {
  contents_ = owner_contents_ = {};
  for (base::Mapping* mapping : {&file_, &mapping_, &owner_mapping_,
                                 &cached_.memory, &owner_cached_.memory}) {
    *mapping = base::Mapping();
  }
  bytes.reset();
  weights_of.reset();
}

absl::Status ModelLoad::ReadUpload() {
  RKNND_ASSIGN_OR_RETURN(mapping_, MapUpload(bytes));
  contents_ = mapping_.bytes();
  if (const ModelId found = IdOf(contents_, options); found != id) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model '", title(), "' has the SHA-256 ", base::ToHex(found), ", not ",
        base::ToHex(id),
        " as announced: did the file change while it was read? Load it again"));
  }
  return absl::OkStatus();
}

absl::Status ModelLoad::ReadOwner(ModelCache* cache) {
  RKNND_ASSIGN_OR_RETURN(const base::ModelOptionsText text,
                         base::ToStatusOr(base::SplitModelOptions(options)));
  owner_ = text.weights_of;
  if (!owner_.has_value()) return absl::OkStatus();
  if (weights_of.valid()) {
    RKNND_RETURN_IF_ERROR(ReadUploadedOwner());
  } else {
    auto cached = cache != nullptr
                      ? cache->Read(*owner_)
                      : absl::StatusOr<ModelCache::Entry>(
                            absl::NotFoundError("no cache folder"));
    if (!cached.ok()) {
      return absl::NotFoundError(absl::StrCat(
          "model '", title(), "' shares the weights of model ",
          base::ToHex(*owner_), ", which is not in the cache folder (",
          std::string(cached.status().message()), "): upload it too"));
    }
    owner_cached_ = *std::move(cached);
    owner_contents_ = owner_cached_.bytes();
    weights_of_options = owner_cached_.options;
  }
  RKNND_ASSIGN_OR_RETURN(
      const base::ModelOptionsText owners,
      base::ToStatusOr(base::SplitModelOptions(weights_of_options)));
  if (!owners.weights_of.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model '", title(), "' shares the weights of model ",
      base::ToHex(*owner_), ", which shares those of model ",
      base::ToHex(*owners.weights_of), " itself: share that one's"));
}

absl::Status ModelLoad::ReadUploadedOwner() {
  RKNND_ASSIGN_OR_RETURN(owner_mapping_, MapUpload(weights_of));
  owner_contents_ = owner_mapping_.bytes();
  // Else somebody could give a model wrong weights under its own name.
  const ModelId found = IdOf(owner_contents_, weights_of_options);
  if (found == *owner_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model '", title(), "' shares the weights of model ",
      base::ToHex(*owner_), ", but what came with it has the SHA-256 ",
      base::ToHex(found),
      ": did the file change while it was read? Load both again"));
}

absl::Status ModelLoad::ReadCache(ModelCache* cache) {
  if (cache == nullptr) return absl::NotFoundError("no cache folder");
  RKNND_ASSIGN_OR_RETURN(cached_, cache->Read(id));
  contents_ = cached_.bytes();
  size = contents_.size();
  options = cached_.options;
  name = cached_.name;
  return absl::OkStatus();
}

}  // namespace rknnd::core
