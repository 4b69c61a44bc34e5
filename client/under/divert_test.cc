// rknnd-divert on a system of its own: a folder with dpkg's database in it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "client/image/temporary_folder.h"
#include "client/under/testing/shell.h"

namespace rknnd::client {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kUsual[] = "/usr/lib/librknnrt.so";
constexpr char kAside[] = "/usr/lib/rknnd-vendor/librknnrt.so";

class DivertTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Shell("command -v dpkg-divert").exit_code != 0) {
      GTEST_SKIP() << "no dpkg-divert here";
    }
    fs::create_directories(folder_.File("var/lib/dpkg/info"));
    fs::create_directories(folder_.File("var/lib/dpkg/updates"));
    Write("/var/lib/dpkg/status", "");
    ours_ = RKNND_OUR_LIBRARY;
    Write(ours_, "ours");
  }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(In(path)).parent_path());
    std::ofstream(In(path)) << text;
  }

  [[nodiscard]] std::string Read(const std::string& path) const {
    std::ifstream file(In(path));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  [[nodiscard]] std::string In(const std::string& path) const {
    return folder_.path() + path;
  }

  [[nodiscard]] std::string LinkOf(const std::string& path) const {
    std::error_code error;
    return fs::read_symlink(In(path), error).string();
  }

  [[nodiscard]] ShellResult Divert(const std::string& arguments) const {
    return Shell(RKNND_BINARY_ROOT "/bin/rknnd-divert --root " +
                 folder_.path() + " " + arguments);
  }

  [[nodiscard]] std::string Diversions() const {
    return Shell("dpkg-divert --root=" + folder_.path() +
                 " --list '*librknnrt*'")
        .output;
  }

  TemporaryFolder folder_;
  std::string ours_;
};

TEST_F(DivertTest, VendorsFileGoesAsideAndComesBack) {
  Write(kUsual, "vendor's");
  ShellResult result = Divert("enable");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(LinkOf(kUsual), ours_);
  EXPECT_EQ(Read(kAside), "vendor's");
  result = Divert("status");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr(kAside));

  result = Divert("disable");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(LinkOf(kUsual), "");
  EXPECT_EQ(Read(kUsual), "vendor's");
  EXPECT_FALSE(fs::exists(In("/usr/lib/rknnd-vendor")));
  EXPECT_EQ(Diversions(), "");
  EXPECT_EQ(Divert("status").exit_code, 3);
}

TEST_F(DivertTest, WorksWhereTheVendorHasNone) {
  ASSERT_EQ(Divert("enable").exit_code, 0);
  EXPECT_EQ(LinkOf(kUsual), ours_);
  const ShellResult result = Divert("disable");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_FALSE(fs::is_symlink(In(kUsual)));
  EXPECT_EQ(Diversions(), "");
}

TEST_F(DivertTest, AllCopiesInUsualFoldersAreDiverted) {
  Write(kUsual, "one");
  Write("/usr/local/lib/librknnrt.so", "two");
  ASSERT_EQ(Divert("enable").exit_code, 0);
  EXPECT_EQ(LinkOf("/usr/local/lib/librknnrt.so"), ours_);
  ASSERT_EQ(Divert("disable").exit_code, 0);
  EXPECT_EQ(Read(kUsual), "one");
  EXPECT_EQ(Read("/usr/local/lib/librknnrt.so"), "two");
}

TEST_F(DivertTest, FileThatIsNamedIsDivertedAndNoOther) {
  Write(kUsual, "vendor's");
  Write("/opt/app/librknnrt.so", "its own");
  ASSERT_EQ(Divert("enable /opt/app/librknnrt.so").exit_code, 0);
  EXPECT_EQ(LinkOf("/opt/app/librknnrt.so"), ours_);
  EXPECT_EQ(Read(kUsual), "vendor's");
  ASSERT_EQ(Divert("disable").exit_code, 0);
  EXPECT_EQ(Read("/opt/app/librknnrt.so"), "its own");
}

TEST_F(DivertTest, TwiceIsAsOnce) {
  Write(kUsual, "vendor's");
  ASSERT_EQ(Divert("enable").exit_code, 0);
  const ShellResult again = Divert("enable");
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("already"));
  EXPECT_EQ(Read(kAside), "vendor's");
  ASSERT_EQ(Divert("disable").exit_code, 0);
  EXPECT_EQ(Divert("disable").exit_code, 0);
  EXPECT_EQ(Read(kUsual), "vendor's");
}

TEST_F(DivertTest, EnableCompletesWhatWasInterrupted) {
  Write(kUsual, "vendor's");
  ASSERT_EQ(Divert("enable").exit_code, 0);
  // Between dpkg-divert and the link.
  fs::remove(In(kUsual));
  EXPECT_THAT(Divert("status").output, HasSubstr("run rknnd-divert enable"));
  ASSERT_EQ(Divert("enable").exit_code, 0);
  EXPECT_EQ(LinkOf(kUsual), ours_);
  ASSERT_EQ(Divert("disable").exit_code, 0);
  EXPECT_EQ(Read(kUsual), "vendor's");
}

// dpkg-divert has written its database, and has not moved the file.
TEST_F(DivertTest, InterruptedBeforeTheMoveIsCompletedEitherWay) {
  for (const char* verb : {"enable", "disable"}) {
    Write(kUsual, "vendor's");
    fs::create_directories(In("/usr/lib/rknnd-vendor"));
    const ShellResult half =
        Shell("dpkg-divert --root=" + folder_.path() +
              " --local --no-rename --divert " + kAside + " --add " + kUsual);
    ASSERT_EQ(half.exit_code, 0) << half.output;
    ShellResult result = Divert(verb);
    EXPECT_EQ(result.exit_code, 0) << verb << ": " << result.output;
    result = Divert("disable");
    EXPECT_EQ(result.exit_code, 0) << verb << ": " << result.output;
    EXPECT_EQ(Read(kUsual), "vendor's") << verb;
    EXPECT_EQ(Diversions(), "") << verb;
  }
}

TEST_F(DivertTest, FileThatAnInterruptedDisableLeftAsideComesBack) {
  Write(kAside, "vendor's");
  const ShellResult result = Divert("disable");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(Read(kUsual), "vendor's");
  EXPECT_FALSE(fs::exists(In("/usr/lib/rknnd-vendor")));
}

TEST_F(DivertTest, FolderMayHaveBlanksInItsName) {
  Write("/opt/my app */librknnrt.so", "its own");
  ASSERT_EQ(Divert("enable '/opt/my app */librknnrt.so'").exit_code, 0);
  EXPECT_EQ(LinkOf("/opt/my app */librknnrt.so"), ours_);
  EXPECT_THAT(Divert("status").output,
              HasSubstr("/opt/my app */librknnrt.so: rknnd's"));
  const ShellResult result = Divert("disable");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(Read("/opt/my app */librknnrt.so"), "its own");
  EXPECT_EQ(Diversions(), "");
}

TEST_F(DivertTest, FolderWithTwoNamesIsOneFolder) {
  Write(kUsual, "vendor's");
  fs::create_symlink("usr/lib", In("/lib"));
  ASSERT_EQ(Divert("enable").exit_code, 0);
  EXPECT_THAT(Divert("enable /lib/librknnrt.so").output, HasSubstr("already"));
  const ShellResult result = Divert("disable");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(Read(kUsual), "vendor's");
  EXPECT_EQ(Diversions(), "");
}

// Moved into another folder, a relative link leads nowhere until it is back.
TEST_F(DivertTest, VendorsLinkComesBackToo) {
  Write("/usr/lib/rockchip/librknnrt.so", "vendor's");
  fs::create_symlink("rockchip/librknnrt.so", In(kUsual));
  EXPECT_THAT(Divert("enable").output, HasSubstr("the vendor's is"));
  EXPECT_EQ(LinkOf(kUsual), ours_);
  ASSERT_EQ(Divert("disable").exit_code, 0);
  EXPECT_EQ(LinkOf(kUsual), "rockchip/librknnrt.so");
}

TEST_F(DivertTest, ForeignFileInTheLinksPlaceIsNotLost) {
  Write(kUsual, "vendor's");
  ASSERT_EQ(Divert("enable").exit_code, 0);
  fs::remove(In(kUsual));
  Write(kUsual, "copied by hand");
  const ShellResult result = Divert("disable");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("move it away"));
  const ShellResult again = Divert("enable");
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.output, HasSubstr("move the former away"));
  EXPECT_EQ(Read(kUsual), "copied by hand");
  EXPECT_EQ(Read(kAside), "vendor's");
}

TEST_F(DivertTest, BadUsageChangesNothing) {
  Write(kUsual, "vendor's");
  for (const char* arguments :
       {"", "enabel", "enable librknnrt.so", "enable /usr/lib/other.so",
        "disable everything"}) {
    const ShellResult result = Divert(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.output;
  }
  EXPECT_EQ(Read(kUsual), "vendor's");
  EXPECT_EQ(Diversions(), "");
  fs::remove(In(ours_));
  const ShellResult result = Divert("enable");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("librknnd1"));
}

}  // namespace
}  // namespace rknnd::client
