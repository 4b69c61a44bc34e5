// Why a run has no answer, in words for the program's user.

#ifndef CLIENT_SESSION_UNANSWERED_H_
#define CLIENT_SESSION_UNANSWERED_H_

#include <string>

#include "client/session/link.h"

namespace rknnd::client {

// Where the daemon says nothing.
inline constexpr char kSilent[] = "rknnd hangs, or is stopped (rknnctl status)";

// Of a run without a limit, as the daemon says where it says anything within
// two seconds: who has the cores, and since when.
std::string WhyUnanswered(SessionLink& link);

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_UNANSWERED_H_
