// Memory that requests name in place of tensors (shared_memory_region): buffers
// of sessions of this daemon, by their key (SystemSharedMemoryRegister with the
// key in hex, or the key itself as the region's name). A path or the name of
// POSIX shared memory is never opened: what a key names was checked when its
// session brought it.
//
// Names are the registering peer's own: another identity has others. Keys are
// whoever's who knows them. A client may scribble over its memory at any time.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_REGIONS_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_REGIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "daemon/core/memory/buffer_key.h"
#include "daemon/core/service.h"

namespace rknnd::transport {

struct GrpcPeer;

// Whose names a peer's regions have: the name it proved, or else, for all that
// have none, the kind of its address.
std::string RegionSpace(const GrpcPeer& peer);

// A window of somebody's buffer: what core::Session::AdoptBuffer takes, to be
// bound from `origin` on without a copy. May be held for as long as one likes,
// as it keeps no memory from going. Immutable. Thread: any.
class Region {
 public:
  Region(uint64_t id, std::string name, const core::BufferKey& key,
         uint64_t origin, uint64_t size)
      : id_(id),
        name_(std::move(name)),
        key_(key),
        origin_(origin),
        size_(size) {}

  [[nodiscard]] uint64_t id() const { return id_; }  // never reused
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const core::BufferKey& key() const { return key_; }
  [[nodiscard]] uint64_t origin() const { return origin_; }
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  const uint64_t id_;
  const std::string name_;
  const core::BufferKey key_;
  const uint64_t origin_, size_;
};

// What a region is on its way through:
//
//   Register, Find of a key --> there --Unregister, owner gone--> gone
//
class Regions {
 public:
  struct Status {
    std::string name;
    std::string key;  // its first digits: whoever asks need not know it
    uint64_t offset = 0, size = 0;
  };

  // `service` outlives it. Thread: loop.
  explicit Regions(core::Service* service);
  ~Regions();

  // ALREADY_EXISTS; NOT_FOUND: no such key; INVALID_ARGUMENT: the text is no
  // key, or the window does not lie in the buffer. Thread: any, as all below.
  absl::Status Register(const std::string& space, const std::string& name,
                        std::string_view key, uint64_t offset, uint64_t size);
  // Empty: all of `space`. NOT_FOUND.
  absl::Status Unregister(const std::string& space, const std::string& name);
  [[nodiscard]] absl::StatusOr<std::vector<Status>> List(
      const std::string& space, const std::string& name) const;
  // By name, or, where there is no such name, by key: the same region each
  // time. NOT_FOUND.
  [[nodiscard]] absl::StatusOr<std::shared_ptr<const Region>> Find(
      const std::string& space, std::string_view name);

  // Whether requests can name it still. Where not, `gone` has been called, or
  // will be.
  [[nodiscard]] bool Has(uint64_t id) const;

  // Called when no request can name a region any more, so that what was adopted
  // for it is released. Set before the server starts.
  using Gone = std::function<void(uint64_t id)>;
  void set_gone(Gone gone) { gone_ = std::move(gone); }

  // Nothing is there from now on, and nobody is told. Thread: loop.
  void Stop();

 private:
  using Name = std::pair<std::string, std::string>;  // space, name
  using WindowPtr = std::shared_ptr<const Region>;

  [[nodiscard]] absl::Status CheckNew(const Name& name) const
      RKNND_REQUIRES(mutex_);
  absl::StatusOr<std::shared_ptr<const Region>> FindKey(
      const core::BufferKey& key);
  // The owner may have given the buffer up between the look and the entry, when
  // nothing was there yet to be taken away: another look tells.
  absl::Status CheckStill(const core::BufferKey& key);
  void OnKeyGone(const core::BufferKey& key);
  void Tell(const std::vector<WindowPtr>& windows) const;

  core::Service* const service_;
  Gone gone_;
  mutable base::Mutex mutex_;
  bool stopped_ RKNND_GUARDED_BY(mutex_) = false;
  uint64_t next_id_ RKNND_GUARDED_BY(mutex_) = 1;
  std::map<Name, WindowPtr> named_ RKNND_GUARDED_BY(mutex_);
  std::map<core::BufferKey, WindowPtr> direct_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_REGIONS_H_
