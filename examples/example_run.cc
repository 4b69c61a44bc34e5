#include "examples/example_run.h"

#include <csignal>
#include <utility>

#include "base/posix/child_process.h"

namespace rknnd::examples {
namespace {

// Instrumented builds take their time.
constexpr base::Nanoseconds kPatience = 120 * base::kSecond;

base::ChildProcess Start(
    std::vector<std::string> arguments,
    std::vector<std::pair<std::string, std::string>> environment = {}) {
  base::ChildProcess::Options options;
  options.arguments = std::move(arguments);
  options.environment = std::move(environment);
  options.dies_with_parent = true;
  auto child = base::ChildProcess::Start(options);
  EXPECT_TRUE(child.ok()) << child.error().message;
  return child.ok() ? *std::move(child) : base::ChildProcess();
}

}  // namespace

testing::AssertionResult RunsWell(const std::string& program,
                                  std::vector<std::string> arguments) {
  auto folder = base::TemporaryFolder::Make();
  if (!folder) return testing::AssertionFailure() << folder.error().message;
  const std::string socket = folder->path() + "/session.sock";
  base::ChildProcess daemon =
      Start({RKNND_BINARY_ROOT "/bin/rknnd", "--socket", socket, "--device",
             "soft", "--cache-dir", "", "--log-level", "1"});
  if (!base::WaitForServer(socket, daemon, kPatience)) {
    return testing::AssertionFailure() << "the daemon did not start";
  }
  arguments.insert(arguments.begin(),
                   RKNND_BINARY_ROOT "/bin/examples/" + program);
  base::ChildProcess example =
      Start(std::move(arguments), {{"RKNND_TARGET", "unix:" + socket}});
  const auto said = example.ReadAll(kPatience);
  const auto code = example.Wait(kPatience);
  // Instrumented, its exit code is the verdict on what it was made to do.
  daemon.Signal(SIGTERM);
  const auto daemons = daemon.Wait(kPatience);
  if (!daemons.ok() || *daemons != 0) {
    return testing::AssertionFailure() << "the daemon did not end well";
  }
  if (code.ok() && *code == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << program << " ended with " << (code.ok() ? *code : -1) << ": "
         << (said.ok() ? *said : said.error().message);
}

}  // namespace rknnd::examples
