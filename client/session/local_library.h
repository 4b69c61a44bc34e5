// Loads librknnd-local.so, the whole daemon as a library, for the target
// `local:`. Nothing of it is linked: a program that talks to a daemon does not
// carry one.

#ifndef CLIENT_SESSION_LOCAL_LIBRARY_H_
#define CLIENT_SESSION_LOCAL_LIBRARY_H_

#include <string>

#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::client {

// A socket to the daemon in this process, started if need be. The library is
// looked for beside this one first, then where the loader looks. It stays
// loaded. Thread: any.
base::Expected<base::UniqueFd> ConnectLocal(const std::string& sharing);

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_LOCAL_LIBRARY_H_
