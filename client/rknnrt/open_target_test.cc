#include "client/rknnrt/open_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rknnd::client {
namespace {

using base::Code;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(OpenTargetTest, NothingSetIsTheSystemsDaemon) {
  const auto spec = ParseTarget("");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->kind, TargetSpec::Kind::kUnix);
  EXPECT_EQ(spec->address, "/run/rknnd/session.sock");
}

TEST(OpenTargetTest, TargetsOfInterfacesAreKnown) {
  EXPECT_EQ(ParseTarget("unix:/tmp/s")->address, "/tmp/s");
  EXPECT_EQ(ParseTarget("local:")->kind, TargetSpec::Kind::kLocal);
  EXPECT_EQ(ParseTarget("tcp://board:1234")->address, "board:1234");
}

TEST(OpenTargetTest, AnythingElseIsAnErrorThatSaysWhatIsPossible) {
  for (const char* text : {"unix:", "board", "local", "http://board"}) {
    const auto spec = ParseTarget(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_THAT(spec.error().message, HasSubstr("unix:PATH"));
  }
}

TEST(OpenTargetTest, RestartWaitIsANumberOfSeconds) {
  EXPECT_EQ(*ParseRestartWait(""), 30 * base::kSecond);
  EXPECT_EQ(*ParseRestartWait("0"), 0);
  EXPECT_EQ(*ParseRestartWait("600"), 600 * base::kSecond);
}

TEST(OpenTargetTest, AnyOtherRestartWaitIsAnErrorThatNamesIt) {
  for (const char* text : {"-1", "5s", "forever", "86401", "99999999999"}) {
    const auto wait = ParseRestartWait(text);
    ASSERT_FALSE(wait.ok()) << text;
    EXPECT_EQ(wait.error().code, Code::kInvalidArgument);
    EXPECT_THAT(wait.error().message,
                HasSubstr(std::string("RKNND_RESTART_WAIT '") + text + "'"));
  }
}

TEST(OpenTargetTest, MissingDaemonIsSaidInTheUsersWords) {
  const auto target = OpenTarget("unix:/nonexistent/session.sock");
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.error().code, Code::kUnavailable);
  EXPECT_EQ(target.error().message,
            "rknnd is not running at /nonexistent/session.sock (systemctl "
            "status rknnd)");
}

TEST(OpenTargetTest, RemoteTargetWithoutItsLibraryOrADaemonSaysWhich) {
  // A port below 1024 of this machine that nobody listens on.
  const auto target = OpenTarget("tcp://127.0.0.1:1");
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.error().code, Code::kUnavailable);
  EXPECT_THAT(target.error().message,
              AnyOf(HasSubstr("no rknnd at 127.0.0.1:1: refused"),
                    HasSubstr("librknnd-remote.so")));
}

}  // namespace
}  // namespace rknnd::client
