// The environment under which an unmodified program gets our librknnrt.so, and
// where that library is.
//
// Called once, by rknnd-run's main(), before there is a second thread.

#ifndef CLIENT_UNDER_PROGRAM_ENVIRONMENT_H_
#define CLIENT_UNDER_PROGRAM_ENVIRONMENT_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/values/expected.h"

namespace rknnd::client {

inline constexpr char kUnderLibrary[] = "librknnrt.so";
inline constexpr char kUnderModule[] = "rknnd-run-audit.so";

// The first of `folders` that has the library and the module, made absolute.
// kNotFound, with what to install; kFailedPrecondition if its name has what
// separates entries in the loader's variables.
base::Expected<std::string> FindOurs(const std::vector<std::string>& folders);

// `entry` in front of `list` ("a:b"), once. Empty entries of the list go: the
// loader would take them for the folder that the program is in.
std::string PutInFront(std::string_view entry, std::string_view list);

}  // namespace rknnd::client

#endif  // CLIENT_UNDER_PROGRAM_ENVIRONMENT_H_
