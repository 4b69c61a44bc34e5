// An installation, in a folder of its own: programs are compiled against it as
// its documents say, and they and its own programs start.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "client/image/temporary_folder.h"
#include "client/under/testing/shell.h"

namespace rknnd::debian {
namespace {

using client::Shell;
using testing::HasSubstr;
using testing::Not;

constexpr char kProgram[] = R"(
#include <rknnd.h>
#include <stdio.h>
int main(void) { puts(rknnd_version_string()); return 0; }
)";

constexpr char kCppProgram[] = R"(
#include <rknnd.hpp>
#include <cstdio>
int main() { std::puts(rknnd_version_string()); }
)";

constexpr char kProject[] = R"(
cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(rknnd )" RKNND_VERSION R"( REQUIRED)
add_executable(program program.cc)
target_link_libraries(program PRIVATE rknnd::rknnrt)
)";

class InstallTest : public testing::Test {
 protected:
  // Once for all: it copies all that is shipped.
  static void SetUpTestSuite() {
    folder_ = new client::TemporaryFolder;
    const auto result =
        Shell("DESTDIR=" + Root() +
              " " RKNND_CMAKE " --install " RKNND_BINARY_ROOT " >/dev/null");
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static std::string Root() { return folder_->File("root"); }
  static std::string In(const std::string& path) { return Root() + path; }
  static std::string Prefix() { return In(RKNND_PREFIX); }
  static void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_->File(name)) << text;
  }
  static std::string Output(const std::string& line) {
    const auto result = Shell(line);
    EXPECT_EQ(result.exit_code, 0) << line << ": " << result.output;
    return result.output;
  }

  static client::TemporaryFolder* folder_;
};

client::TemporaryFolder* InstallTest::folder_ = nullptr;

TEST_F(InstallTest, ToolsFindTheLibraryWhereItIs) {
  EXPECT_EQ(Output(Prefix() + "/bin/rknnctl --version"),
            "rknnctl " RKNND_VERSION "\n");
  // Not the folder of the vendor's library, and not that of the build.
  const std::string dynamic = Output("readelf -d " + Prefix() + "/bin/rknnctl");
  EXPECT_THAT(dynamic, Not(HasSubstr("ORIGIN/../lib]")));
  EXPECT_THAT(dynamic, Not(HasSubstr(RKNND_BINARY_ROOT)));
}

TEST_F(InstallTest, ProgramsRunUnderTheInstalledLibrary) {
  const std::string path =
      Output(Prefix() + "/bin/rknnd-run sh -c 'echo $LD_AUDIT'");
  EXPECT_EQ(path, std::filesystem::canonical(In(RKNND_LIBDIR)).string() +
                      "/rknnd/rknnd-run-audit.so\n");
}

TEST_F(InstallTest, DaemonStarts) {
  EXPECT_EQ(Output(Prefix() + "/sbin/rknnd --version"),
            "rknnd " RKNND_VERSION "\n");
}

TEST_F(InstallTest, ExamplesFindTheLibraryAndTheirNetworks) {
  const std::string networks = Prefix() + "/share/rknnd/examples/";
  Output("RKNND_TARGET=local: " + In(RKNND_LIBDIR "/rknnd/examples/") +
         "memory_internal_reuse " + networks + "detector.onnx " + networks +
         "detector_small.onnx");
}

TEST_F(InstallTest, DemoFindsTheDaemonAndItsNetwork) {
  Output("cd " + folder_->File("") + " && " +
         In(RKNND_LIBDIR "/rknnd/examples/") +
         "rknnd-demo --streams 1 --contexts 1 --seconds 0.2");
  EXPECT_TRUE(
      std::filesystem::exists(folder_->File("rknnd-demo/stream-0.png")));
}

TEST_F(InstallTest, NoLibraryStandsInTheLoadersFolders) {
  for (const auto& entry :
       std::filesystem::directory_iterator(In(RKNND_LIBDIR))) {
    EXPECT_NE(entry.path().extension(), ".so") << entry.path();
  }
}

TEST_F(InstallTest, PkgConfigIsEnoughForAProgramInC) {
  if (Shell("command -v pkg-config").exit_code != 0) {
    GTEST_SKIP() << "pkg-config is not installed";
  }
  Write("program.c", kProgram);
  const std::string program = folder_->File("c-program");
  const std::string environment =
      "PKG_CONFIG_SYSROOT_DIR=" + Root() +
      " PKG_CONFIG_PATH=" + In(RKNND_LIBDIR "/pkgconfig");
  Output(RKNND_CC " -std=c99 -pedantic -Wall -Wextra -Werror " +
         folder_->File("program.c") + " -o " + program + " $(" + environment +
         " pkg-config --cflags --libs rknnd)");
  // Where it will be when it is installed; here that is elsewhere.
  EXPECT_THAT(Output("readelf -d " + program),
              HasSubstr("[" RKNND_LIBDIR "/rknnd]"));
  EXPECT_THAT(
      Output("LD_LIBRARY_PATH=" + In(RKNND_LIBDIR "/rknnd") + " " + program),
      HasSubstr(RKNND_VERSION));
}

TEST_F(InstallTest, FindPackageIsEnoughForAProgramInCpp) {
  std::filesystem::create_directory(folder_->File("project"));
  Write("project/CMakeLists.txt", kProject);
  Write("project/program.cc", kCppProgram);
  const std::string project = folder_->File("project");
  Output(RKNND_CMAKE " -S " + project + " -B " + project +
         "/build -D CMAKE_PREFIX_PATH=" + Prefix() +
         " -D CMAKE_C_COMPILER=" RKNND_CC " -D CMAKE_CXX_COMPILER=" RKNND_CXX
         " >/dev/null");
  Output(RKNND_CMAKE " --build " + project + "/build >/dev/null");
  EXPECT_THAT(Output(project + "/build/program"), HasSubstr(RKNND_VERSION));
}

}  // namespace
}  // namespace rknnd::debian
