// See the header.

#include "daemon/process/fd_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/posix/memfd.h"
#include "base/values/sha256.h"

namespace rknnd {
namespace {

constexpr absl::string_view kModel = "model-", kAbout = "about-";
// A file's name, and options: a page of text.
constexpr uint64_t kLongestAbout = uint64_t{128} << 10;

std::string NameOf(absl::string_view kind, const core::ModelId& id) {
  return absl::StrCat(kind, base::ToHex(id));
}

// The id of a name without its kind.
std::optional<core::ModelId> IdOf(absl::string_view hex) {
  core::ModelId id{};
  if (hex.size() != 2 * id.size() ||
      hex.find_first_not_of("0123456789abcdef") != absl::string_view::npos) {
    return std::nullopt;
  }
  const std::string bytes = absl::HexStringToBytes(hex);
  std::copy(bytes.begin(), bytes.end(), id.begin());
  return id;
}

// 0: no memfd that nobody can change, or an empty one.
uint64_t SizeOf(const base::UniqueFd& fd) {
  struct stat file {};
  if (!base::HasSeals(fd.get(), base::Seals::kImmutable) ||
      fstat(fd.get(), &file) != 0 || file.st_size <= 0) {
    return 0;
  }
  return static_cast<uint64_t>(file.st_size);
}

bool ReadAbout(const base::UniqueFd& fd, core::KeptModel& model) {
  const uint64_t size = SizeOf(fd);
  if (size == 0 || size > kLongestAbout) return false;
  std::string text(static_cast<size_t>(size), '\0');
  for (size_t at = 0; at < text.size();) {
    const ssize_t got = pread(fd.get(), text.data() + at, text.size() - at,
                              static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  const size_t line = text.find('\n');
  if (line == std::string::npos) return false;
  model.name = text.substr(0, line);
  model.options = text.substr(line + 1);
  return true;
}

}  // namespace

bool FdStore::IsModel(const std::string& name) {
  absl::string_view rest = name;
  return (absl::ConsumePrefix(&rest, kModel) ||
          absl::ConsumePrefix(&rest, kAbout)) &&
         IdOf(rest).has_value();
}

void FdStore::Adopt(std::vector<PassedFd> models) {
  struct Pair {
    base::UniqueFd bytes, about;
  };
  std::map<core::ModelId, Pair> pairs;
  for (PassedFd& passed : models) {
    absl::string_view rest = passed.name;
    const bool bytes = absl::ConsumePrefix(&rest, kModel);
    if (!bytes) absl::ConsumePrefix(&rest, kAbout);
    const std::optional<core::ModelId> id = IdOf(rest);
    if (!id.has_value()) continue;
    Pair& pair = pairs[*id];
    (bytes ? pair.bytes : pair.about) = std::move(passed.fd);
  }
  for (auto& [id, pair] : pairs) {
    Kept kept;
    kept.size = SizeOf(pair.bytes);
    if (kept.size == 0 || kept.size > limits_.bytes ||
        !ReadAbout(pair.about, kept.model)) {
      log_->Write(transport::Severity::kWarning,
                  absl::StrCat("what the service manager kept of model ",
                               base::ToHex(id),
                               " is not what rknnd gave it: its clients send "
                               "it again"));
      Remove(NameOf(kModel, id));
      Remove(NameOf(kAbout, id));
      continue;
    }
    kept.model.bytes = std::move(pair.bytes);
    kept.model.size = kept.size;
    Enter(id, std::move(kept));
  }
}

void FdStore::DropUnused() {
  std::vector<core::ModelId> unused;
  for (const auto& [id, kept] : kept_) {
    if (kept.model.bytes.valid()) unused.push_back(id);
  }
  for (const core::ModelId& id : unused) LetGo(id);
}

void FdStore::Store(const std::string& name, int fd) {
  if (!keeps() || frozen_) return;
  notify_(absl::StrCat("FDSTORE=1\nFDNAME=", name), {&fd, 1});
}

void FdStore::Remove(const std::string& name) {
  if (!keeps() || frozen_) return;
  notify_(absl::StrCat("FDSTOREREMOVE=1\nFDNAME=", name), {});
}

void FdStore::Enter(const core::ModelId& id, Kept kept) {
  MakeRoom(kept.size);
  bytes_ += kept.size;
  kept.order = next_order_++;
  kept_[id] = std::move(kept);
}

void FdStore::MakeRoom(uint64_t size) {
  while (!kept_.empty() &&
         (kept_.size() >= limits_.models || bytes_ + size > limits_.bytes)) {
    LetGo(std::min_element(kept_.begin(), kept_.end(),
                           [](const auto& a, const auto& b) {
                             return a.second.order < b.second.order;
                           })
              ->first);
  }
}

void FdStore::Keep(const core::ModelId& id, int bytes, uint64_t size,
                   const std::string& name, const std::string& options) {
  if (!keeps() || size > limits_.bytes) return;
  // Sent again though it was there.
  LetGo(id);
  const std::string text = absl::StrCat(name, "\n", options);
  // A name is a client's word; with a line break in it the halves would move.
  if (name.find('\n') != std::string::npos || text.size() > kLongestAbout) {
    return;
  }
  auto about = base::MakeImmutableMemfd(
      "rknnd-about", std::as_bytes(std::span(text.data(), text.size())));
  // It is not kept then, and is sent again after a restart.
  if (!about.ok()) return;
  Kept kept;
  kept.size = size;
  Enter(id, std::move(kept));
  Store(NameOf(kModel, id), bytes);
  Store(NameOf(kAbout, id), about->get());
}

std::optional<core::KeptModel> FdStore::Take(const core::ModelId& id) {
  const auto found = kept_.find(id);
  if (found == kept_.end() || !found->second.model.bytes.valid()) {
    return std::nullopt;
  }
  return std::exchange(found->second.model, core::KeptModel());
}

void FdStore::LetGo(const core::ModelId& id) {
  const auto found = kept_.find(id);
  if (found == kept_.end()) return;
  const core::ModelId gone = id;  // which may be the entry's own
  bytes_ -= found->second.size;
  kept_.erase(found);
  Remove(NameOf(kModel, gone));
  Remove(NameOf(kAbout, gone));
}

}  // namespace rknnd
