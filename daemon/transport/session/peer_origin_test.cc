#include "daemon/transport/session/peer_origin.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace rknnd::transport {
namespace {

constexpr char kId[] =
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

TEST(PeerOriginTest, ServiceIsNamed) {
  const PeerOrigin home =
      ParseControlGroups("0::/system.slice/frigate.service\n");
  EXPECT_EQ(home.unit, "frigate.service");
  EXPECT_EQ(home.container, "");
}

TEST(PeerOriginTest, ContainerOfEachRuntimeIsFound) {
  const std::string id = kId;
  for (const std::string& path :
       {"/system.slice/docker-" + id + ".scope", "/docker/" + id,
        "/machine.slice/libpod-" + id + ".scope/container",
        "/kubepods.slice/kubepods-burstable.slice/cri-containerd-" + id +
            ".scope"}) {
    EXPECT_EQ(ParseControlGroups("0::" + path + "\n").container, "0123456789ab")
        << path;
  }
}

TEST(PeerOriginTest, DigitsThatAreNoIdAreNoContainer) {
  EXPECT_EQ(ParseControlGroups("0::/docker/" + std::string(63, 'a')).container,
            "");
  EXPECT_EQ(ParseControlGroups("0::/docker/" + std::string(65, 'a')).container,
            "");
}

TEST(PeerOriginTest, InnermostUnitIsTheProcessesOwn) {
  EXPECT_EQ(ParseControlGroups("0::/user.slice/user@1000.service/app.slice/"
                               "camera.service\n")
                .unit,
            "camera.service");
}

TEST(PeerOriginTest, OldControlGroupsTellTheSame) {
  const PeerOrigin home = ParseControlGroups(
      "12:memory:/other\n1:name=systemd:/system.slice/a.service\n"
      "0::/ignored.service\n");
  EXPECT_EQ(home.unit, "a.service");
}

TEST(PeerOriginTest, NamesCannotBreakALine) {
  EXPECT_EQ(ParseControlGroups("0::/a\x1b[2J.service\n").unit, "a?[2J.service");
}

TEST(PeerOriginTest, NoProcessHasNoOrigin) {
  EXPECT_EQ(FindPeerOrigin(0).unit, "");
  EXPECT_EQ(FindPeerOrigin(-1).unit, "");
  // Whatever ours is, reading it succeeds.
  static_cast<void>(FindPeerOrigin(getpid()));
}

}  // namespace
}  // namespace rknnd::transport
