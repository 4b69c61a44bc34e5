// Tests of the udev rules, which systemd 252 has no tool to check: their syntax
// here, and what newer versions say where there is one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "tests/integration/harness/files.h"
#include "tests/packaging/staging.h"

namespace rknnd::packaging {
namespace {

constexpr char kRules[] = "udev/60-rknnd.rules";

// What stands in a rule, and whether it compares or sets.
const std::set<std::string> kMatches = {"ACTION", "KERNEL", "SUBSYSTEM",
                                        "DRIVERS"};
const std::set<std::string> kAssignments = {"GROUP", "MODE", "TAG",  "ENV",
                                            "RUN",   "GOTO", "LABEL"};

TEST(UdevRulesTest, EachTermComparesOrSetsAKeyOfUdevs) {
  const std::regex term(
      R"re(([A-Z]+)(\{[A-Z_]+\})?(==|!=|\+=|=)"([^"]*)"(, )?)re");
  std::set<std::string> aims, labels;
  size_t rules = 0;
  for (const std::string& line : Lines(Source(kRules))) {
    if (line.empty() || line.starts_with("#")) continue;
    ++rules;
    std::string rest = line;
    for (std::smatch found; !rest.empty(); rest = found.suffix()) {
      ASSERT_TRUE(std::regex_search(rest, found, term,
                                    std::regex_constants::match_continuous))
          << "at '" << rest << "' of '" << line << "'";
      const bool compares = found[3] == "==" || found[3] == "!=";
      EXPECT_EQ((compares ? kMatches : kAssignments).count(found[1]), 1U)
          << found[0] << " in '" << line << "'";
      if (found[1] == "GOTO") aims.insert(found[4]);
      if (found[1] == "LABEL") labels.insert(found[4]);
    }
  }
  EXPECT_GE(rules, 5U);
  EXPECT_EQ(aims, labels);
}

// A unit that is wanted by a device has to exist.
TEST(UdevRulesTest, UnitsThatAreWantedAreThere) {
  const std::string rules = Source(kRules);
  const std::regex wanted(R"re(SYSTEMD_WANTS\}\+="([^"]+)")re");
  size_t count = 0;
  for (std::sregex_iterator at(rules.begin(), rules.end(), wanted), end;
       at != end; ++at, ++count) {
    EXPECT_NE(Source((*at)[1]), "") << (*at)[1];
  }
  EXPECT_GT(count, 0U);
}

TEST(UdevRulesTest, UdevTakesThem) {
  const Staging staging;
  if (integration::FindProgram("udevadm").empty() ||
      staging.Run({"udevadm", "verify", "--help"}).code != 0) {
    GTEST_SKIP() << "no udevadm verify here (systemd 254 and later)";
  }
  const Ended ended =
      staging.Run({"udevadm", "verify", SourceFolder() + "/" + kRules});
  EXPECT_EQ(ended.code, 0) << ended.output << ended.errors;
}

}  // namespace
}  // namespace rknnd::packaging
