// Sockets that nothing is received from: for words to a log, and for a knock at
// a door. Made in socket.cc, as all sockets are.

#ifndef BASE_POSIX_SEND_ONLY_H_
#define BASE_POSIX_SEND_ONLY_H_

#include <string>

#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::base {

// A Unix datagram socket without a name of its own; sending never waits.
Expected<UniqueFd> MakeDatagramSender();

// Begins to connect to a TCP address, `host` as a number, without brackets, and
// waits for nothing: a listener there wakes.
Expected<UniqueFd> KnockTcp(const std::string& host, int port);

}  // namespace rknnd::base

#endif  // BASE_POSIX_SEND_ONLY_H_
