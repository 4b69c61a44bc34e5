// See shared_file.h.

#include "tests/torture/shared_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "base/posix/unique_fd.h"

namespace rknnd::torture {
namespace {

base::Mapping Map(const std::string& path, int flags, size_t size) {
  const base::UniqueFd fd(open(path.c_str(), flags | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    throw std::runtime_error("cannot open '" + path + "'");
  }
  auto mapping =
      base::Mapping::OfFd(fd.get(), 0, size, base::Mapping::Access::kReadWrite);
  if (!mapping) throw std::runtime_error(mapping.error().message);
  return *std::move(mapping);
}

}  // namespace

base::Mapping MakeSharedFile(const std::string& path, size_t size) {
  unlink(path.c_str());
  return Map(path, O_CREAT | O_EXCL, size);
}

base::Mapping OpenSharedFile(const std::string& path, size_t size) {
  return Map(path, 0, size);
}

}  // namespace rknnd::torture
