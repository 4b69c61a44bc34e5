// What a daemon that was started as root gives up before it serves anybody.
// Called by main, twice: before the first thread, and when all that needs root
// is open. One that was not started as root has nothing to give up: the service
// manager's unit starts it as its own user.

#ifndef DAEMON_PROCESS_PRIVILEGES_H_
#define DAEMON_PROCESS_PRIVILEGES_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rknnd {

struct PrivilegeOptions {
  // Whom to become, by name or number; empty: nobody, a root stays root.
  std::string user;
  // Of the daemon's own, as for the model cache; made where they are missing.
  // Empty names are passed over.
  std::vector<std::string> folders;
};

//   Prepare          Drop
//   root --> root that cannot gain --> the user, with no capability
//
// The first step is each thread's own and is inherited by those made later; the
// second the C library does for all threads.
class Privileges {
 public:
  // Before any other thread is there. Makes the folders, and where there is a
  // user to become looks it up and gives them to it. What was started (a
  // worker, say) can gain no rights from here on.
  static absl::StatusOr<Privileges> Prepare(const PrivilegeOptions& options);

  // Files made in the folders since become the user's, and the process that
  // user's. Succeeds only if no thread can do more than the user could; after
  // an error the process must end.
  absl::Status Drop();

  // "user 'rknnd' (uid 996)"; empty: nothing is dropped.
  [[nodiscard]] std::string Describe() const;

 private:
  struct User {
    std::string name;
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;  // sorted, `gid` among them
  };

  Privileges(std::optional<User> user, std::vector<std::string> folders);
  static absl::StatusOr<User> Find(const std::string& name);
  static absl::Status MakeFolder(const std::string& path,
                                 const std::optional<User>& user);
  absl::Status GiveFiles(const std::string& folder) const;
  absl::Status Verify() const;
  absl::Status VerifyThread(const std::string& path) const;

  std::optional<User> user_;
  std::vector<std::string> folders_;
};

}  // namespace rknnd

#endif  // DAEMON_PROCESS_PRIVILEGES_H_
