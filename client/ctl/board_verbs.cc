#include "client/ctl/board_verbs.h"

#include <unistd.h>

#include <utility>

#include "client/ctl/devices.h"
#include "client/ctl/doctor.h"
#include "client/ctl/finite_range.h"
#include "client/ctl/terminal.h"

namespace rknnd::client {
namespace {

using base::Expected;

constexpr int kOk = 0;
constexpr int kFailed = 1;

}  // namespace

void DeclareBoardVerbs(CLI::App& app, BoardVerbs& verbs) {
  app.add_subcommand("doctor",
                     "what keeps programs from using the NPU well, and what to "
                     "do about it")
      ->footer(
          "Works without a daemon, too. Ends with 1 when there is an error.");
  app.add_subcommand("devices",
                     "NPUs of this machine and daemons on the local network");

  CLI::App* logs = app.add_subcommand("logs", "the daemon's log");
  logs->add_option("--level", verbs.logs.level,
                   "errors (0), and warnings (1), what happens (2), all (3 to "
                   "5)")
      ->check(CLI::Range(0, 5))
      ->capture_default_str();
  CLI::Option* recent =
      logs->add_option("--recent", verbs.logs.recent,
                       "lines of the past; 200, and 10 with --follow, if not "
                       "given")
          ->check(CLI::Range(0, 1'000'000));
  CLI::Option* follow = logs->add_flag("--follow", verbs.logs.follow,
                                       "and those to come, until Ctrl-C");
  logs->add_option("--set-level", verbs.logs.set_level,
                   "what the daemon logs from now on; shows nothing")
      ->check(CLI::Range(0, 5))
      ->excludes(recent)
      ->excludes(follow);

  CLI::App* reset = app.add_subcommand(
      "reset", "reset the NPU, as after a hang; jobs on it run again");
  reset->add_flag("--yes", verbs.yes, "do it; needed on a terminal");

  CLI::App* drain = app.add_subcommand(
      "drain", "refuse new work and wait until the last job has ended");
  CLI::Option* wait =
      drain->add_option("--wait", verbs.drain.wait_s, "seconds at most")
          ->check(FiniteRange(0, 86400))
          ->capture_default_str();
  drain->add_flag("--undo", verbs.drain.undo, "take new work again")
      ->excludes(wait);
  drain->footer("Ends with 1 when jobs still run then.");

  CLI::App* push = app.add_subcommand(
      "push", "send a model to the daemon, if it does not have it");
  push->add_option("MODEL", verbs.push.model, "the model's file")->required();
}

std::string BoardVerbsFault(const BoardVerbs& verbs, std::string_view verb) {
  if (verb == "reset" && !verbs.yes && ::isatty(STDIN_FILENO) == 1) {
    return "reset interrupts the jobs of all programs, which run again: say "
           "'rknnctl reset --yes'";
  }
  return "";
}

std::optional<VerbEnd> DoBoardVerb(std::string_view verb,
                                   const std::string& target, bool json,
                                   BoardVerbs& verbs) {
  if (verb == "doctor") {
    const Diagnosis diagnosis = Diagnose(target);
    return VerbEnd{
        DiagnosisOutput(diagnosis, Terminal::IsOne() && Terminal::ShowsColor()),
        diagnosis.worst() == Severity::kError ? kFailed : kOk};
  }
  if (verb == "devices") return VerbEnd{Devices({target, ""})};
  if (verb == "reset") return VerbEnd{Reset(target)};
  if (verb == "logs") {
    verbs.logs.target = target;
    verbs.logs.json = json;
    if (!verbs.logs.follow) return VerbEnd{Logs(verbs.logs)};
    const Expected<int> end = FollowLogs(verbs.logs);
    if (!end) return VerbEnd{end.error()};
    return VerbEnd{Output{}, *end, /*printed=*/true};
  }
  if (verb == "drain") {
    if (verbs.drain.undo) return VerbEnd{UndoDrain(target)};
    verbs.drain.target = target;
    Expected<DrainAnswer> answer = Drain(verbs.drain);
    if (!answer) return VerbEnd{std::move(answer).error()};
    return VerbEnd{std::move(answer->output), answer->idle ? kOk : kFailed};
  }
  if (verb == "push") {
    verbs.push.target = target;
    verbs.push.json = json;
    return VerbEnd{Push(verbs.push)};
  }
  return std::nullopt;
}

}  // namespace rknnd::client
