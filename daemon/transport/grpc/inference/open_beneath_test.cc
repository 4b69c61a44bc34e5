// Tests of opening below a folder: whatever name it is, nothing outside is
// reached, by the kernel's walk and by ours alike.

#include "daemon/transport/grpc/inference/open_beneath.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::transport {
namespace {

namespace fs = std::filesystem;

class OpenBeneathTest : public ::testing::TestWithParam<BeneathBy> {
 protected:
  OpenBeneathTest() {
    fs::create_directories(root() / "model" / "1");
    Write(root() / "model" / "1" / "model.onnx", "inside");
    Write(fs::path(outer_.path()) / "secret", "outside");
    folder_.reset(open(root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  [[nodiscard]] fs::path root() const {
    return fs::path(outer_.path()) / "repository";
  }
  static void Write(const fs::path& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  absl::StatusCode Open(const std::string& path, bool directory = false) {
    return OpenBeneath(folder_.get(), path, directory, GetParam())
        .status()
        .code();
  }

  core::testing::TemporaryFolder outer_;
  base::UniqueFd folder_;
};

TEST_P(OpenBeneathTest, FileAndFolderInsideAreOpened) {
  const auto file =
      OpenBeneath(folder_.get(), "model/1/model.onnx", false, GetParam());
  ASSERT_TRUE(file.ok()) << file.status();
  char text[6];
  ASSERT_EQ(read(file->get(), text, sizeof text), 6);
  EXPECT_EQ(std::string(text, 6), "inside");
  EXPECT_EQ(Open("model/1", true), absl::StatusCode::kOk);
}

TEST_P(OpenBeneathTest, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(Open("other"), absl::StatusCode::kNotFound);
  EXPECT_EQ(Open("model/2/model.onnx"), absl::StatusCode::kNotFound);
  EXPECT_EQ(Open("model/1/model.onnx/x"), absl::StatusCode::kNotFound);
  EXPECT_EQ(Open("model/1/model.onnx", true), absl::StatusCode::kNotFound);
}

TEST_P(OpenBeneathTest, NothingOutsideIsReachedByName) {
  EXPECT_EQ(Open("../secret"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Open("model/../../secret"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Open((fs::path(outer_.path()) / "secret").string()),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Open("..", true), absl::StatusCode::kInvalidArgument);
}

TEST_P(OpenBeneathTest, NoLinkIsFollowedNotEvenOneThatStaysInside) {
  fs::create_symlink(fs::path(outer_.path()) / "secret", root() / "file");
  fs::create_directory_symlink(outer_.path(), root() / "folder");
  fs::create_symlink("model/1/model.onnx", root() / "inside");
  EXPECT_EQ(Open("file"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Open("folder/secret"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Open("folder", true), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Open("inside"), absl::StatusCode::kInvalidArgument);
}

TEST_P(OpenBeneathTest, APipeWithoutAnotherEndHoldsNobodyUp) {
  ASSERT_EQ(mkfifo((root() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(Open("pipe"), absl::StatusCode::kOk);
}

INSTANTIATE_TEST_SUITE_P(Walks, OpenBeneathTest,
                         ::testing::Values(BeneathBy::kKernel,
                                           BeneathBy::kSteps));

}  // namespace
}  // namespace rknnd::transport
