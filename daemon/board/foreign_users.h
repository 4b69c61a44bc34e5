// Who has the NPU's device open beside this daemon: programs with the vendor's
// driver of their own (RKLLM opens it itself), and the vendor's rknn_server. As
// far as the kernel tells: by the open files of all processes, which only root
// may see of other users. Asked at start and by 'rknnctl status', never on the
// loop: there may be thousands of files.

#ifndef DAEMON_BOARD_FOREIGN_USERS_H_
#define DAEMON_BOARD_FOREIGN_USERS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "daemon/core/service.h"
#include "daemon/core/terms/types.h"

namespace rknnd {

// Thread: any, one at a time.
class ForeignUsers final : public core::ForeignUserFinder {
 public:
  // `root`: "" or where a test keeps its /dev, /proc and /sys. `own`: this
  // process, which is not foreign, nor are its children.
  explicit ForeignUsers(std::string root = "");
  ForeignUsers(std::string root, pid_t own);

  // By process. The last may have pid 0: it stands for those that could not be
  // looked at, and `comm` says how many.
  std::vector<core::ForeignUser> Find() override;
  // Whether there was a node of the vendor's driver when this was made.
  [[nodiscard]] bool worthwhile() const override { return !nodes_.empty(); }

  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }

 private:
  const std::string root_;
  const pid_t own_;
  const std::vector<std::string> nodes_;  // "/dev/dri/renderD129"
};

// For a line of the log; empty when there is nobody.
std::string Describe(const std::vector<core::ForeignUser>& users);

}  // namespace rknnd

#endif  // DAEMON_BOARD_FOREIGN_USERS_H_
