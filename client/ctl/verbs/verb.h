// A verb of rknnctl: its line of --help, its options, and what it does with
// them, in one place. The table of all is in verbs.cc; completions of shells
// are made of it (completion.h).

#ifndef CLIENT_CTL_VERBS_VERB_H_
#define CLIENT_CTL_VERBS_VERB_H_

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadUsage = 2;

// What every verb is told.
struct Common {
  std::string target;
  bool json = false;
  std::vector<std::string> command;  // what stands behind "--"
};

// How a verb ends. With an error: with exit code 1, or `exit_code`.
// NOLINTNEXTLINE(bugprone-exception-escape): the JSON library's move
struct VerbEnd {
  base::Expected<Output> output;
  int exit_code = kOk;
  bool printed = false;  // it has been, as it came
};

// Options that do not go together.
inline VerbEnd BadUsage(std::string what) {
  return {base::Error{base::Code::kInvalidArgument, std::move(what)},
          kBadUsage};
}

using RunVerb = std::function<VerbEnd(const Common&)>;

struct Verb {
  const char* name;
  const char* help;
  // Adds its options to `verb`; the function that is returned owns their
  // values, and is called once they have been read.
  RunVerb (*declare)(CLI::App& verb);
};

// Those that every model verb has.
void AddModel(CLI::App& verb, std::string& model,
              const char* help = "the model's file");
CLI::Option* AddInputs(CLI::App& verb, std::vector<std::string>& inputs,
                       const char* help);
void AddCoreMask(CLI::App& verb, std::string& mask);
// What is wrong with a mask; "" if nothing is.
std::string FaultOfCoreMask(const std::string& mask);

// In the order of --help.
std::span<const Verb> ReportVerbs();  // report_verbs.cc
std::span<const Verb> RunVerbs();     // run_verbs.cc
std::span<const Verb> FaultVerbs();   // fault_verbs.cc
std::span<const Verb> ModelVerbs();   // model_verbs.cc
std::span<const Verb> BoardVerbs();   // board_verbs.cc
std::vector<Verb> AllVerbs();

}  // namespace rknnd::client

#endif  // CLIENT_CTL_VERBS_VERB_H_
