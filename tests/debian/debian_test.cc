// packaging/debian says what the tree has: versions, exported names, files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "client/rknnrt/version.h"

namespace rknnd::debian {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;
using Words = std::set<std::string>;

const std::string kTree = RKNND_SOURCE_ROOT "/";
const std::string kDebian = kTree + "packaging/debian/";

std::string Read(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// What the first group of `pattern` finds in each line.
Words Found(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  Words words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, regex)) words.insert(match[1]);
  }
  return words;
}

TEST(DebianTest, VersionIsTheProjects) {
  EXPECT_THAT(Read(kDebian + "changelog"),
              StartsWith("rknnd (" RKNND_VERSION ") "));
  EXPECT_STREQ(RKNND_CLIENT_VERSION, RKNND_VERSION);
}

TEST(DebianTest, SymbolsFileHasWhatTheLibraryExports) {
  const Words exported = Found(Read(kTree + "client/rknnrt/librknnrt.map"),
                               "^ *(rknnd?_[A-Za-z0-9_]+);");
  ASSERT_THAT(exported, SizeIs(testing::Gt(50)));
  const std::string symbols = Read(kDebian + "librknnd1.symbols");
  EXPECT_THAT(symbols, StartsWith("librknnrt.so librknnd1 #MINVER#\n"));
  EXPECT_EQ(Found(symbols, "^ (rknnd?_[A-Za-z0-9_]+)@Base "), exported);
}

TEST(DebianTest, EachPackageHasFiles) {
  const Words packages =
      Found(Read(kDebian + "control"), "^Package: ([a-z0-9-]+)$");
  ASSERT_THAT(packages, Contains("librknnd1"));
  for (const std::string& package : packages) {
    EXPECT_TRUE(std::filesystem::exists(kDebian + package + ".install") ||
                std::filesystem::exists(kDebian + package + ".docs"))
        << package;
  }
  for (const auto& entry : std::filesystem::directory_iterator(kDebian)) {
    if (entry.path().extension() != ".install") continue;
    EXPECT_THAT(packages, Contains(entry.path().stem().string()));
  }
}

// ./dev setup installs what a build of the packages asks for.
TEST(DebianTest, BuildDependenciesAreThoseOfTheTree) {
  const std::string control = Read(kDebian + "control");
  const size_t begin = control.find("Build-Depends:\n");
  ASSERT_NE(begin, std::string::npos);
  Words asked = Found(control.substr(begin, control.find("\n\n") - begin),
                      "^ ([a-z0-9+-]+)");
  ASSERT_THAT(asked, SizeIs(testing::Gt(10)));
  asked.erase("debhelper-compat");
  asked.erase("dh-sequence-installsysusers");  // of debhelper
  asked.erase("dh-sequence-python3");          // of dh-python
  const Words known =
      Found(Read(kTree + "packaging/build-deps.txt"), "^([a-z0-9+.-]+)$");
  for (const std::string& package : asked) {
    EXPECT_THAT(known, Contains(package));
  }
  EXPECT_THAT(Read(kTree + "packaging/package-deps.txt"),
              HasSubstr("\ndebhelper\n"));
}

// What the documents send their readers to.
TEST(DebianTest, DashboardAndExamplesAreInPackages) {
  EXPECT_THAT(Found(Read(kDebian + "rknnd.install"), "^(.*grafana.*)$"),
              SizeIs(1));
  EXPECT_THAT(Found(Read(kDebian + "rknnd-examples.install"), "^(.*)$"),
              Contains("usr/share/rknnd/examples"));
  const Words sources =
      Found(Read(kDebian + "rknnd-examples.examples"), "^(.*)$");
  ASSERT_THAT(sources, SizeIs(testing::Gt(1)));
  for (const std::string& path : sources) {
    EXPECT_TRUE(std::filesystem::exists(kTree + path)) << path;
  }
}

TEST(DebianTest, RulesCanBeRun) {
  const auto mode = std::filesystem::status(kDebian + "rules").permissions();
  EXPECT_NE(mode & std::filesystem::perms::owner_exec,
            std::filesystem::perms::none);
}

}  // namespace
}  // namespace rknnd::debian
