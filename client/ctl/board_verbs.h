// The verbs that look after a board and its daemon, or look for others: their
// command line, and what they end with.

#ifndef CLIENT_CTL_BOARD_VERBS_H_
#define CLIENT_CTL_BOARD_VERBS_H_

#include <optional>
#include <string>
#include <string_view>

#include "CLI/CLI.hpp"
#include "base/posix/expected.h"
#include "client/ctl/logs.h"
#include "client/ctl/operate.h"
#include "client/ctl/push.h"
#include "client/ctl/report.h"

namespace rknnd::client {

struct BoardVerbs {
  LogsOptions logs;
  DrainOptions drain;
  PushOptions push;
  bool yes = false;  // reset
};

// doctor, devices, logs, reset, drain, push. Both outlive `app`.
void DeclareBoardVerbs(CLI::App& app, BoardVerbs& verbs);

// What the options say beyond what each alone may be; "" if all is well.
std::string BoardVerbsFault(const BoardVerbs& verbs, std::string_view verb);

// NOLINTNEXTLINE(bugprone-exception-escape): the JSON library's move
struct VerbEnd {
  base::Expected<Output> output;
  int exit_code = 0;     // where there is an output
  bool printed = false;  // it has been, as it came
};
// None: `verb` is not one of these.
std::optional<VerbEnd> DoBoardVerb(std::string_view verb,
                                   const std::string& target, bool json,
                                   BoardVerbs& verbs);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_VERBS_H_
