// The fault campaign, ./dev torture: ends with 1 when it found something, with
// 2 when it could not work.
//
//   rknnd-torture SECONDS [--seed N] [--clients N] [--own-sockets]
//                 [--keep DIR] [--list]

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

#include "base/posix/child_process.h"
#include "tests/torture/campaign.h"

namespace rknnd::torture {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Everything that may happen to rknnd, under load");
  double seconds = 0;
  std::optional<uint64_t> seed;
  std::string keep;
  bool own_sockets = false, list = false;
  CampaignOptions options;
  app.add_option("seconds", seconds, "how long")
      ->required()
      ->check(CLI::Range(2.0, 1e6));
  app.add_option("--seed", seed, "of an earlier campaign, to do the same");
  app.add_option("--clients", options.clients, "processes under load (8)")
      ->check(CLI::Range(1, 64));
  app.add_flag("--own-sockets", own_sockets,
               "the daemon makes its sockets itself, as without socket units");
  app.add_flag("--list", list, "say what would be done, and end");
  app.add_option("--keep", keep, "an empty folder for logs, which stays");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.length = static_cast<base::Nanoseconds>(
      seconds * static_cast<double>(base::kSecond));
  options.seed = seed ? *seed : std::random_device{}();
  if (list) {
    for (const Event& event : ScheduleOf(options)) {
      std::printf("%s\n", event.ToText().c_str());
    }
    return 0;
  }
  auto interrupts = base::Interrupts::Catch();
  if (!interrupts) throw std::runtime_error(interrupts.error().message);
  std::optional<base::TemporaryFolder> folder;
  if (keep.empty()) {
    auto made = base::TemporaryFolder::Make();
    if (!made) throw std::runtime_error(made.error().message);
    folder.emplace(*std::move(made));
    options.folder = folder->path();
  } else {
    std::filesystem::create_directories(keep);
    if (!std::filesystem::is_empty(keep)) {
      throw std::runtime_error("'" + keep + "' is not empty");
    }
    options.folder = std::filesystem::canonical(keep).string();
  }
  options.socket_units = !own_sockets;
  options.interrupts = &*interrupts;
  std::printf("seed %llu, %g s, %d clients%s\n",
              static_cast<unsigned long long>(options.seed), seconds,
              options.clients, own_sockets ? ", --own-sockets" : "");
  std::fflush(stdout);
  if (RunCampaign(options)) return 0;
  std::printf("found something: run again with --seed %llu%s\n",
              static_cast<unsigned long long>(options.seed),
              keep.empty() ? " --keep DIR for the logs" : "");
  return 1;
}

}  // namespace
}  // namespace rknnd::torture

int main(int argc, char** argv) {
  try {
    return rknnd::torture::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rknnd-torture: %s\n", error.what());
    return 2;
  }
}
