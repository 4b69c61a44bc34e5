// See the header.

#include "daemon/start_check.h"

#include <fcntl.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "daemon/network/grpc_library.h"
#include "daemon/process/privileges.h"

namespace rknnd {
namespace {

absl::Status CheckRepository(const std::string& path) {
  const base::UniqueFd folder(
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) return absl::OkStatus();
  return base::ToStatus(base::ErrnoError(
      errno, absl::StrCat("models.repository: open folder '", path, "'")));
}

absl::Status OpenAll(const Config& config) {
  if (config.grpc.addresses.empty()) return absl::OkStatus();
  RKNND_RETURN_IF_ERROR(CheckGrpcServer(config.grpc));
  return config.grpc.model_repository.empty()
             ? absl::OkStatus()
             : CheckRepository(config.grpc.model_repository);
}

}  // namespace

absl::Status CheckStart(const Config& config) {
  // With the rights there are: also loads the library, which only root may be
  // able to find in a tree of root's.
  RKNND_RETURN_IF_ERROR(OpenAll(config));
  PrivilegeOptions options;
  options.user = config.run_as;
  RKNND_ASSIGN_OR_RETURN(Privileges privileges, Privileges::Prepare(options));
  const std::string user = privileges.Describe();
  if (user.empty()) return absl::OkStatus();
  RKNND_RETURN_IF_ERROR(privileges.Drop());
  const absl::Status status = OpenAll(config);
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(std::string(status.message()), "\nThat is what ", user,
                   " meets, which the daemon is ([service] user): let it read "
                   "what it needs, as 'chown ",
                   config.run_as, " FILE'"));
}

}  // namespace rknnd
