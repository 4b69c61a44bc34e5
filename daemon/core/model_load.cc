// Reads, hashes and compiles a model on the loader thread. The bytes are a
// client's: immutable, and otherwise whatever it liked.

#include "daemon/core/model_load.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/sha256.h"
#include "base/status/status.h"

namespace rknnd::core {

bool ModelLoad::SameAs(const ModelLoad& other) const {
  return size == other.size && options == other.options;
}

void ModelLoad::Run(driver::Device& device, ModelCache* cache) {
  status = from_cache() ? ReadCache(cache) : ReadUpload();
  if (!status.ok()) {
    result = Result::kWrongBytes;
    return;
  }
  result = Result::kRefused;
  // Compilers of models are other people's code on a client's bytes.
  try {
    auto loaded = device.Load(contents_, options, name);
    if (!loaded.ok()) {
      status = std::move(loaded).status();
      return;
    }
    model = *std::move(loaded);
  } catch (const std::exception& error) {
    status = absl::InternalError(
        absl::StrCat("loading model '", name, "' failed: ", error.what()));
    return;
  }
  if (model->info().programs.empty()) {
    model = nullptr;
    status = absl::InternalError(
        absl::StrCat("model '", name, "' has no program to run"));
    return;
  }
  result = Result::kLoaded;
}

absl::Status ModelLoad::KeepInCache(ModelCache& cache) {
  return cache.Store(id, contents_, options, name);
}

absl::Status ModelLoad::ReadUpload() {
  RKNND_ASSIGN_OR_RETURN(
      mapping_, base::ToStatusOr(base::Mapping::OfFd(
                    bytes.get(), 0, size, base::Mapping::Access::kRead)));
  // A sparse memfd would be filled while it is read, and fail by a signal.
  RKNND_RETURN_IF_ERROR(
      base::ToStatus(mapping_.Populate(base::Mapping::Access::kRead)));
  contents_ = mapping_.bytes();
  if (const ModelId found = IdOf(contents_, options); found != id) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model '", name, "' has the SHA-256 ", base::ToHex(found), ", not ",
        base::ToHex(id),
        " as announced: did the file change while it was read? Load it again"));
  }
  return absl::OkStatus();
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
