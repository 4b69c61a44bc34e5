// rknnd-run with real programs: whose librknnrt.so do they get?

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "client/image/temporary_folder.h"
#include "client/under/testing/shell.h"

namespace rknnd::client {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kRun = RKNND_BINARY_ROOT "/bin/rknnd-run ";
const std::string kLinked = RKNND_BINARY_ROOT "/bin/tests/under_linked";
const std::string kOpener = RKNND_BINARY_ROOT "/bin/tests/under_opener ";
const std::string kVendor = RKNND_VENDOR_LIBRARY;
constexpr char kAbsent[] = "/usr/lib/rknnd-test/librknnrt.so";

// Its stdout. On stderr our library tells of the context that is none.
std::string Output(const std::string& line) {
  const ShellResult result = Shell("{ " + line + "\n} 2>/dev/null");
  EXPECT_EQ(result.exit_code, 0) << line << ": " << result.output;
  return result.output;
}

TEST(RknndRunTest, LinkedProgramGetsOurs) {
  ASSERT_EQ(Output(kLinked), "vendor\n");
  EXPECT_EQ(Output(kRun + kLinked), "rknnd\n");
}

TEST(RknndRunTest, ProgramThatOpensTheNameGetsOurs) {
  EXPECT_EQ(Output(kRun + kOpener + "librknnrt.so"), "rknnd\n");
}

TEST(RknndRunTest, ProgramThatOpensAnAbsolutePathGetsOurs) {
  ASSERT_EQ(Output(kOpener + kVendor), "vendor\n");
  EXPECT_EQ(Output(kRun + kOpener + kVendor), "rknnd\n");
}

TEST(RknndRunTest, PathWhereNoFileIsWorksToo) {
  ASSERT_EQ(Output(kOpener + kAbsent), "none\n");
  EXPECT_EQ(Output(kRun + kOpener + kAbsent), "rknnd\n");
}

TEST(RknndRunTest, OtherLibrariesAreLeftAlone) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(kVendor, folder.File("libvendor.so"));
  EXPECT_EQ(Output(kRun + kOpener + folder.File("libvendor.so") +
                   " /nowhere/libother.so"),
            "vendor\nnone\n");
}

TEST(RknndRunTest, ChildrenOfAShellInherit) {
  EXPECT_EQ(Output(kRun + "sh -c '" + kOpener + kVendor + "; " + kLinked + "'"),
            "rknnd\nrknnd\n");
}

// Only the module reaches a program with an RPATH, but what clears LD_AUDIT is
// served by LD_LIBRARY_PATH.
TEST(RknndRunTest, ChildWithoutTheModuleGetsOursByName) {
  EXPECT_EQ(Output(kRun + "env -u LD_AUDIT " + kOpener + "librknnrt.so"),
            "rknnd\n");
}

TEST(RknndRunTest, PythonThatOpensTheUsualPathGetsOurs) {
  if (Shell("python3 -c 'import ctypes'").exit_code != 0) {
    GTEST_SKIP() << "no python3 with ctypes here";
  }
  EXPECT_EQ(
      Output(kRun + "python3 -c 'import ctypes; library = "
                    "ctypes.CDLL(\"/usr/lib/librknnrt.so\"); "
                    "print(library.rknnd_version_string is not None, "
                    "library.rknn_destroy(ctypes.c_uint64(0)) != -1000)'"),
      "True True\n");
}

TEST(RknndRunTest, OptionsReachTheLibraryAsVariables) {
  EXPECT_EQ(
      Output(kRun + "--target unix:/tmp/rknnd.sock --log-level 3 -- sh -c "
                    "'echo $RKNND_TARGET $RKNN_LOG_LEVEL'"),
      "unix:/tmp/rknnd.sock 3\n");
}

TEST(RknndRunTest, OptionsBehindTheCommandAreTheCommands) {
  EXPECT_EQ(Output(kRun + "echo --target --help"), "--target --help\n");
}

TEST(RknndRunTest, VariablesThatAreThereAreKept) {
  EXPECT_THAT(Output("LD_LIBRARY_PATH=/theirs " + kRun +
                     "sh -c 'echo $LD_LIBRARY_PATH'"),
              HasSubstr(":/theirs"));
  // One in another: as one.
  EXPECT_EQ(Output(kRun + kRun + "sh -c 'echo $LD_AUDIT $LD_LIBRARY_PATH'"),
            Output(kRun + "sh -c 'echo $LD_AUDIT $LD_LIBRARY_PATH'"));
}

TEST(RknndRunTest, ScriptWithoutAnInterpreterIsOneForSh) {
  const TemporaryFolder folder;
  const std::string script = folder.File("script");
  ASSERT_EQ(Shell("echo '" + kOpener + kVendor + "' >" + script +
                  "; chmod +x " + script)
                .exit_code,
            0);
  EXPECT_EQ(Output(kRun + script), "rknnd\n");
}

TEST(RknndRunTest, ExitCodeIsTheCommands) {
  EXPECT_EQ(Shell(kRun + "sh -c 'exit 7'").exit_code, 7);
}

TEST(RknndRunTest, CommandThatIsNotThere) {
  const ShellResult result = Shell(kRun + "no-such-command");
  EXPECT_EQ(result.exit_code, 127);
  EXPECT_THAT(result.output,
              StartsWith("rknnd-run: command 'no-such-command' not found"));
}

TEST(RknndRunTest, SetUserIdProgramIsNamed) {
  if (::getuid() != 0) GTEST_SKIP() << "only root gives files away";
  const TemporaryFolder folder;
  const std::string path = folder.File("program");
  ASSERT_EQ(Shell("cp " + kLinked + " " + path + " && chown 12345 " + path +
                  " && chmod 4755 " + path)
                .exit_code,
            0);
  const ShellResult result = Shell(kRun + path);
  EXPECT_EQ(result.exit_code, 126);
  EXPECT_THAT(result.output, HasSubstr(path));
}

TEST(RknndRunTest, BadUsageIsExplained) {
  for (const char* arguments :
       {"", "--", "--target", "--target '' true", "--log-level 6 true",
        "--log-level verbose true", "--no-such-option true"}) {
    const ShellResult result = Shell(kRun + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.output;
    EXPECT_FALSE(result.output.empty()) << arguments;
  }
}

}  // namespace
}  // namespace rknnd::client
