#include "driver/rknpu/kernel/npu_node.h"

#include <drm.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rknnd::rknpu {
namespace {

constexpr char kDriver[] = "rknpu";
// The other driver's: a fork of mainline's with the same calls, in which every
// open file has an address space of its own.
constexpr char kOtherDescription[] = "rkopnu";
constexpr char kMiscNode[] = "/dev/rknpu";

struct Identity {
  std::string name, description;
};

// Negative: an errno. The text need not end in the room it was given.
int Ask(KernelCalls& kernel, int fd, Identity* identity) {
  char name[64] = {};
  char date[64] = {};
  char description[128] = {};
  drm_version version = {};
  version.name = name;
  version.name_len = sizeof name - 1;
  version.date = date;
  version.date_len = sizeof date - 1;
  version.desc = description;
  version.desc_len = sizeof description - 1;
  const int result = kernel.RestartedIoctl(fd, DRM_IOCTL_VERSION, &version);
  if (result < 0) return result;
  identity->name = name;
  identity->description = description;
  return 0;
}

}  // namespace

absl::Status KernelError(int error, const std::string& what) {
  const std::string text =
      absl::StrCat("the NPU's driver: ", what, ": ", std::strerror(error));
  switch (error) {
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case ENODEV:
    case ENXIO:
    case EIO:
    case ESHUTDOWN:
      return absl::UnavailableError(text);
    case ENOTTY:
    case EOPNOTSUPP:
    case ENOSYS:
      return absl::UnimplementedError(text);
    case ENOENT:
      return absl::NotFoundError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::StatusOr<NpuNode> FindNpuNode(KernelCalls& kernel) {
  std::vector<std::string> paths, refused;
  // What a card node can beyond a render node is not wanted.
  for (const char* kind : {"renderD", "card"}) {
    for (const std::string& name : kernel.List("/dev/dri")) {
      if (absl::StartsWith(name, kind)) paths.push_back("/dev/dri/" + name);
    }
  }
  for (const std::string& path : paths) {
    const int fd = kernel.Open(path);
    if (fd < 0) {
      refused.push_back(
          absl::StrCat("'", path, "' (", std::strerror(-fd), ")"));
      continue;
    }
    Identity identity;
    const int asked = Ask(kernel, fd, &identity);
    kernel.Close(fd);
    if (asked < 0 || identity.name != kDriver) continue;
    if (absl::StartsWith(identity.description, kOtherDescription)) {
      return absl::UnimplementedError(absl::StrCat(
          "'", path,
          "' belongs to the driver 'rkopnu', which rknnd does not "
          "support yet: load the vendor's rknpu module, or boot the vendor's "
          "kernel"));
    }
    return NpuNode{path, /*drm=*/true, identity.description};
  }
  if (const int fd = kernel.Open(kMiscNode); fd >= 0) {
    kernel.Close(fd);
    return NpuNode{kMiscNode, /*drm=*/false, ""};
  } else if (fd != -ENOENT) {
    refused.push_back(
        absl::StrCat("'", kMiscNode, "' (", std::strerror(-fd), ")"));
  }
  for (const std::string& name : kernel.List("/dev/accel")) {
    const std::string path = "/dev/accel/" + name;
    const int fd = kernel.Open(path);
    if (fd < 0) continue;
    Identity identity;
    const int asked = Ask(kernel, fd, &identity);
    kernel.Close(fd);
    if (asked < 0 || identity.name != "rocket") continue;
    return absl::UnimplementedError(absl::StrCat(
        "'", path,
        "' belongs to the mainline driver 'rocket', which rknnd "
        "does not support yet: boot a kernel of the board's vendor, or load "
        "the rknpu module that is built outside the kernel"));
  }
  if (!refused.empty()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "no NPU among the nodes that can be opened; these cannot: ",
        absl::StrJoin(refused, ", "),
        ". If one of them is the NPU's, start rknnd as root or add its user "
        "to the node's group; applications need no access to it"));
  }
  return absl::NotFoundError("this kernel has no driver for an NPU");
}

}  // namespace rknnd::rknpu
