// For tests: one command line of sh, what it printed and how it ended.

#ifndef CLIENT_UNDER_TESTING_SHELL_H_
#define CLIENT_UNDER_TESTING_SHELL_H_

#include <sys/wait.h>

#include <cstdio>
#include <memory>
#include <string>

namespace rknnd::client {

struct ShellResult {
  int exit_code = -1;
  std::string output;  // stdout and stderr, as they came
};

// Thread: any.
inline ShellResult Shell(const std::string& line) {
  ShellResult result;
  std::FILE* const pipe = ::popen(("{ " + line + "\n} 2>&1").c_str(), "re");
  if (pipe == nullptr) return result;
  char buffer[4096];
  size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0) {
    result.output.append(buffer, got);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

}  // namespace rknnd::client

#endif  // CLIENT_UNDER_TESTING_SHELL_H_
