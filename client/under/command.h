// The command that rknnd-run is to start: where it is, and whether the dynamic
// loader will heed the variables that rknnd-run sets for it.
//
// Called once, by main(). The file may be anything: it is only looked at.

#ifndef CLIENT_UNDER_COMMAND_H_
#define CLIENT_UNDER_COMMAND_H_

#include <string>
#include <string_view>

#include "base/values/expected.h"

namespace rknnd::client {

// The file that `name` stands for, as a shell finds it: `name` itself if it has
// a slash, else the first of its kind in the folders of `path_list` ("a:b"; an
// empty one is the folder one is in). kNotFound; kPermissionDenied if all that
// has the name cannot be executed.
base::Expected<std::string> FindCommand(std::string_view name,
                                        std::string_view path_list);

// kFailedPrecondition, with what to do instead, for a program that the kernel
// starts with other rights than ours (the loader ignores the variables then),
// and for one of another machine or word size, which cannot load our library.
// What is statically linked passes: it may start others, and they inherit.
base::Expected<void> CheckCommand(const std::string& path);

// What a shell ends with: 127 for kNotFound, else 126.
int ExitCodeOf(base::Code code);

}  // namespace rknnd::client

#endif  // CLIENT_UNDER_COMMAND_H_
