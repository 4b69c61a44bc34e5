// Which node is found, and what is said where none can be used.

#include "driver/rknpu/kernel/npu_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "driver/rknpu/kernel/testing/fake_kernel.h"

namespace rknnd::rknpu {
namespace {

using testing::FakeKernel;
using ::testing::HasSubstr;

std::string Message(FakeKernel& kernel) {
  return std::string(FindNpuNode(kernel).status().message());
}

TEST(NpuNodeTest, IsFoundByItsDriversNameWhateverItsNumber) {
  FakeKernel kernel;
  kernel.nodes = {{"/dev/dri/card0", {"rockchip", "Display"}},
                  {"/dev/dri/card1", {}},
                  {"/dev/dri/renderD128", {"panthor", "GPU"}},
                  {"/dev/dri/renderD129", {}}};
  const auto node = FindNpuNode(kernel);

  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->path, "/dev/dri/renderD129");
  EXPECT_TRUE(node->drm);
  EXPECT_EQ(kernel.open_files(), 0U);
}

TEST(NpuNodeTest, CardServesWhereTheRenderNodeIsRefused) {
  FakeKernel kernel;
  kernel.nodes = {{"/dev/dri/card1", {}},
                  {"/dev/dri/renderD129", {"rknpu", "RKNPU driver", EACCES}}};
  const auto node = FindNpuNode(kernel);

  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->path, "/dev/dri/card1");
}

TEST(NpuNodeTest, TheBuildWithoutDrmHasANodeOfItsOwn) {
  FakeKernel kernel;
  kernel.nodes = {{"/dev/rknpu", {}}};
  const auto node = FindNpuNode(kernel);

  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_FALSE(node->drm);
}

TEST(NpuNodeTest, NothingIsNotFound) {
  FakeKernel kernel;
  kernel.nodes = {{"/dev/dri/card0", {"rockchip", "Display"}}};
  EXPECT_EQ(FindNpuNode(kernel).status().code(), absl::StatusCode::kNotFound);
}

TEST(NpuNodeTest, WrongRightsAreSaidWithTheNode) {
  FakeKernel kernel;
  kernel.nodes = {{"/dev/dri/renderD129", {"rknpu", "", EACCES}}};

  EXPECT_EQ(FindNpuNode(kernel).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Message(kernel), HasSubstr("/dev/dri/renderD129"));
}

TEST(NpuNodeTest, RocketIsKnownAndRefusedWithAdvice) {
  FakeKernel kernel;
  kernel.nodes = {{"/dev/accel/accel0", {"rocket", "rocket DRM"}}};

  EXPECT_EQ(FindNpuNode(kernel).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Message(kernel), HasSubstr("rocket"));
  EXPECT_THAT(Message(kernel),
              HasSubstr("boot a kernel of the board's vendor"));
}

TEST(NpuNodeTest, RkopnuIsKnownByItsDescription) {
  FakeKernel kernel;
  kernel.nodes = {{"/dev/dri/renderD129",
                   {"rknpu", "rkopnu (rknpu ABI on mainline rocket)"}}};

  EXPECT_THAT(Message(kernel), HasSubstr("rkopnu"));
}

}  // namespace
}  // namespace rknnd::rknpu
