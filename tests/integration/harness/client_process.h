// A client process of programs/runner.cc: commands go in, replies come out, and
// it may be killed between any two instructions.

#ifndef TESTS_INTEGRATION_HARNESS_CLIENT_PROCESS_H_
#define TESTS_INTEGRATION_HARNESS_CLIENT_PROCESS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "tests/integration/programs/commands.h"

namespace rknnd::integration {

// Thread: any, one at a time.
class ClientProcess {
 public:
  struct Options {
    std::string target;
    std::string log_file;  // its stderr
    std::vector<std::pair<std::string, std::string>> environment;
    // What starts the runner and is one with it; empty: the runner itself.
    std::vector<std::string> command = {};
  };
  explicit ClientProcess(Options options);
  // Ends it in order, if it runs.
  ~ClientProcess();
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  // One command and its reply.
  Reply Do(const std::string& command);
  // Its two halves.
  void Send(const std::string& command);
  Reply Receive();

  // SIGKILL, and until it is gone.
  void Kill();
  // The exit code of its own end.
  int Exit();

  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  // What it said on stderr.
  [[nodiscard]] std::string log() const;

 private:
  const Options options_;
  base::ChildProcess process_;
};

void PrintTo(const Reply& reply, std::ostream* stream);

// EXPECT_TRUE(Done(client.Do("run a"))).
testing::AssertionResult Done(const Reply& reply);
// The reply of a command that compares: done, and an error of at most this.
testing::AssertionResult Right(const Reply& reply, double tolerance = 1e-5);

// EXPECT_THAT(client.Do("run a"), Fails(RKNN_ERR_CTX_INVALID, "was
// destroyed")).
MATCHER_P2(Fails, code, words,
           "fails with " + testing::PrintToString(code) + " and says \"" +
               words + "\"") {
  return arg.code == code && arg.text.find(words) != std::string::npos;
}

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_CLIENT_PROCESS_H_
