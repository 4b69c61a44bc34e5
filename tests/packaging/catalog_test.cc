// Tests of the journal's catalog: each kind of event that the daemon logs has
// its explanation, and its line for the person with the pager.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "tests/integration/harness/files.h"
#include "tests/packaging/staging.h"

namespace rknnd::packaging {
namespace {

using integration::FindProgram;
using integration::ReadText;
using testing::ContainerEq;
using testing::SizeIs;

constexpr char kCatalog[] = "catalog/rknnd.catalog";

std::set<std::string> Ids(const std::string& text) {
  const std::regex id("\\b[0-9a-f]{32}\\b");
  std::set<std::string> ids;
  for (std::sregex_iterator at(text.begin(), text.end(), id), end; at != end;
       ++at) {
    ids.insert(at->str());
  }
  return ids;
}

TEST(CatalogTest, EachEventOfTheDaemonIsExplained) {
  const std::set<std::string> events =
      Ids(ReadText(RKNND_SOURCE_ROOT "/daemon/process/journal.cc"));
  EXPECT_FALSE(events.empty());
  EXPECT_THAT(Ids(Source(kCatalog)), ContainerEq(events));
  EXPECT_THAT(Ids(ReadText(RKNND_SOURCE_ROOT "/docs/operations.md")),
              ContainerEq(events));
}

TEST(CatalogTest, TheJournalTakesIt) {
  if (FindProgram("journalctl").empty()) {
    GTEST_SKIP() << "journalctl is not installed (package systemd)";
  }
  const Staging staging;
  const std::string folder = staging.Path("/usr/lib/systemd/catalog");
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(staging.Path("/var/lib/systemd/catalog"));
  integration::WriteFile(folder + "/rknnd.catalog", Source(kCatalog));
  const Ended made =
      staging.Run({"journalctl", "--root=ROOT", "--update-catalog"});
  EXPECT_EQ(made.code, 0) << made.errors;
  EXPECT_EQ(made.errors, "");
  const Ended listed =
      staging.Run({"journalctl", "--root=ROOT", "--list-catalog"});
  EXPECT_THAT(Ids(listed.output), ContainerEq(Ids(Source(kCatalog))));
  EXPECT_THAT(Lines(listed.output), SizeIs(Ids(Source(kCatalog)).size()));
}

}  // namespace
}  // namespace rknnd::packaging
