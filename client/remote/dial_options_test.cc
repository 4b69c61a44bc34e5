// What the user said, and what he is told.

#include "client/remote/dial_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace rknnd::client {
namespace {

using base::Code;
using ::testing::HasSubstr;

class DialOptionsTest : public testing::Test {
 protected:
  ~DialOptionsTest() override {
    unsetenv("RKNND_TOKEN");
    unsetenv("RKNND_TLS_CERT");
    unsetenv("RKNND_TLS_CA");
    unsetenv("RKNND_GRPC_INSECURE");
  }
};

TEST(LoopbackTest, OnlyThisMachineIsThisMachine) {
  for (const char* here : {"127.0.0.1:8001", "localhost:8001", "[::1]:8001",
                           "unix:/run/x", "dns:///localhost:8001",
                           "ipv4:127.0.0.1:1,127.0.0.2:2", "ipv6:[::1]:8001"}) {
    EXPECT_TRUE(IsLoopback(here)) << here;
  }
  for (const char* elsewhere :
       {"192.0.2.7:8001", "board:8001", "127.evil.example:1", "",
        "ipv4:127.0.0.1:1,192.0.2.7:2", "dns:///board.local:8001",
        "dns://127.0.0.1/board:1", "[2001:db8::1]:8001",
        "localhost.example:1"}) {
    EXPECT_FALSE(IsLoopback(elsewhere)) << elsewhere;
  }
}

TEST_F(DialOptionsTest, ATokenDoesNotCrossANetworkInPlainText) {
  ASSERT_EQ(setenv("RKNND_TOKEN", "secret", 1), 0);
  EXPECT_TRUE(ReadDialOptions("127.0.0.1:8001").ok());
  const auto refused = ReadDialOptions("board:8001");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("RKNND_TLS_CA"));
  ASSERT_EQ(setenv("RKNND_GRPC_INSECURE", "1", 1), 0);
  EXPECT_TRUE(ReadDialOptions("board:8001").ok());
}

TEST_F(DialOptionsTest, APortIsAskedFor) {
  for (const char* const address : {"board", "192.0.2.1", "[::1]"}) {
    const auto refused = ReadDialOptions(address);
    ASSERT_FALSE(refused.ok()) << address;
    EXPECT_THAT(refused.error().message, HasSubstr(":PORT"));
  }
  for (const char* const address :
       {"[::1]:8001", "dns:///boards.lan:8001", "unix:/run/board"}) {
    EXPECT_TRUE(ReadDialOptions(address).ok()) << address;
  }
}

TEST_F(DialOptionsTest, AFileThatIsNotThereIsNamed) {
  ASSERT_EQ(setenv("RKNND_TLS_CA", "/nonexistent/ca.pem", 1), 0);
  const auto refused = ReadDialOptions("board:8001");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              HasSubstr("RKNND_TLS_CA names '/nonexistent/ca.pem'"));
}

TEST(DialFailureTest, GrpcsWordsBecomeTheUsers) {
  DialOptions plain;
  plain.address = "board:8001";
  DialOptions tls = plain;
  tls.tls = true;
  struct Case {
    const DialOptions& options;
    const char* said;
    const char* expected;
  };
  for (const auto& [options, said, expected] :
       {Case{plain, "Failed to connect to remote host: Connection refused",
             "no rknnd at board:8001: refused. On the board"},
        Case{plain, "DNS resolution failed for board:8001", "name unknown"},
        Case{plain, "Socket closed", "set RKNND_TLS_CA"},
        Case{plain, "Failed parsing HTTP/2", "speaks no gRPC"},
        Case{plain, "the daemon is draining and takes no new sessions",
             "rknnd at board:8001: the daemon is draining"},
        Case{tls, "the daemon is draining and takes no new sessions",
             "rknnd at board:8001: the daemon is draining"},
        Case{tls, "Ssl handshake failed: SSL_ERROR_SSL: wrong version number",
             "or it speaks plain text"}}) {
    EXPECT_THAT(DialFailure(options, {Code::kUnavailable, said}).message,
                HasSubstr(expected))
        << said;
  }
  EXPECT_THAT(DialFailure(plain, {Code::kUnimplemented, ""}).message,
              HasSubstr("no rknnd, or one older than this client"));
}

}  // namespace
}  // namespace rknnd::client
