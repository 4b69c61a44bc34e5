// Each option and verb that a program has is in its page, and no page tells of
// one that is not there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "client/under/testing/shell.h"
#include "tests/manual/help.h"

namespace rknnd::manual {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;

// The options that mdoc text marks as such: ".Fl -json", "Op Fl -once".
Words MarkedOptions(const std::string& text) {
  static const std::regex kFlag("(?:^|[ .])Fl (-[a-z][a-z0-9-]*)");
  Words options;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != '.') continue;
    // ".Fl -help | Fl -version": each has its own mark.
    for (std::sregex_iterator it(line.begin(), line.end(), kFlag), end;
         it != end; ++it) {
      options.insert("-" + (*it)[1].str());
    }
  }
  return options;
}

// What the page says under each verb of a list: "fault set" to its text.
std::map<std::string, std::string> Entries(const std::string& page) {
  static const std::regex kItem("^\\.It Cm ([a-z]+)( (?:list|set|clear))?");
  std::map<std::string, std::string> entries;
  std::string current;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kItem)) {
      current = match[1].str() + match[2].str();
    } else if (line == ".El") {
      current.clear();
    }
    if (!current.empty()) entries[current] += line + "\n";
  }
  return entries;
}

// The options of the list under DESCRIPTION: each has an item of its own.
Words ItemOptions(const std::string& page) {
  static const std::regex kItem("^\\.It Fl (-[a-z][a-z0-9-]*)");
  Words options;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kItem)) {
      options.insert("-" + match[1].str());
    }
  }
  return options;
}

std::string Page(const std::string& name) {
  return ReadText("docs/man/" + name);
}

TEST(ManualTest, RknnctlsPageHasEachVerbWithItsOptions) {
  const auto verbs = VerbsOf("rknnctl");
  // As many as there are: what reads --help has not gone blind.
  ASSERT_THAT(verbs, SizeIs(testing::Ge(20)));
  const auto entries = Entries(Page("rknnctl.1"));
  for (const auto& [verb, options] : verbs) {
    if (verb == "fault") continue;  // its parts are
    std::string item = ".It Cm " + verb;
    for (const std::string& option : options) {
      item += " Op Fl " + option.substr(1);
    }
    const auto entry = entries.find(verb);
    if (entry == entries.end()) {
      ADD_FAILURE() << "docs/man/rknnctl.1 has no entry of '" << verb
                    << "'; it begins:\n"
                    << item;
      continue;
    }
    for (const std::string& option : options) {
      EXPECT_TRUE(MarkedOptions(entry->second).contains(option))
          << "docs/man/rknnctl.1, entry of '" << verb << "', lacks: Op Fl "
          << option.substr(1);
    }
  }
  for (const auto& [entry, text] : entries) {
    ASSERT_TRUE(verbs.contains(entry)) << "rknnctl has no verb " << entry;
    EXPECT_THAT(verbs.at(entry), IsSupersetOf(MarkedOptions(text))) << entry;
  }
}

TEST(ManualTest, RknnctlsPageHasItsOwnOptions) {
  EXPECT_EQ(ItemOptions(Page("rknnctl.1")), OptionsOf("rknnctl"));
}

TEST(ManualTest, RknndsPageHasItsOptions) {
  const Words options = OptionsOf("rknnd");
  ASSERT_THAT(options, Contains("--check-config"));
  EXPECT_EQ(ItemOptions(Page("rknnd.8")), options);
}

TEST(ManualTest, RknndRunsPageHasItsOptions) {
  EXPECT_EQ(ItemOptions(Page("rknnd-run.1")), OptionsOf("rknnd-run"));
}

TEST(ManualTest, RknndDivertsPageHasItsOptionsAndVerbs) {
  const std::string page = Page("rknnd-divert.8");
  Words options = OptionsOf("rknnd-divert");
  options.insert("--version");  // on one line with --help
  EXPECT_EQ(ItemOptions(page), options);
  for (const char* verb : {"enable", "disable", "status"}) {
    EXPECT_THAT(page, HasSubstr(std::string(".It Cm ") + verb));
  }
}

#ifdef RKNND_HAS_K8S
TEST(ManualTest, DevicePluginsPageHasItsOptions) {
  EXPECT_EQ(ItemOptions(Page("rknnd-k8s.8")), OptionsOf("rknnd-k8s"));
}
#endif

TEST(ManualTest, PagesAreFreeOfFaults) {
  if (client::Shell("command -v mandoc").exit_code != 0) {
    GTEST_SKIP() << "mandoc is not installed";
  }
  const auto result =
      client::Shell("mandoc -T lint -W warning " RKNND_SOURCE_ROOT
                    "/docs/man/*.[1-9] " RKNND_BINARY_ROOT "/pages/*.[1-9]");
  EXPECT_EQ(result.output, "");
}

// The developer's commands: what ./dev lists, it does.
TEST(ManualTest, DevKnowsEachVerbItLists) {
  const std::string script = ReadText("dev");
  const size_t begin = script.find("<<'TEXT'\n");
  const size_t end = script.find("\nTEXT\n", begin);
  const size_t cases = script.find("\ncase $verb in\n", end);
  ASSERT_NE(cases, std::string::npos);
  static const std::regex kVerb("\n  ([a-z][a-z-]*)[ \n]");
  const std::string usage = script.substr(begin, end - begin);
  Words verbs;
  for (std::sregex_iterator it(usage.begin(), usage.end(), kVerb), none;
       it != none; ++it) {
    verbs.insert((*it)[1]);
  }
  ASSERT_THAT(verbs, IsSupersetOf({"setup", "test", "vm-test", "package"}));
  const std::string known = script.substr(cases);
  for (const std::string& verb : verbs) {
    EXPECT_TRUE(std::regex_search(
        known, std::regex("\n  ([a-z-]+ \\| )*" + verb + "( \\||\\))")))
        << "./dev " << verb << " is refused";
  }
}

TEST(ManualTest, ProgramsAreOfOneVersion) {
  for (const std::string program :
       {"rknnd", "rknnctl", "rknnd-run", "rknnd-divert"}) {
    EXPECT_EQ(client::Shell(RKNND_BINARY_ROOT "/bin/" + program + " --version")
                  .output,
              program + " " RKNND_VERSION "\n");
  }
}

}  // namespace
}  // namespace rknnd::manual
