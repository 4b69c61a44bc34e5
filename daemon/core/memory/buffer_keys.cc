// Makes keys out of the kernel's random bits and forgets them with their
// buffers. Nothing here tells one wrong key from another.

#include "daemon/core/memory/buffer_keys.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/core/memory/buffer_table.h"

namespace rknnd::core {

std::string ToText(const BufferKey& key) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(key.data()), key.size()));
}

std::optional<BufferKey> ParseBufferKey(std::string_view text) {
  BufferKey key;
  if (text.size() != 2 * key.size()) return std::nullopt;
  for (const char digit : text) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(digit))) {
      return std::nullopt;
    }
  }
  const std::string bytes =
      absl::HexStringToBytes(absl::string_view(text.data(), text.size()));
  std::memcpy(key.data(), bytes.data(), key.size());
  return key;
}

absl::StatusOr<BufferKey> BufferKeys::KeyOf(
    const std::shared_ptr<Buffer>& buffer) {
  if (const auto known = keys_.find(buffer.get()); known != keys_.end()) {
    return known->second;
  }
  BufferKey key;
  // So few bytes come whole, or not at all before the kernel is seeded; the
  // loop does not wait for that.
  if (getrandom(key.data(), key.size(), GRND_NONBLOCK) !=
      static_cast<ssize_t>(key.size())) {
    return absl::UnavailableError(absl::StrCat(
        "the kernel has no random bits for a buffer's key: ",
        std::strerror(errno), "; ask again once the system has started"));
  }
  keys_.emplace(buffer.get(), key);
  const base::MutexLock lock(mutex_);
  buffers_.emplace(key, buffer);
  return key;
}

absl::StatusOr<std::shared_ptr<Buffer>> BufferKeys::Find(
    const BufferKey& key) const {
  const base::MutexLock lock(mutex_);
  if (const auto found = buffers_.find(key); found != buffers_.end()) {
    return found->second;
  }
  return absl::NotFoundError(
      "no buffer has this key: its session has released it or ended, or the "
      "key is wrong; ask for it anew (rknnd_query_buffer_key)");
}

uint64_t BufferKeys::Watch(const BufferKey& key, Gone gone) {
  const uint64_t watch = next_watch_++;
  watchers_.emplace(watch, Watcher{key, std::move(gone)});
  return watch;
}

void BufferKeys::Unwatch(uint64_t watch) { watchers_.erase(watch); }

void BufferKeys::Forget(const Buffer* buffer) {
  const auto known = keys_.find(buffer);
  if (known == keys_.end()) return;
  const BufferKey key = known->second;
  keys_.erase(known);
  // The last of its holders may be this one: freed outside the lock.
  std::shared_ptr<Buffer> held;
  {
    const base::MutexLock lock(mutex_);
    const auto found = buffers_.find(key);
    held = std::move(found->second);
    buffers_.erase(found);
  }
  // Those who are told may watch and unwatch.
  std::vector<uint64_t> told;
  for (const auto& [watch, watcher] : watchers_) {
    if (watcher.key == key) told.push_back(watch);
  }
  for (const uint64_t watch : told) {
    auto node = watchers_.extract(watch);
    if (!node.empty()) node.mapped().gone();
  }
  if (gone_ != nullptr) gone_(key);
}

}  // namespace rknnd::core
