// One attempt to load a model: where its bytes come from, and what became of
// it. Made by the registry on the loop, run on the loader thread, handed back.

#ifndef DAEMON_CORE_MODEL_LOAD_H_
#define DAEMON_CORE_MODEL_LOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/ledger.h"
#include "daemon/core/model_cache.h"
#include "daemon/core/types.h"
#include "driver/device.h"

namespace rknnd::core {

// Thread: one at a time; the loop until Run, the loader during it, the loop
// from its result on. Only KeepInCache comes after that, on the loader, and
// touches what the loop does not.
struct ModelLoad {
  enum class Result {
    kLoaded,
    kWrongBytes,  // not the model they were said to be
    kRefused,     // the device cannot load this model
  };

  // What to load. Without `bytes`: from the cache folder.
  ModelId id{};
  std::string name;
  std::string options;
  base::UniqueFd bytes;
  uint64_t size = 0;
  Charge charge;
  std::function<void(absl::Status)> warn;
  std::function<void(absl::Status)> done;

  // What became of it.
  Result result = Result::kRefused;
  absl::Status status;
  std::unique_ptr<driver::Model> model;

  [[nodiscard]] bool from_cache() const { return !bytes.valid(); }
  // Whether `other` would end alike: the same bytes and the same options. (The
  // id is the hash of both, one after the other.)
  [[nodiscard]] bool SameAs(const ModelLoad& other) const;

  // Thread: loader.
  void Run(driver::Device& device, ModelCache* cache);
  // After a successful Run of an upload. Thread: loader.
  absl::Status KeepInCache(ModelCache& cache);

 private:
  absl::Status ReadUpload();
  absl::Status ReadCache(ModelCache* cache);

  base::Mapping mapping_;
  ModelCache::Entry cached_;
  std::span<const std::byte> contents_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODEL_LOAD_H_
