#include "driver/memory/physical.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/values/overflow.h"

namespace rknnd::driver {
namespace {

std::string Hex(uint64_t number) {
  return absl::StrCat("0x", absl::Hex(number));
}

}  // namespace

absl::Status CheckWindow(const PhysicalWindow& window) {
  if (window.size == 0) {
    return absl::InvalidArgumentError("'size' is 0");
  }
  if (!base::CheckedAdd(window.begin, window.size).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'begin' ", Hex(window.begin), " and 'size' ",
                     Hex(window.size), " end beyond all addresses"));
  }
  if (window.device.empty() || window.device.front() != '/') {
    return absl::InvalidArgumentError(absl::StrCat(
        "'device' is '", window.device, "', must be a path from the root"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PhysicalMemory> PhysicalMemory::Open(
    const std::vector<PhysicalWindow>& windows) {
  PhysicalMemory memory;
  for (const PhysicalWindow& window : windows) {
    if (absl::Status wrong = CheckWindow(window); !wrong.ok()) return wrong;
    memory.windows_.push_back(window);
    const auto is_it = [&](const Node& node) {
      return node.path == window.device;
    };
    if (std::any_of(memory.nodes_.begin(), memory.nodes_.end(), is_it)) {
      continue;
    }
    Node node;
    node.path = window.device;
    // Uncached, by O_SYNC: there is no call that would synchronise a cache with
    // memory of this kind, and hardware writes it.
    node.fd.reset(open(node.path.c_str(), O_RDWR | O_SYNC | O_CLOEXEC));
    struct stat file = {};
    if (!node.fd.valid() || fstat(node.fd.get(), &file) != 0) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat("open '", node.path, "' of 'physical_memory'"));
    }
    node.identity = {file.st_dev, file.st_ino};
    memory.nodes_.push_back(std::move(node));
  }
  return memory;
}

absl::StatusOr<PhysicalMemory::Place> PhysicalMemory::Find(
    uint32_t uid, uint64_t address, uint64_t size) const {
  if (size == 0) {
    return absl::InvalidArgumentError("physical memory of 0 bytes");
  }
  const std::string range =
      absl::StrCat(size, " bytes of physical memory at ", Hex(address));
  if (!base::CheckedAdd(address, size).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(range, " end beyond all addresses"));
  }
  std::string allowed;
  for (const PhysicalWindow& window : windows_) {
    if (window.uid != uid) continue;
    if (address >= window.begin &&
        base::RangeFits(address - window.begin, size, window.size)) {
      const auto node = std::find_if(
          nodes_.begin(), nodes_.end(),
          [&](const Node& each) { return each.path == window.device; });
      return Place{node->fd.get(), node->identity};
    }
    absl::StrAppend(&allowed, allowed.empty() ? "" : ", ", Hex(window.size),
                    " bytes at ", Hex(window.begin));
  }
  return absl::PermissionDeniedError(absl::StrCat(
      range, " are not allowed to uid ", uid,
      allowed.empty() ? "" : absl::StrCat(", which may have ", allowed),
      ": the daemon's configuration allows them by [[physical_memory]] with "
      "'uid', 'begin' and 'size'. A dma-buf needs no permission: use "
      "rknn_create_mem_from_fd where the memory has one"));
}

}  // namespace rknnd::driver
