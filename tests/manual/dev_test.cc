// ./dev on machines that are not as it wants them: each gets one sentence that
// says what is wrong and what to do. A copy of the script runs in a folder of
// its own, with programs of ours in place of the system's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "client/under/testing/shell.h"

namespace rknnd::manual {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DevTest : public ::testing::Test {
 protected:
  DevTest() {
    std::string name = ::testing::TempDir() + "/dev_XXXXXX";
    folder_ = mkdtemp(name.data());
    fs::create_directories(folder_ + "/packaging");
    fs::create_directories(folder_ + "/bin");
    fs::copy_file(RKNND_SOURCE_ROOT "/dev", folder_ + "/dev");
    std::ofstream(folder_ + "/packaging/build-deps.txt")
        << "g++\nninja-build\n";
    for (const char* tool :
         {"sh", "dirname", "nproc", "sed", "grep", "env", "find", "head", "awk",
          "cat", "rm", "mkdir", "tr"}) {
      const client::ShellResult where =
          client::Shell(std::string("command -v ") + tool);
      fs::create_symlink(where.output.substr(0, where.output.find('\n')),
                         folder_ + "/bin/" + tool);
    }
    // Nothing is installed, nobody is root, and there is a disk.
    Command("dpkg-query", "exit 1");
    Command("id", "echo 1000");
    Command("df", "echo; echo / 1 1 99999 1% /");
    Command("cmake", "echo configured");
  }
  ~DevTest() override { fs::remove_all(folder_); }

  void Command(const std::string& name, const std::string& script) {
    const std::string path = folder_ + "/bin/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  void WithPackages() {
    Command("dpkg-query", "echo installed g++; echo installed ninja-build");
  }
  client::ShellResult Dev(const std::string& arguments) {
    return client::Shell("PATH=" + folder_ + "/bin " + folder_ + "/dev " +
                         arguments + " 2>&1");
  }

  std::string folder_;
};

TEST_F(DevTest, WithoutRootItNamesThePackages) {
  const auto result = Dev("build");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output,
              HasSubstr("packages are missing (g++ ninja-build) and there is "
                        "no sudo: run './dev setup' as root"));
}

TEST_F(DevTest, WithoutANetworkItSaysWhatCouldNotBeInstalled) {
  Command("id", "echo 0");
  Command("apt-get", "echo 'E: Temporary failure resolving'; exit 100");
  const auto result = Dev("build");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output,
              HasSubstr("apt-get could not install these packages: g++ "
                        "ninja-build; is there a network, and room"));
}

TEST_F(DevTest, AnotherDistributionIsToldWhatToInstall) {
  fs::remove(folder_ + "/bin/dpkg-query");
  const auto result = Dev("build");
  EXPECT_THAT(result.output, HasSubstr("this is not Debian: install what "
                                       "packaging/build-deps.txt names"));
  EXPECT_THAT(result.output, HasSubstr("configured"));
}

TEST_F(DevTest, AFullDiskIsToldBeforeTheCompilerFindsIt) {
  WithPackages();
  Command("df", "echo; echo / 1 1 650 1% /");
  const auto result = Dev("build");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output,
              HasSubstr("this disk has 650 MiB free, and a build "
                        "takes 4000 MiB: make room"));
  EXPECT_THAT(Dev("demo").output, HasSubstr("a build takes 700 MiB"));
}

TEST_F(DevTest, CrossNamesTheCompilersThatItMisses) {
  WithPackages();
  std::ofstream(folder_ + "/packaging/cross-deps.txt")
      << "g++-aarch64-linux-gnu\n";
  const auto result = Dev("cross arm64");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output,
              HasSubstr("as root, run 'apt-get install g++-aarch64-linux-gnu"));
  EXPECT_THAT(Dev("cross mips").output,
              HasSubstr("no architecture 'mips': arm64, armhf"));
}

}  // namespace
}  // namespace rknnd::manual
