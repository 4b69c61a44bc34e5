// The keys of all sessions' buffers: made when an owner asks for one, gone when
// the owner gives the buffer up. Sessions and the transports look keys up that
// any client may have made up.

#ifndef DAEMON_CORE_MEMORY_BUFFER_KEYS_H_
#define DAEMON_CORE_MEMORY_BUFFER_KEYS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "daemon/core/memory/buffer_key.h"

namespace rknnd::core {

class Buffer;

// Holds buffers only as long as their numbers do, which Forget says.
// Thread: loop, but Find.
class BufferKeys {
 public:
  using Gone = std::function<void()>;
  using KeyGone = std::function<void(const BufferKey&)>;

  // The same for each question. UNAVAILABLE: the kernel has no random bits yet.
  absl::StatusOr<BufferKey> KeyOf(const std::shared_ptr<Buffer>& buffer);
  // NOT_FOUND for a key that is gone and for one that never was. Thread: any.
  [[nodiscard]] absl::StatusOr<std::shared_ptr<Buffer>> Find(
      const BufferKey& key) const;

  // `gone` is called once, when the owner gives the buffer of that key up, if
  // there is one. Numbers are never 0.
  uint64_t Watch(const BufferKey& key, Gone gone);
  void Unwatch(uint64_t watch);
  // Hears of all of them, after those who watch.
  void set_gone(KeyGone gone) { gone_ = std::move(gone); }

  // The owner has given it up. One without a key is none of ours.
  void Forget(const Buffer* buffer);

 private:
  struct Watcher {
    BufferKey key;
    Gone gone;
  };

  KeyGone gone_;
  uint64_t next_watch_ = 1;
  std::map<uint64_t, Watcher> watchers_;
  std::map<const Buffer*, BufferKey> keys_;

  mutable base::Mutex mutex_;
  // Hashed with a seed of the process: how long a wrong guess takes to be
  // refused says nothing about how near it was.
  absl::flat_hash_map<BufferKey, std::shared_ptr<Buffer>> buffers_
      RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_BUFFER_KEYS_H_
