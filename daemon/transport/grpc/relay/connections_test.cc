#include "daemon/transport/grpc/relay/connections.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>
#include <utility>
#include <vector>

#include "base/posix/socket.h"
#include "base/status/matchers.h"

namespace rknnd::transport {
namespace {

using ::rknnd::base::IsOk;
using ::rknnd::base::StatusIs;
using ::testing::HasSubstr;

sockaddr_storage From(const char* address) {
  sockaddr_storage socket{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(socket);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(socket);
  if (inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
    v6.sin6_family = AF_INET6;
  }
  return socket;
}

class ConnectionTableTest : public ::testing::Test {
 protected:
  absl::Status Connect(const char* address) {
    auto place = table_.Add(From(address));
    if (place.ok()) open_.push_back(*std::move(place));
    return place.status();
  }

  ConnectionTable table_{4};
  std::vector<std::unique_ptr<ConnectionTable::Place>> open_;
};

TEST_F(ConnectionTableTest, ThereAreNoMoreThanWereAskedFor) {
  for (const char* host :
       {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}) {
    EXPECT_THAT(Connect(host), IsOk());
  }
  EXPECT_THAT(Connect("192.0.2.5"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("all 4 connections are taken")));
}

TEST_F(ConnectionTableTest, OneThatEndedMakesRoom) {
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Connect("127.0.0.1"), IsOk());
  EXPECT_FALSE(Connect("127.0.0.1").ok());
  open_.erase(open_.begin());
  EXPECT_THAT(Connect("127.0.0.1"), IsOk());
  EXPECT_EQ(table_.size(), 4U);
}

TEST_F(ConnectionTableTest, OneHostLeavesRoomForOthers) {
  EXPECT_THAT(Connect("192.0.2.1"), IsOk());
  EXPECT_THAT(Connect("192.0.2.1"), IsOk());
  EXPECT_THAT(Connect("192.0.2.1"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("one host may have 2 of the 4")));
  EXPECT_THAT(Connect("192.0.2.2"), IsOk());
}

TEST_F(ConnectionTableTest, AddressesOfOneIpv6NetAreOneHost) {
  EXPECT_THAT(Connect("2001:db8::1"), IsOk());
  EXPECT_THAT(Connect("2001:db8::2"), IsOk());
  EXPECT_FALSE(Connect("2001:db8::3").ok());
  EXPECT_THAT(Connect("2001:db8:0:1::1"), IsOk());
}

}  // namespace
}  // namespace rknnd::transport
