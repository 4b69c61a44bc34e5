// Lets one part of a program close descriptors in a way of its own. Apart, as
// the client library carries UniqueFd, and may have no thread-local variables.

#ifndef BASE_POSIX_CLOSE_HOOK_H_
#define BASE_POSIX_CLOSE_HOOK_H_

namespace rknnd::base {

// Asked on each thread before UniqueFd closes `fd`: true when it has taken it.
using CloseHook = bool (*)(int fd);

// From now on, on all threads; there is one in a program. Thread: any.
void SetCloseHook(CloseHook hook);

}  // namespace rknnd::base

#endif  // BASE_POSIX_CLOSE_HOOK_H_
