// See process.h.

#include "bench/common/process.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "client/include/rknnd.h"

namespace rknnd::bench {

void Die(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), rknnd_last_error());
  std::exit(1);
}

base::ChildProcess StartSibling(std::vector<std::string> arguments, int cpu) {
  arguments[0] = base::ProgramFolder() + "/" + arguments[0];
  base::ChildProcess::Options options;
  options.arguments = std::move(arguments);
  options.cpu = cpu;
  auto child = base::ChildProcess::Start(options);
  if (!child) Die(child.error().message);
  return *std::move(child);
}

base::TemporaryFolder MakeFolder() {
  auto folder = base::TemporaryFolder::Make();
  if (!folder) Die(folder.error().message);
  return *std::move(folder);
}

base::ChildProcess StartDaemon(const std::string& folder, int cpu) {
  const std::string socket = folder + "/session.sock";
  base::ChildProcess daemon =
      StartSibling({"rknnd", "--socket", socket, "--device", "soft",
                    "--cache-dir", "", "--log-level", "1"},
                   cpu);
  if (!base::WaitForServer(socket, daemon, 10 * base::kSecond)) {
    Die("the daemon did not start");
  }
  setenv("RKNND_TARGET", ("unix:" + socket).c_str(), 1);
  return daemon;
}

}  // namespace rknnd::bench
