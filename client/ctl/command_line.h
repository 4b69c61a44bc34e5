// rknnctl's command line: its verbs, their options, and what is wrong with
// those a user has given. main.cc does what they ask for.

#ifndef CLIENT_CTL_COMMAND_LINE_H_
#define CLIENT_CTL_COMMAND_LINE_H_

#include <string>
#include <string_view>

#include "CLI/CLI.hpp"
#include "client/ctl/admit.h"
#include "client/ctl/bench.h"
#include "client/ctl/board_verbs.h"
#include "client/ctl/fault.h"
#include "client/ctl/infer.h"
#include "client/ctl/lease.h"
#include "client/ctl/model_verbs.h"
#include "client/ctl/trace.h"
#include "client/ctl/watch.h"

namespace rknnd::client {

struct Options {
  std::string target;
  bool json = false;
  std::string memory_model;
  bool memory_sram = false;
  InferOptions infer;
  BenchOptions bench;
  WatchOptions watch;
  FaultOptions fault;
  TraceOptions trace;
  AdmitOptions admit;
  LeaseOptions lease;
  ModelVerbs models;
  BoardVerbs board;
  bool once = false;
  std::string core_mask = "auto";
};

// The first word that is neither an option nor the value of --target.
std::string_view FindVerb(int argc, char** argv);

// All verbs. `options` outlives `app`.
void Declare(CLI::App& app, Options& options);

// What the options say beyond what each alone may be; "" if all is well.
std::string UsageFault(Options& options, std::string_view verb);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_COMMAND_LINE_H_
