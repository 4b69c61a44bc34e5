#include "daemon/board/foreign_users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rknnd {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr pid_t kOwn = 500;

// A /dev, /proc and /sys of files.
class ForeignUsersTest : public ::testing::Test {
 protected:
  ForeignUsersTest()
      : root_(::testing::TempDir() + "foreign_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_ + "/proc");
    fs::create_directories(root_ + "/dev");
    MakeNode("card0", "vkms");
    MakeNode("renderD128", "panfrost");
  }
  ~ForeignUsersTest() override { fs::remove_all(root_); }

  void MakeNode(const std::string& name, const std::string& driver) {
    const std::string device = root_ + "/sys/class/drm/" + name + "/device";
    fs::create_directories(device);
    fs::create_symlink("../../../bus/platform/drivers/" + driver,
                       device + "/driver");
  }
  void MakeNpu() {
    MakeNode("card1", "RKNPU");
    MakeNode("renderD129", "RKNPU");
    fs::create_directories(root_ + "/sys/class/drm/card1-HDMI-A-1/device");
  }
  void MakeProcess(pid_t pid, const std::string& comm,
                   const std::vector<std::string>& files, pid_t parent = 1) {
    const std::string process = root_ + "/proc/" + std::to_string(pid);
    fs::create_directories(process + "/fd");
    std::ofstream(process + "/comm") << comm << "\n";
    std::ofstream(process + "/stat")
        << pid << " (" << comm << ") S " << parent << " 1 1 0\n";
    int fd = 3;
    for (const std::string& file : files) {
      fs::create_symlink(file, process + "/fd/" + std::to_string(fd++));
    }
  }

  const std::string root_;
};

TEST_F(ForeignUsersTest, MachineWithoutAnNpuIsNotSearched) {
  MakeProcess(812, "camera", {"/dev/dri/renderD128"});
  MakeProcess(813, "rknn_server", {});
  ForeignUsers users(root_, kOwn);
  EXPECT_FALSE(users.worthwhile());
  EXPECT_THAT(users.Find(), IsEmpty());
}

TEST_F(ForeignUsersTest, HoldersOfEachNodeAreNamed) {
  MakeNpu();
  MakeProcess(812, "rkllm-server",
              {"/dev/null", "socket:[123]", "/dev/dri/renderD129"});
  MakeProcess(700, "own-driver", {"/dev/dri/card1", "/dev/dri/card1"});
  MakeProcess(813, "camera", {"/dev/dri/renderD128"});
  ForeignUsers users(root_, kOwn);
  ASSERT_TRUE(users.worthwhile());
  const auto found = users.Find();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].pid, 700);
  EXPECT_EQ(found[0].device, "/dev/dri/card1");
  EXPECT_EQ(found[1].pid, 812);
  EXPECT_EQ(found[1].comm, "rkllm-server");
  EXPECT_EQ(found[1].device, "/dev/dri/renderD129");
}

TEST_F(ForeignUsersTest, NodeOfADriverWithoutDrmCounts) {
  std::ofstream(root_ + "/dev/rknpu") << "";
  MakeProcess(812, "llm", {"/dev/rknpu"});
  ForeignUsers users(root_, kOwn);
  ASSERT_EQ(users.Find().size(), 1U);
  EXPECT_EQ(users.Find()[0].device, "/dev/rknpu");
}

TEST_F(ForeignUsersTest, DaemonAndItsWorkersAreNotForeign) {
  MakeNpu();
  MakeProcess(kOwn, "rknnd", {"/dev/dri/renderD129"});
  MakeProcess(501, "worker) S 9", {"/dev/dri/renderD129"}, kOwn);
  EXPECT_THAT(ForeignUsers(root_, kOwn).Find(), IsEmpty());
}

TEST_F(ForeignUsersTest, VendorsServerIsNamedThoughItIsIdle) {
  MakeNpu();
  MakeProcess(40, "rknn_server", {});
  const auto found = ForeignUsers(root_, kOwn).Find();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].comm, "rknn_server");
  EXPECT_EQ(found[0].device, "");
}

TEST_F(ForeignUsersTest, WhatMayNotBeReadIsSaid) {
  MakeNpu();
  MakeProcess(812, "llm", {"/dev/dri/renderD129"});
  const std::string files = root_ + "/proc/812/fd";
  ASSERT_EQ(chmod(files.c_str(), 0), 0);
  // Root may read everything, others not.
  const uid_t before = geteuid();
  if (before == 0) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const auto found = ForeignUsers(root_, kOwn).Find();
  if (before == 0) {
    ASSERT_EQ(seteuid(0), 0);
  }
  chmod(files.c_str(), 0700);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pid, 0);
  EXPECT_EQ(found[0].comm, "1 process that only root may look at");
}

TEST_F(ForeignUsersTest, ProcessThatGoesMeanwhileIsPassedOver) {
  MakeNpu();
  fs::create_directories(root_ + "/proc/900");
  fs::create_directories(root_ + "/proc/self");
  EXPECT_THAT(ForeignUsers(root_, kOwn).Find(), IsEmpty());
}

TEST_F(ForeignUsersTest, LineOfTheLogNamesThemAndTheRemedy) {
  EXPECT_EQ(Describe({}), "");
  const std::string one = Describe({{812, "rkllm-server", "/dev/rknpu"}});
  EXPECT_THAT(one, HasSubstr("by rkllm-server (pid 812, /dev/rknpu)"));
  EXPECT_THAT(one, HasSubstr("rknnctl lease"));
  const std::string many = Describe({{1, "a", ""},
                                     {2, "b", ""},
                                     {3, "c", ""},
                                     {4, "d", ""},
                                     {5, "e", ""},
                                     {0, "9 processes", ""}});
  EXPECT_THAT(many, HasSubstr("d (pid 4) and 1 more"));
  EXPECT_THAT(many, Not(HasSubstr("9 processes")));
}

}  // namespace
}  // namespace rknnd
