// Where clients and operators connect: sockets that the service manager passed,
// or that it kept for a daemon before this one, or new ones at the configured
// paths. Used by main, on the loop's thread.

#ifndef DAEMON_PROCESS_LISTENERS_H_
#define DAEMON_PROCESS_LISTENERS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/config/config.h"
#include "daemon/process/fd_store.h"
#include "daemon/process/systemd.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/server.h"

namespace rknnd {

// All that the service manager passed, by what it is for.
struct SortedFds {
  std::vector<PassedFd> sockets;  // of socket units
  std::vector<PassedFd> own;      // that a daemon before this one made itself
  std::vector<PassedFd> models;   // FdStore's
};
// What is none of these is closed, and named in the log; a socket of the wrong
// kind is an error, as its unit would never serve anybody.
absl::StatusOr<SortedFds> SortFds(std::vector<PassedFd> passed, FdStore& store,
                                  transport::EventLog& log);

// Thread: loop.
class Listeners {
 public:
  // Both outlive it.
  Listeners(FdStore* store, transport::EventLog* log)
      : store_(store), log_(log) {}
  // Removes the names that it made, where they are still its own: a successor
  // may have them by now. Sockets that the service manager keeps are left their
  // names: who connects meanwhile is served by the successor.
  ~Listeners();
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  absl::Status Listen(const Config& config, std::vector<PassedFd> sockets,
                      std::vector<PassedFd> own,
                      transport::SessionServer& server);

 private:
  // A socket's name in the file system.
  struct Name {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
  };
  struct SocketFile {
    std::string path;
    mode_t mode = 0;
    std::optional<uint32_t> group;
    bool admin = false;
  };

  absl::Status Open(const SocketFile& socket_file, std::vector<PassedFd>& own,
                    transport::SessionServer& server);

  FdStore* const store_;
  transport::EventLog* const log_;
  std::vector<Name> names_;
};

}  // namespace rknnd

#endif  // DAEMON_PROCESS_LISTENERS_H_
