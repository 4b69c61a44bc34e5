#include "client/ctl/command_line.h"

#include "rknnd.h"

namespace rknnd::client {

std::string_view FindVerb(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--target") {
      ++i;
    } else if (!word.starts_with('-')) {
      return word;
    }
  }
  return "";
}

std::map<std::string, RunVerb, std::less<>> Declare(CLI::App& app,
                                                    Common& common) {
  app.fallthrough();  // --json and --target may follow the verb too
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       std::string("rknnctl ") + rknnd_version_string());
  app.add_option("--target", common.target,
                 "where the daemon is: unix:PATH or tcp://HOST:PORT, or local: "
                 "(infer, bench) for none at all")
      ->envname("RKNND_TARGET")
      ->default_str("unix:/run/rknnd/session.sock");
  app.add_flag("--json", common.json,
               "print exactly one JSON document on stdout");
  std::map<std::string, RunVerb, std::less<>> verbs;
  for (const Verb& verb : AllVerbs()) {
    verbs[verb.name] = verb.declare(*app.add_subcommand(verb.name, verb.help));
  }
  return verbs;
}

}  // namespace rknnd::client
