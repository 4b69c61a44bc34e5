// Environment variables, as libraries may read them: also in programs that have
// rights which whoever started them has not.

#ifndef BASE_POSIX_ENVIRONMENT_H_
#define BASE_POSIX_ENVIRONMENT_H_

#include <cstdlib>
#include <string>

namespace rknnd::base {

// Empty where the variable is not set; and where the program has rights that
// whoever started it has not (set-user-ID, set-group-ID, file capabilities):
// its environment is another's then, who could have it read a file of its own
// or talk to a server of theirs.
// Thread: any, as long as nobody changes the environment meanwhile; programs
// set it before they start.
inline std::string FromEnvironment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): as above
  const char* const value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace rknnd::base

#endif  // BASE_POSIX_ENVIRONMENT_H_
