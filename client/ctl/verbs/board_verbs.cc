// The verbs that look after a board and its daemon, or look for others.

#include <unistd.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/ctl/board/devices.h"
#include "client/ctl/board/doctor.h"
#include "client/ctl/board/logs.h"
#include "client/ctl/board/operate.h"
#include "client/ctl/models/push.h"
#include "client/ctl/selftest/selftest.h"
#include "client/ctl/text/terminal.h"
#include "client/ctl/verbs/finite_range.h"
#include "client/ctl/verbs/verb.h"

namespace rknnd::client {
namespace {

using base::Expected;

RunVerb DeclareDoctor(CLI::App& verb) {
  verb.footer(
      "Works without a daemon, too. Ends with 1 when there is an error.");
  return [](const Common& common) -> VerbEnd {
    const Diagnosis diagnosis = Diagnose(common.target);
    return {
        DiagnosisOutput(diagnosis, Terminal::IsOne() && Terminal::ShowsColor()),
        diagnosis.worst() == Severity::kError ? kFailed : kOk};
  };
}

RunVerb DeclareDevices(CLI::App& /*verb*/) {
  return [](const Common& common) -> VerbEnd {
    return {Devices({common.target, ""})};
  };
}

RunVerb DeclareLogs(CLI::App& verb) {
  const auto options = std::make_shared<LogsOptions>();
  verb.add_option("--level", options->level,
                  "errors (0), and warnings (1), what happens (2), all (3 to "
                  "5)")
      ->check(CLI::Range(0, 5))
      ->capture_default_str();
  CLI::Option* recent =
      verb.add_option("--recent", options->recent,
                      "lines of the past; 200, and 10 with --follow, if not "
                      "given")
          ->check(CLI::Range(0, 1'000'000));
  CLI::Option* follow = verb.add_flag("--follow", options->follow,
                                      "and those to come, until Ctrl-C");
  verb.add_option("--set-level", options->set_level,
                  "what the daemon logs from now on; shows nothing")
      ->check(CLI::Range(0, 5))
      ->excludes(recent)
      ->excludes(follow);
  return [options](const Common& common) -> VerbEnd {
    options->target = common.target;
    options->json = common.json;
    if (!options->follow) return {Logs(*options)};
    const Expected<int> end = FollowLogs(*options);
    if (!end) return {end.error()};
    return {Output{}, *end, /*printed=*/true};
  };
}

RunVerb DeclareReset(CLI::App& verb) {
  const auto yes = std::make_shared<bool>(false);
  verb.add_flag("--yes", *yes, "do it; needed on a terminal");
  return [yes](const Common& common) -> VerbEnd {
    if (!*yes && ::isatty(STDIN_FILENO) == 1) {
      return BadUsage(
          "reset interrupts the jobs of all programs, which run again: say "
          "'rknnctl reset --yes'");
    }
    return {Reset(common.target)};
  };
}

RunVerb DeclareQuarantine(CLI::App& verb) {
  const auto release = std::make_shared<std::string>();
  verb.add_option("--release", *release,
                  "let this one try again: its hash, or the first 8 digits");
  return [release](const Common& common) -> VerbEnd {
    return {Quarantine(common.target, *release)};
  };
}

RunVerb DeclareDrain(CLI::App& verb) {
  const auto options = std::make_shared<DrainOptions>();
  CLI::Option* wait =
      verb.add_option("--wait", options->wait_s, "seconds at most")
          ->check(FiniteRange(0, 86400))
          ->capture_default_str();
  verb.add_flag("--undo", options->undo, "take new work again")->excludes(wait);
  verb.footer("Ends with 1 when jobs still run then.");
  return [options](const Common& common) -> VerbEnd {
    if (options->undo) return {UndoDrain(common.target)};
    options->target = common.target;
    Expected<DrainAnswer> answer = Drain(*options);
    if (!answer) return {std::move(answer).error()};
    return {std::move(answer->output), answer->idle ? kOk : kFailed};
  };
}

RunVerb DeclarePush(CLI::App& verb) {
  const auto options = std::make_shared<PushOptions>();
  AddModel(verb, options->model);
  return [options](const Common& common) -> VerbEnd {
    options->target = common.target;
    options->json = common.json;
    return {Push(*options)};
  };
}

RunVerb DeclareSelfTest(CLI::App& verb) {
  struct Options {
    SelfTestOptions test;
    std::vector<std::string> networks;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("--network", options->networks,
                  "a compiled model to run as well, and files for its inputs")
      ->type_name("FILE[=INPUT,...]")
      ->allow_extra_args(false);
  verb.add_option("--runs", options->test.runs, "of all networks together")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  verb.add_flag("--reset", options->test.reset,
                "reset the NPU meanwhile; jobs of other programs run again");
  verb.add_option("--output", options->test.report, "a file for the report")
      ->type_name("FILE");
  verb.footer(
      "Networks run on the target; the emulated NPU says what they have to\n"
      "answer. Ends with 1 when a step has failed.");
  return [options](const Common& common) -> VerbEnd {
    SelfTestOptions& test = options->test;
    test.target = common.target;
    for (const std::string& network : options->networks) {
      const size_t equals = network.find('=');
      SelfTestCase& of = test.cases.emplace_back();
      of.file = network.substr(0, equals);
      if (equals == std::string::npos) continue;
      std::istringstream inputs(network.substr(equals + 1));
      for (std::string input; std::getline(inputs, input, ',');) {
        of.inputs.push_back(input);
      }
    }
    Expected<SelfTestAnswer> answer = SelfTest(test);
    if (!answer) return {std::move(answer).error()};
    return {std::move(answer->output), answer->passed ? kOk : kFailed};
  };
}

constexpr Verb kBoardVerbs[] = {
    {"doctor",
     "what keeps programs from using the NPU well, and what to do about it",
     DeclareDoctor},
    {"devices", "NPUs of this machine and daemons on the local network",
     DeclareDevices},
    {"logs", "the daemon's log", DeclareLogs},
    {"reset", "reset the NPU, as after a hang; jobs on it run again",
     DeclareReset},
    {"quarantine",
     "models that are not run any more, as they ended the processes that ran "
     "them",
     DeclareQuarantine},
    {"drain", "refuse new work and wait until the last job has ended",
     DeclareDrain},
    {"selftest", "bring up a board: each step, and a report to send",
     DeclareSelfTest},
    {"push", "send a model to the daemon, if it does not have it", DeclarePush},
};

}  // namespace

std::span<const Verb> BoardVerbs() { return kBoardVerbs; }

}  // namespace rknnd::client
