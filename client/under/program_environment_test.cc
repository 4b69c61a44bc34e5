#include "client/under/program_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "client/image/temporary_folder.h"

namespace rknnd::client {
namespace {

using testing::HasSubstr;

class DaemonFactsTest : public testing::Test {
 protected:
  std::string Make(const std::string& name, bool with_module) {
    const std::string folder = folder_.File(name);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + kUnderLibrary) << "";
    if (with_module) std::ofstream(folder + "/" + kUnderModule) << "";
    return folder;
  }

  TemporaryFolder folder_;
};

TEST_F(DaemonFactsTest, FolderWithTheVendorsLibraryAloneIsNotOurs) {
  const std::string vendor = Make("vendor", false);
  const std::string ours = Make("ours", true);
  const auto found = FindOurs({vendor, ours});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, std::filesystem::canonical(ours).string());
}

TEST_F(DaemonFactsTest, WithoutThemTheErrorNamesFoldersAndPackage) {
  const auto found = FindOurs({Make("vendor", false), "/nowhere"});
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("vendor' and '/nowhere'"));
  EXPECT_THAT(found.error().message, HasSubstr("librknnd1"));
}

TEST_F(DaemonFactsTest, FolderThatTheLoaderWouldCutIsRefused) {
  const auto found = FindOurs({Make("a b", true)});
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("a b"));
}

TEST_F(DaemonFactsTest, EntryStandsInFrontOnce) {
  EXPECT_EQ(PutInFront("/ours", ""), "/ours");
  EXPECT_EQ(PutInFront("/ours", "/a:/b"), "/ours:/a:/b");
  EXPECT_EQ(PutInFront("/ours", "/a:/ours:/b"), "/ours:/a:/b");
  // No entry that means the folder one is in.
  EXPECT_EQ(PutInFront("/ours", ":/a::"), "/ours:/a");
}

}  // namespace
}  // namespace rknnd::client
