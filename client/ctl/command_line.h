// rknnctl's command line: the options that go with every verb, and the verbs.

#ifndef CLIENT_CTL_COMMAND_LINE_H_
#define CLIENT_CTL_COMMAND_LINE_H_

#include <map>
#include <string>
#include <string_view>

#include "CLI/CLI.hpp"
#include "client/ctl/verbs/verb.h"

namespace rknnd::client {

// The first word that is neither an option nor the value of --target.
std::string_view FindVerb(int argc, char** argv);

// All verbs, and what each does. That and `common` outlive `app`.
std::map<std::string, RunVerb, std::less<>> Declare(CLI::App& app,
                                                    Common& common);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_COMMAND_LINE_H_
