#include "client/ctl/board/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "client/image/temporary_folder.h"

namespace rknnd::client {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Line(const std::string& protocol, const std::string& name,
                 const std::string& address, const std::string& port,
                 const std::string& text) {
  return "=;eth0;" + protocol + ";" + name + ";_rknnd._tcp;local;board.local;" +
         address + ";" + port + ";" + text + "\n";
}

constexpr char kText[] = R"("soc=rk3588" "cores=3" "version=0.1.0")";

TEST(DiscoveryTest, DaemonsAreFoundOnceByTheirBestAddress) {
  const std::vector<FoundDevice> devices = ParseBrowsed(
      "+;eth0;IPv4;rknnd on board;_rknnd._tcp;local\n" +
      Line("IPv6", "rknnd\\032on\\032board", "fe80::1", "8001", kText) +
      Line("IPv4", "rknnd\\032on\\032board", "192.0.2.7", "8001", kText) +
      Line("IPv6", "rknnd\\032on\\032board", "2001:db8::7", "8001", kText) +
      Line("IPv6", "z", "fe80::2", "9", "") +
      Line("IPv6", "zz", "2001:db8::9", "9", ""));

  ASSERT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices[0].target, "tcp://192.0.2.7:8001");
  EXPECT_EQ(devices[0].soc, "rk3588");
  EXPECT_EQ(devices[0].cores, 3U);
  EXPECT_EQ(devices[0].version, "0.1.0");
  EXPECT_EQ(devices[0].source, "network");
  EXPECT_EQ(devices[1].target, "tcp://[fe80::2%eth0]:9");
  EXPECT_EQ(devices[1].cores, 0U);
  EXPECT_EQ(devices[2].target, "tcp://[2001:db8::9]:9");
}

TEST(DiscoveryTest, WhatIsNotAsItShouldBeIsLeftOut) {
  EXPECT_THAT(ParseBrowsed(""), IsEmpty());
  EXPECT_THAT(ParseBrowsed("=;eth0;IPv4;name\n=\n;;;;;;;;;;;;\n"), IsEmpty());
  EXPECT_THAT(ParseBrowsed(Line("IPv4", "n", "board;rm -rf", "1", "")),
              IsEmpty());
  EXPECT_THAT(ParseBrowsed(Line("IPv4", "n", "192.0.2.7", "0", "")), IsEmpty());
  EXPECT_THAT(ParseBrowsed(Line("IPv4", "n", "192.0.2.7", "65536", "")),
              IsEmpty());
  EXPECT_THAT(ParseBrowsed(Line("IPv4", "n", "192.0.2.7", "80x", "")),
              IsEmpty());
  std::string other = Line("IPv4", "n", "192.0.2.7", "80", "");
  other.replace(other.find("_rknnd"), 6, "_ipp2d");
  EXPECT_THAT(ParseBrowsed(other), IsEmpty());
  EXPECT_THAT(
      ParseBrowsed(Line("IPv4", std::string(5000, 'n'), "192.0.2.7", "80", "")),
      IsEmpty());
}

TEST(DiscoveryTest, RecordsThatAreNoWordsAreNotTold) {
  const std::vector<FoundDevice> devices = ParseBrowsed(
      Line("IPv4", "n", "192.0.2.7", "80",
           "\"soc=\x1b[2J\" \"cores=999\" \"version=a b\" \"soc=late\""));
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].soc, "");
  EXPECT_EQ(devices[0].cores, 0U);
  EXPECT_EQ(devices[0].version, "");
  EXPECT_EQ(
      ParseBrowsed(Line("IPv4", "n", "192.0.2.7", "80", "\"soc=x")).size(), 1U);
}

TEST(DiscoveryTest, ANetworkThatIsFullOfThemHasAnEnd) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += Line("IPv4", std::to_string(i), "192.0.2.7", "80", "");
  }
  EXPECT_EQ(ParseBrowsed(text).size(), 256U);
}

TEST(DevicesTest, NodesOfBothDriversAreFound) {
  const TemporaryFolder folder;
  const std::string root = folder.path();
  for (const auto& [node, driver] :
       {std::pair("/sys/class/drm/renderD129", "RKNPU"),
        std::pair("/sys/class/drm/renderD128", "panthor"),
        std::pair("/sys/class/accel/accel0", "rocket")}) {
    fs::create_directories(root + node + "/device");
    fs::create_symlink(std::string("/nowhere/") + driver,
                       root + node + "/device/driver");
  }
  fs::create_directories(root + "/sys/module/rknpu");
  std::ofstream(root + "/sys/module/rknpu/version") << "v0.9.8\n";
  fs::create_directories(root + "/proc/device-tree");
  std::ofstream(root + "/proc/device-tree/compatible")
      << std::string("radxa,rock-5b\0rockchip,rk3588\0", 30);

  const std::vector<FoundDevice> nodes = FindNodes(root);

  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].target, "/dev/dri/renderD129");
  EXPECT_EQ(nodes[0].soc, "rk3588");
  EXPECT_EQ(nodes[0].cores, 3U);
  EXPECT_EQ(nodes[0].version, "0.9.8");
  EXPECT_EQ(nodes[1].target, "/dev/accel/accel0");
  EXPECT_EQ(nodes[1].version, "rocket");
}

TEST(DevicesTest, NoneAreSaidToBeNone) {
  const Output output = DevicesOutput({});
  EXPECT_EQ(output.json.dump(), "[]");
  EXPECT_THAT(output.text, HasSubstr("rknnctl doctor"));
}

}  // namespace
}  // namespace rknnd::client
