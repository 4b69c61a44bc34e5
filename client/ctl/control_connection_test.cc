// How long a daemon is waited for. What is asked: rknnctl_test.cc.

#include "client/ctl/control_connection.h"

#include <gtest/gtest.h>

#include "base/posix/socket.h"
#include "client/image/temporary_folder.h"

namespace rknnd::client {
namespace {

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

}  // namespace
}  // namespace rknnd::client
