// A client process that a test drives and may kill at any moment. Reads one
// command a line, answers each with one line: the API's number and a text.
//
//   start COMMAND...  on a thread; answered at once
//   finish            waits for it and answers with its reply
//   fork              a child takes over these two pipes until its `exit`
//   fork_idle         a child that sits there with all we have open; its pid
//   exit              ends the process
// and those of commands.h.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/integration/programs/commands.h"

namespace rknnd::integration {
namespace {

// A forgotten child ends by itself.
constexpr unsigned int kIdleSeconds = 300;

void Say(const Reply& reply) {
  std::string line = std::to_string(reply.code) + " " + reply.text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::cout << line << std::endl;
}

// In the parent: until the child has exited.
Reply WaitFor(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
    return {kBadCommand, "the child did not exit"};
  }
  return {WEXITSTATUS(status), "the child has exited"};
}

Reply ForkIdle() {
  const pid_t child = fork();
  if (child == 0) {
    // Not our output: its reader would wait for this child too.
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    alarm(kIdleSeconds);
    for (;;) pause();
  }
  return {child > 0 ? 0 : kBadCommand, std::to_string(child)};
}

int Main() {
  Commands commands;
  std::thread thread;
  Reply later;
  bool is_child = false;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) continue;
    if (words[0] == "exit") {
      // A child of a process with threads has what they held: nothing at exit
      // may look at it, a sanitizer's search for leaks least of all.
      if (is_child) _exit(0);
      return 0;
    }
    if (words[0] == "start") {
      words.erase(words.begin());
      thread = std::thread(
          [&commands, &later, words] { later = commands.Do(words); });
      Say({});
    } else if (words[0] == "finish") {
      thread.join();
      Say(later);
    } else if (words[0] == "fork") {
      const pid_t child = fork();
      is_child = child == 0;
      Say(is_child ? Reply{0, "child"} : WaitFor(child));
    } else if (words[0] == "fork_idle") {
      Say(ForkIdle());
    } else {
      Say(commands.Do(words));
    }
  }
  // The test is gone or has closed our input: end without a word.
  if (thread.joinable()) thread.join();
  return 0;
}

}  // namespace
}  // namespace rknnd::integration

int main() { return rknnd::integration::Main(); }
