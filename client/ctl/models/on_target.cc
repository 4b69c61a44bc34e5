#include "client/ctl/models/on_target.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>

#include "base/posix/unique_fd.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// In the child: the answer as one JSON document.
void Answer(const std::function<Expected<Json>()>& work, int fd) {
  Json json;
  try {
    Expected<Json> made = work();
    if (made) {
      json["answer"] = *std::move(made);
    } else {
      json["error"] = made.error().message;
    }
  } catch (const std::exception& fault) {  // out of memory, mostly
    json["error"] = fault.what();
  }
  const std::string text = DumpJson(json);
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t put = write(fd, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return;
    rest.remove_prefix(static_cast<size_t>(put));
  }
}

std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(chunk.data(), static_cast<size_t>(got));
  }
}

}  // namespace

Expected<Json> OnTarget(const std::string& target, const std::string& what,
                        const std::function<Expected<Json>()>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return base::ErrnoError(errno, "make a pipe");
  }
  base::UniqueFd from(ends[0]);
  base::UniqueFd to(ends[1]);
  const pid_t own = getpid();
  const pid_t child = fork();
  if (child < 0) return base::ErrnoError(errno, "start a process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != own) _exit(1);
    from.reset();
    // NOLINTNEXTLINE(concurrency-mt-unsafe): this process has one thread
    if (setenv("RKNND_TARGET", target.c_str(), 1) == 0) Answer(work, to.get());
    // What static objects hold is the parent's.
    _exit(0);
  }
  to.reset();
  const std::string text = ReadAll(from.get());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const Json answer = Json::parse(text, nullptr, false);
  if (answer.is_object() && answer.contains("error")) {
    return Error{Code::kUnknown, answer["error"].get<std::string>()};
  }
  if (!answer.is_object() || !answer.contains("answer")) {
    return Error{Code::kUnknown,
                 "the process that " + what +
                     (WIFSIGNALED(status) ? " was ended by signal " +
                                                std::to_string(WTERMSIG(status))
                                          : " ended without an answer")};
  }
  return answer["answer"];
}

}  // namespace rknnd::client
