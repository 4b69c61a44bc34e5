#include "tests/manual/help.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "client/under/testing/shell.h"

namespace rknnd::manual {
namespace {

std::string HelpOf(const std::string& command) {
  const auto result =
      client::Shell(RKNND_BINARY_ROOT "/bin/" + command + " --help");
  EXPECT_EQ(result.exit_code, 0) << command << ": " << result.output;
  return result.output;
}

Words OptionsIn(const std::string& help) {
  // Where a line begins: what stands further in is said about an option.
  static const std::regex kOption(
      "^ {1,4}(?:-[a-zA-Z], ?)?(--[a-z][a-z0-9-]*)");
  Words options;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kOption)) options.insert(match[1]);
  }
  return options;
}

Words VerbsIn(const std::string& help) {
  static const std::regex kVerb("^  ([a-z][a-z0-9-]*)(?: |$)");
  Words verbs;
  bool listed = false;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line == "Subcommands:" || line == "SUBCOMMANDS:") {
      listed = true;
    } else if (line.empty()) {
      listed = false;
    } else if (listed && std::regex_search(line, match, kVerb)) {
      verbs.insert(match[1]);
    }
  }
  return verbs;
}

}  // namespace

Words OptionsOf(const std::string& command) {
  return OptionsIn(HelpOf(command));
}

std::map<std::string, Words> VerbsOf(const std::string& command) {
  std::map<std::string, Words> verbs;
  for (const std::string& verb : VerbsIn(HelpOf(command))) {
    const std::string help = HelpOf(command + " " + verb);
    Words options = OptionsIn(help);
    options.erase("--help");
    verbs[verb] = options;
    for (const std::string& part : VerbsIn(help)) {
      Words more = OptionsOf(command + " " + verb + " " + part);
      more.erase("--help");
      verbs[verb + " " + part] = more;
    }
  }
  return verbs;
}

std::string ReadText(const std::string& path_in_tree) {
  std::ifstream file(RKNND_SOURCE_ROOT "/" + path_in_tree);
  EXPECT_TRUE(file.good()) << path_in_tree;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace rknnd::manual
