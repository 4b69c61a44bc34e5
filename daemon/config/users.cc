// See the header.

#include "daemon/config/users.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "absl/strings/numbers.h"

namespace rknnd {
namespace {

// An entry of passwd or group; no system's is larger by much, and it grows.
constexpr size_t kRoom = 4096;
constexpr size_t kMostRoom = size_t{1} << 20;

// What getpwnam_r and its like know by `key`, as `take` makes it of the entry:
// that points into the room.
template <class Entry, class Key, class Look, class Take>
auto Find(Key key, Look look, Take take)
    -> std::optional<decltype(take(Entry()))> {
  for (size_t room = kRoom; room <= kMostRoom; room *= 4) {
    std::vector<char> buffer(room);
    Entry entry{};
    Entry* found = nullptr;
    const int error = look(key, &entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    if (found == nullptr) break;
    return take(*found);
  }
  return std::nullopt;
}

UserEntry EntryOf(const passwd& entry) {
  return {entry.pw_name, entry.pw_uid, entry.pw_gid};
}

}  // namespace

std::optional<UserEntry> FindUserNamed(const std::string& name) {
  return Find<passwd>(name.c_str(), getpwnam_r, EntryOf);
}

std::optional<UserEntry> FindUser(const std::string& name) {
  uint32_t uid = 0;
  if (!absl::SimpleAtoi(name, &uid)) return FindUserNamed(name);
  return Find<passwd>(uid, getpwuid_r, EntryOf);
}

std::optional<uint32_t> FindGroupNamed(const std::string& name) {
  return Find<::group>(name.c_str(), getgrnam_r,
                       [](const ::group& entry) { return entry.gr_gid; });
}

}  // namespace rknnd
