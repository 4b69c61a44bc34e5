// Regions by name and by key. Names, keys and windows are clients' words; the
// sizes they are held against are the kernel's. Find is called for each request
// on gRPC's threads; owners give their buffers up on the loop.

#include "daemon/transport/grpc/inference/regions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/overflow.h"
#include "daemon/transport/grpc/authenticator.h"
#include "daemon/transport/session/translate.h"

namespace rknnd::transport {
namespace {

// Of one space, and of all. A client has a few for each stream it feeds; a
// status of all of them is one message.
constexpr size_t kNamesOfSpace = 256;
constexpr size_t kNames = 4096;
constexpr size_t kNameBytes = 255;
// Keys that requests named themselves; each is a number in a session. Beyond
// them the oldest makes room, and costs its next request a binding.
constexpr size_t kDirectKeys = 1024;
// Enough to tell one's own regions apart, and no help to who guesses.
constexpr size_t kShownDigits = 8;

std::string Shown(const core::BufferKey& key) {
  return core::ToText(key).substr(0, kShownDigits) + "...";
}

absl::Status NoRegion(std::string_view name) {
  return absl::NotFoundError(
      absl::StrCat("no shared memory region '", Printable(std::string(name)),
                   "' is registered: call SystemSharedMemoryRegister first, or "
                   "name a buffer's key (rknnd_query_buffer_key)"));
}

}  // namespace

Regions::Regions(core::Service* service) : service_(service) {
  service_->set_key_gone(
      [this](const core::BufferKey& key) { OnKeyGone(key); });
}

Regions::~Regions() { Stop(); }

absl::Status Regions::CheckNew(const Name& name) const {
  if (stopped_) return absl::UnavailableError("the server stops");
  if (named_.contains(name)) {
    return absl::AlreadyExistsError(
        absl::StrCat("shared memory region '", Printable(name.second),
                     "' is registered already: unregister it first"));
  }
  const auto of_space = std::count_if(
      named_.begin(), named_.end(),
      [&](const auto& one) { return one.first.first == name.first; });
  if (static_cast<size_t>(of_space) >= kNamesOfSpace ||
      named_.size() >= kNames) {
    return absl::ResourceExhaustedError(
        absl::StrCat(of_space,
                     " shared memory regions are registered here (of "
                     "at most ",
                     kNamesOfSpace, "), ", named_.size(), " in all (of ",
                     kNames, "): unregister what is not used, or name keys"));
  }
  return absl::OkStatus();
}

absl::Status Regions::Register(const std::string& space,
                               const std::string& name, std::string_view key,
                               uint64_t offset, uint64_t size) {
  if (name.empty() || name.size() > kNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shared memory region's name has 1 to ", kNameBytes,
                     " bytes, not ", name.size()));
  }
  const auto parsed = core::ParseBufferKey(key);
  if (!parsed.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key '", Printable(std::string(key.substr(0, kNameBytes))),
        "' of region '", Printable(name),
        "' is none: POSIX shared memory is not opened here. Create or import "
        "the memory over the session socket (rknn_create_mem, "
        "rknn_create_mem_from_fd) and give the 32 hexadecimal digits of "
        "rknnd_query_buffer_key"));
  }
  const Name full(space, name);
  {
    const base::MutexLock lock(mutex_);
    RKNND_RETURN_IF_ERROR(CheckNew(full));
  }
  RKNND_ASSIGN_OR_RETURN(const core::KeyedBuffer buffer,
                         service_->FindBuffer(*parsed));
  if (size == 0 || !base::RangeFits(offset, size, buffer.size)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "region '", Printable(name), "' of ", size, " bytes from ", offset,
        " does not lie in its buffer, which has ", buffer.size, " bytes"));
  }
  {
    const base::MutexLock lock(mutex_);
    RKNND_RETURN_IF_ERROR(CheckNew(full));
    named_[full] = std::make_shared<const Region>(next_id_++, Printable(name),
                                                  *parsed, offset, size);
  }
  return CheckStill(*parsed);
}

absl::Status Regions::CheckStill(const core::BufferKey& key) {
  absl::Status there = service_->FindBuffer(key).status();
  if (absl::IsNotFound(there)) OnKeyGone(key);
  return there;
}

absl::Status Regions::Unregister(const std::string& space,
                                 const std::string& name) {
  std::vector<WindowPtr> ended;
  {
    const base::MutexLock lock(mutex_);
    std::erase_if(named_, [&](const auto& one) {
      const bool goes = one.first.first == space &&
                        (name.empty() || one.first.second == name);
      if (goes) ended.push_back(one.second);
      return goes;
    });
  }
  if (ended.empty() && !name.empty()) return NoRegion(name);
  Tell(ended);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Regions::Status>> Regions::List(
    const std::string& space, const std::string& name) const {
  std::vector<Status> list;
  const base::MutexLock lock(mutex_);
  for (const auto& [full, window] : named_) {
    if (full.first != space || (!name.empty() && full.second != name)) continue;
    list.push_back(
        {full.second, Shown(window->key()), window->origin(), window->size()});
  }
  if (list.empty() && !name.empty()) return NoRegion(name);
  return list;
}

absl::StatusOr<std::shared_ptr<const Region>> Regions::Find(
    const std::string& space, std::string_view name) {
  {
    const base::MutexLock lock(mutex_);
    const auto found = named_.find(Name(space, name));
    if (found != named_.end()) return found->second;
  }
  const auto key = core::ParseBufferKey(name);
  if (!key.has_value()) return NoRegion(name);
  return FindKey(*key);
}

bool Regions::Has(uint64_t id) const {
  const auto is_it = [id](const auto& one) { return one.second->id() == id; };
  const base::MutexLock lock(mutex_);
  return std::any_of(named_.begin(), named_.end(), is_it) ||
         std::any_of(direct_.begin(), direct_.end(), is_it);
}

absl::StatusOr<std::shared_ptr<const Region>> Regions::FindKey(
    const core::BufferKey& key) {
  {
    const base::MutexLock lock(mutex_);
    if (const auto known = direct_.find(key); known != direct_.end()) {
      return known->second;
    }
  }
  RKNND_ASSIGN_OR_RETURN(const core::KeyedBuffer buffer,
                         service_->FindBuffer(key));
  WindowPtr window;
  std::vector<WindowPtr> ended;
  {
    const base::MutexLock lock(mutex_);
    if (stopped_) return absl::UnavailableError("the server stops");
    if (const auto known = direct_.find(key); known != direct_.end()) {
      return known->second;
    }
    if (direct_.size() >= kDirectKeys) {
      const auto oldest = std::min_element(
          direct_.begin(), direct_.end(), [](const auto& a, const auto& b) {
            return a.second->id() < b.second->id();
          });
      ended.push_back(oldest->second);
      direct_.erase(oldest);
    }
    window = std::make_shared<const Region>(next_id_++, Shown(key), key, 0,
                                            buffer.size);
    direct_[key] = window;
  }
  Tell(ended);
  RKNND_RETURN_IF_ERROR(CheckStill(key));
  return window;
}

void Regions::OnKeyGone(const core::BufferKey& key) {
  std::vector<WindowPtr> ended;
  {
    const base::MutexLock lock(mutex_);
    const auto goes = [&](const auto& one) {
      if (one.second->key() != key) return false;
      ended.push_back(one.second);
      return true;
    };
    std::erase_if(named_, goes);
    std::erase_if(direct_, goes);
  }
  Tell(ended);
}

void Regions::Tell(const std::vector<WindowPtr>& windows) const {
  for (const WindowPtr& window : windows) {
    if (gone_ != nullptr) gone_(window->id());
  }
}

void Regions::Stop() {
  service_->set_key_gone(nullptr);
  const base::MutexLock lock(mutex_);
  stopped_ = true;
  named_.clear();
  direct_.clear();
}

std::string RegionSpace(const GrpcPeer& peer) {
  if (!peer.name.empty()) return absl::StrCat("name ", peer.name);
  return absl::StartsWith(peer.address, "unix") ? "unix" : "tcp";
}

}  // namespace rknnd::transport
