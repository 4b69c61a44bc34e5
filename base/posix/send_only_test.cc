// Tests of sockets that nothing is received from.

#include "base/posix/send_only.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/posix/socket.h"

namespace rknnd::base {
namespace {

TEST(SendOnlyTest, KnockWakesWhoListens) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto listener = ListenTcp(reinterpret_cast<const sockaddr*>(&address),
                                  sizeof address, 1000, "here");
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  socklen_t size = sizeof address;
  ASSERT_EQ(getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address),
                        &size),
            0);
  pollfd ready = {listener->get(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  const auto knock = KnockTcp("127.0.0.1", ntohs(address.sin_port));
  ASSERT_TRUE(knock.ok()) << knock.error().message;
  EXPECT_EQ(poll(&ready, 1, 60'000), 1);
}

TEST(SendOnlyTest, KnockWhereNobodyListensIsNoError) {
  EXPECT_TRUE(KnockTcp("::1", 1).ok());
  EXPECT_TRUE(KnockTcp("127.0.0.1", 1).ok());
}

TEST(SendOnlyTest, NamesAreNotLookedUp) {
  const auto knock = KnockTcp("localhost", 80);
  ASSERT_FALSE(knock.ok());
  EXPECT_EQ(knock.error().code, Code::kInvalidArgument);
  EXPECT_NE(knock.error().message.find("localhost"), std::string::npos);
}

TEST(SendOnlyTest, DatagramSenderDoesNotWait) {
  const auto sender = MakeDatagramSender();
  ASSERT_TRUE(sender.ok());
  EXPECT_LT(send(sender->get(), "x", 1, MSG_NOSIGNAL), 0);
}

}  // namespace
}  // namespace rknnd::base
