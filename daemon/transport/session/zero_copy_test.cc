// No tensor is copied on the daemon's way from the client's memory to the
// device: a job that the device holds sees what the client writes meanwhile.

#include <gtest/gtest.h>

#include <cstddef>

#include "daemon/transport/session/testing/test_daemon.h"

namespace rknnd::transport {
namespace {

using testing::TestClient;
using testing::TestDaemon;

TEST(ZeroCopyTest, JobHeldOnItsCoreSeesAByteThatChangesMeanwhile) {
  TestDaemon daemon;
  TestClient client(daemon.Connect());
  client.SayHello();
  client.MakeReady(1);
  client.buffer(10)[0] = std::byte{5};
  daemon.device().HoldJobs(true);

  client.Submit(1, 0);
  daemon.WaitUntil([&daemon](const core::StatusReport& /*status*/) {
    return daemon.device().held() == 1;
  });
  client.buffer(10)[0] = std::byte{9};
  ASSERT_TRUE(daemon.device().Release());

  EXPECT_EQ(client.WaitFor(0), base::Code::kOk);
  // The fake device adds 1.
  EXPECT_EQ(client.buffer(11)[0], std::byte{10});
}

}  // namespace
}  // namespace rknnd::transport
