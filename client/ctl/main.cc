// rknnctl: looks at a daemon and runs models through it. Does the one verb that
// the command line names, prints its answer as text or as one JSON document.
// Exit codes: 0 done, 1 failed, 2 bad usage; of lease, its command's.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/ctl/command_line.h"
#include "client/ctl/text/progress.h"
#include "client/ctl/text/text.h"
#include "rknnd.h"

namespace rknnd::client {
namespace {

// A verb that rknnctl is going to have; asking for it is no misspelling.
constexpr std::string_view kLaterVerb = "convert";

std::string Dump(const Json& json) { return DumpJson(json) + "\n"; }

int Fail(bool json, int exit_code, const std::string& message) {
  std::fprintf(stderr, "rknnctl: %s\n", Printable(message).c_str());
  if (json) std::fputs(Dump({{"error", message}}).c_str(), stdout);
  return exit_code;
}

// What the library does that takes long: another machine's model on its way,
// layers on their way into files.
class Transfers {
 public:
  explicit Transfers(bool quiet) : bar_(quiet, Progress::Unit::kBytes) {
    rknnd_set_progress(
        [](void* self, const char* what, uint64_t done, uint64_t total) {
          static_cast<Transfers*>(self)->Show(what, done, total);
        },
        this);
  }
  ~Transfers() { rknnd_set_progress(nullptr, nullptr); }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

 private:
  void Show(const char* what, uint64_t done, uint64_t total) {
    bar_.Update(what, done, total);
    if (done >= total) bar_.Clear();
  }

  Progress bar_;
};

int Main(int argc, char** argv) {
  Common common;
  // What stands behind "--" is another program's.
  char** const dashes =
      std::find_if(argv + 1, argv + argc,
                   [](std::string_view word) { return word == "--"; });
  if (dashes != argv + argc && FindVerb(argc, argv) == "lease") {
    common.command.assign(dashes + 1, argv + argc);
    argc = static_cast<int>(dashes - argv);
  }
  const bool json =
      std::any_of(argv + 1, argv + argc,
                  [](std::string_view word) { return word == "--json"; });
  const std::string verb(FindVerb(argc, argv));
  if (verb == kLaterVerb) {
    return Fail(json, kFailed,
                "'" + verb + "' is not supported in this version");
  }

  CLI::App app("Looks at an rknnd daemon, and runs models through it.",
               "rknnctl");
  const auto verbs = Declare(app, common);
  if (!verb.empty() && !verbs.contains(verb)) {
    return Fail(json, kBadUsage,
                "no verb '" + verb + "': rknnctl --help lists them");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& fault) {
    return Fail(json, kBadUsage,
                std::string(fault.what()) + ": see rknnctl " +
                    (verb.empty() ? "" : verb + " ") + "--help");
  }
  // The library reads these at its first call; no other thread is there yet.
  // Its errors are ours to print, unless the user asked for its log.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  ::setenv("RKNN_LOG_LEVEL", "0", 0);
  if (!common.target.empty() &&
      // NOLINTNEXTLINE(concurrency-mt-unsafe)
      ::setenv("RKNND_TARGET", common.target.c_str(), 1) != 0) {
    return Fail(json, kFailed, "cannot set RKNND_TARGET");
  }

  std::optional<Transfers> transfers(std::in_place, json);
  const VerbEnd end = verbs.find(verb)->second(common);
  transfers.reset();  // its line is not to stand before what follows
  if (!end.output) {
    return Fail(json, end.exit_code == kOk ? kFailed : end.exit_code,
                end.output.error().message);
  }
  if (end.printed) return end.exit_code;
  const std::string text = json ? Dump(end.output->json) : end.output->text;
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    std::fputs("rknnctl: cannot write to stdout\n", stderr);
    return kFailed;
  }
  return end.exit_code;
}

}  // namespace
}  // namespace rknnd::client

int main(int argc, char** argv) {
  try {
    return rknnd::client::Main(argc, argv);
  } catch (const std::exception& fault) {  // out of memory, mostly
    std::fprintf(stderr, "rknnctl: %s\n", fault.what());
    return 1;
  }
}
