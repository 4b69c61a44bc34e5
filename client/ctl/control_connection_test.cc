// How long a daemon is waited for. What is asked: rknnctl_test.cc.

#include "client/ctl/control_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/posix/socket.h"
#include "client/image/temporary_folder.h"

namespace rknnd::client {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ControlConnectionTest, SilentDaemonIsGivenUpWhenTheUserDoes) {
  const TemporaryFolder folder;
  const std::string path = folder.File("s");
  // Nobody accepts, nobody answers.
  const auto listener = base::ListenUnix(path, 0600);
  ASSERT_TRUE(listener.ok());
  int waits = 0;

  const auto connection = ControlConnection::Open(
      "unix:" + path, [&](int /*fd*/, int milliseconds) {
        EXPECT_GT(milliseconds, 1000);
        ++waits;
        return ControlConnection::Waited::kCancelled;
      });

  ASSERT_FALSE(connection.ok());
  EXPECT_EQ(connection.error().code, base::Code::kCancelled);
  EXPECT_EQ(waits, 1);
}

TEST(ControlConnectionTest, UserWhoMayNotConnectIsNotToldToStartIt) {
  const TemporaryFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0), 0);
  constexpr uid_t kNobody = 65534;
  const bool is_root = geteuid() == 0;
  ASSERT_EQ(seteuid(is_root ? kNobody : geteuid()), 0);

  const std::string target = "unix:" + folder.File("session.sock");
  const auto session = ControlConnection::Open(target);
  const auto admin = ControlConnection::OpenAdmin(target);

  ASSERT_EQ(seteuid(is_root ? 0 : geteuid()), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
  ASSERT_FALSE(session.ok());
  ASSERT_FALSE(admin.ok());
  EXPECT_EQ(session.error().code, base::Code::kPermissionDenied);
  EXPECT_THAT(session.error().message, Not(HasSubstr("start rknnd")));
  EXPECT_THAT(admin.error().message, HasSubstr("sudo rknnctl"));
}

}  // namespace
}  // namespace rknnd::client
