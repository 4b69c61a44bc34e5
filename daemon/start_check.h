// What `rknnd --check-config` tries beside reading the file: to open what the
// daemon will open, as the user that the daemon becomes.

#ifndef DAEMON_START_CHECK_H_
#define DAEMON_START_CHECK_H_

#include "absl/status/status.h"
#include "daemon/config/config.h"

namespace rknnd {

// Changes nothing on the disk. Where root asks, this process is user
// `config.run_as` from then on, with no way back: a root's key opens for root
// alone, and the service is another.
// Thread: the only one.
absl::Status CheckStart(const Config& config);

}  // namespace rknnd

#endif  // DAEMON_START_CHECK_H_
