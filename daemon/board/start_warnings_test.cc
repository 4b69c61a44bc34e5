// Tests of what the log says at start about the machine.

#include "daemon/board/start_warnings.h"

#include <gmock/gmock.h>

#include <string>

#include "daemon/board/testing/board_tree.h"
#include "gtest/gtest.h"

namespace rknnd::board {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class StartWarningsTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> Warnings(
      const std::string& asked = "auto",
      const std::string& got = "soft") const {
    return StartWarnings(Files(tree_.root()), asked, got);
  }

  // As the vendor's kernel shows its driver.
  void AddDriver() const {
    tree_.Link("/sys/class/drm/renderD129/device",
               tree_.root() + "/sys/devices/platform/fdab0000.npu");
    tree_.Link("/sys/devices/platform/fdab0000.npu/driver",
               tree_.root() + "/sys/bus/platform/drivers/RKNPU");
    tree_.Folder("/sys/bus/platform/drivers/RKNPU");
    tree_.Put("/sys/module/rknpu/version", "0.9.8\n");
  }

  const testing::BoardTree tree_;
};

TEST_F(StartWarningsTest, AMachineWithoutAnNpuHasNone) {
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(StartWarningsTest, AnNpuThatAutoPassedOverIsNamed) {
  AddDriver();
  EXPECT_THAT(Warnings(), ElementsAre(AllOf(HasSubstr("rknpu 0.9.8"),
                                            HasSubstr("software NPU answers"),
                                            HasSubstr("device = \"soft\""))));
}

TEST_F(StartWarningsTest, AnNpuWithoutADriverIsNamed) {
  tree_.Put("/proc/device-tree/npu@fdab0000/compatible",
            "rockchip,rk3588-rknpu");
  tree_.Put("/proc/device-tree/npu@fdab0000/status", "disabled");
  EXPECT_THAT(Warnings(), ElementsAre(AllOf(HasSubstr("npu@fdab0000"),
                                            HasSubstr("without a driver"))));
}

TEST_F(StartWarningsTest, WhoAskedForTheSoftwareNpuIsNotWarned) {
  AddDriver();
  EXPECT_THAT(Warnings("soft", "soft"), IsEmpty());
  EXPECT_THAT(Warnings("auto", "rknnrt"), IsEmpty());
}

TEST_F(StartWarningsTest, TheVendorsServerIsNamedWithItsUnit) {
  tree_.Put("/proc/812/comm", "rknn_server\n");
  tree_.Put("/proc/812/cgroup", "0::/system.slice/rknn_server.service\n");
  tree_.Put("/proc/813/comm", "rknn_servers\n");
  EXPECT_THAT(Warnings("soft"),
              ElementsAre(AllOf(
                  HasSubstr("pid 812, unit rknn_server.service"),
                  HasSubstr("systemctl disable --now rknn_server.service"))));
}

TEST_F(StartWarningsTest, AServerInAnothersUnitIsKilledAlone) {
  tree_.Put("/proc/812/comm", "rknn_server\n");
  tree_.Put("/proc/812/cgroup", "0::/system.slice/rc-local.service\n");
  EXPECT_THAT(Warnings(), ElementsAre(AllOf(HasSubstr("unit rc-local.service"),
                                            HasSubstr("kill 812"))));
}

// Anybody can give a process that name.
TEST_F(StartWarningsTest, ManyServersAreFewLines) {
  for (int pid = 100; pid < 200; ++pid) {
    tree_.Put("/proc/" + std::to_string(pid) + "/comm", "rknn_server\n");
  }
  EXPECT_THAT(Warnings(), SizeIs(4));
}

}  // namespace
}  // namespace rknnd::board
