// Tests of the repository as files: layouts, names that lead elsewhere, and
// files that change while they are read.

#include "daemon/transport/grpc/inference/repository_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "base/values/sha256.h"
#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::transport {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargest = uint64_t{64} << 20;

std::string ContentsOf(const base::UniqueFd& fd) {
  struct stat status {};
  fstat(fd.get(), &status);
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  EXPECT_EQ(pread(fd.get(), bytes.data(), bytes.size(), 0), status.st_size);
  return bytes;
}

class RepositoryFolderTest : public ::testing::Test {
 protected:
  RepositoryFolderTest() {
    auto folder = RepositoryFolder::Open(root_.path(), kLargest, &stop_);
    EXPECT_TRUE(folder.ok()) << folder.status();
    folder_ = *std::move(folder);
  }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((fs::path(root_.path()) / path).parent_path());
    std::ofstream(fs::path(root_.path()) / path) << text;
  }
  absl::StatusCode ReadCode(const std::string& name,
                            const std::string& version = "1") {
    return folder_->Read(name, version).status().code();
  }
  // Reads while `change` goes on, until that is seen.
  absl::Status ReadWhile(const std::function<void(int fd)>& change) {
    Write("model.onnx", std::string(size_t{8} << 20, 'm'));
    const std::string path = root_.path() + "/model.onnx";
    base::UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    std::atomic<bool> enough{false};
    std::thread changer([&] {
      while (!enough) change(fd.get());
    });
    absl::Status status;
    for (int i = 0; i < 1000 && status.ok(); ++i) {
      status = folder_->Read("model", "1").status();
    }
    enough = true;
    changer.join();
    return status;
  }

  core::testing::TemporaryFolder root_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<RepositoryFolder> folder_;
};

TEST_F(RepositoryFolderTest, EachLayoutIsFound) {
  Write("versions/2/model.onnx", "v2");
  Write("versions/10/model.onnx", "v10");
  Write("versions/config.pbtxt", "name: \"versions\"");
  Write("versions/notes/model.onnx", "no version");
  Write("versions/03/model.onnx", "no version");
  Write("versions/4/weights.bin", "no model");
  Write("folder/model.rknn", "f");
  Write("file.onnx", "file");
  Write("readme.txt", "no model");
  Write(".hidden.onnx", "no model");
  fs::create_directory(root_.path() + "/empty");
  const auto names = folder_->Names();
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(*names, (std::vector<std::string>{"file", "folder", "versions"}));
  // By number, not as text.
  EXPECT_EQ(*folder_->Versions("versions"),
            (std::vector<std::string>{"2", "10"}));
  EXPECT_EQ(*folder_->Versions("folder"), std::vector<std::string>{"1"});
  EXPECT_EQ(*folder_->Versions("file"), std::vector<std::string>{"1"});
  EXPECT_EQ(ContentsOf(folder_->Read("versions", "10")->bytes), "v10");
  EXPECT_EQ(ContentsOf(folder_->Read("folder", "1")->bytes), "f");
  EXPECT_EQ(folder_->Read("folder", "1")->name, "folder.rknn");
  EXPECT_EQ(ContentsOf(folder_->Read("file", "1")->bytes), "file");
  EXPECT_EQ(ReadCode("versions", "4"), absl::StatusCode::kNotFound);
  EXPECT_EQ(folder_->Versions("nobody").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RepositoryFolderTest, OptionsBesideAreReadAndPartOfTheHash) {
  Write("plain.onnx", "m");
  Write("with.onnx", "m");
  Write("with.yml", "mean_values: [[0]]\n");
  Write("empty.onnx", "m");
  Write("empty.yml", "");
  const auto plain = folder_->Read("plain", "1");
  const auto with = folder_->Read("with", "1");
  const auto empty = folder_->Read("empty", "1");
  ASSERT_TRUE(plain.ok() && with.ok() && empty.ok());
  EXPECT_EQ(with->options, "mean_values: [[0]]\n");
  const std::string both = "mmean_values: [[0]]\n";
  EXPECT_EQ(with->id, base::Sha256Of(std::as_bytes(std::span(both))));
  EXPECT_EQ(empty->id, plain->id);
}

TEST_F(RepositoryFolderTest, UploadIsSealedAndFreeOfTheFolder) {
  Write("model.onnx", "before");
  const auto upload = folder_->Read("model", "1");
  ASSERT_TRUE(upload.ok()) << upload.status();
  EXPECT_TRUE(base::HasSeals(upload->bytes.get(), base::Seals::kImmutable));
  Write("model.onnx", "after!");
  EXPECT_EQ(ContentsOf(upload->bytes), "before");
  EXPECT_EQ(ContentsOf(folder_->Read("model", "1")->bytes), "after!");
}

TEST_F(RepositoryFolderTest, NamesThatLeadElsewhereAreRefused) {
  for (const char* name : {"", ".", "..", "../model", "a/b", "/etc/passwd",
                           ".hidden", "a b", "a\\b", "model\n",
                           "m\xc3\xb6"
                           "del"}) {
    EXPECT_EQ(ReadCode(name), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(folder_->Versions(name).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_EQ(ReadCode(std::string("mod\0el", 6)),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadCode(std::string(129, 'm')),
            absl::StatusCode::kInvalidArgument);
  Write("model.onnx", "m");
  for (const char* version :
       {"", "0", "01", "-1", "..", "1/..", "one", "1000000000000000000000"}) {
    EXPECT_EQ(ReadCode("model", version), absl::StatusCode::kInvalidArgument)
        << version;
  }
}

TEST_F(RepositoryFolderTest, LinksAreRefusedWhereverTheyAre) {
  core::testing::TemporaryFolder outside;
  std::ofstream(outside.path() + "/model.onnx") << "secret";
  fs::create_symlink(outside.path() + "/model.onnx",
                     root_.path() + "/file.onnx");
  fs::create_directory_symlink(outside.path(), root_.path() + "/folder");
  fs::create_directory(root_.path() + "/version");
  fs::create_directory_symlink(outside.path(), root_.path() + "/version/1");
  Write("options.onnx", "m");
  fs::create_symlink(outside.path() + "/model.onnx",
                     root_.path() + "/options.yml");
  for (const char* name : {"file", "folder", "version", "options"}) {
    EXPECT_EQ(ReadCode(name), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST_F(RepositoryFolderTest, WhatIsNoFileOfABearableSizeIsRefused) {
  ASSERT_EQ(mkfifo((root_.path() + "/pipe.onnx").c_str(), 0600), 0);
  EXPECT_EQ(ReadCode("pipe"), absl::StatusCode::kInvalidArgument);
  fs::create_directory(root_.path() + "/folder.onnx");
  EXPECT_EQ(ReadCode("folder"), absl::StatusCode::kInvalidArgument);
  Write("empty.onnx", "");
  EXPECT_EQ(ReadCode("empty"), absl::StatusCode::kInvalidArgument);
  Write("large.onnx", "");
  fs::resize_file(root_.path() + "/large.onnx", kLargest + 1);
  EXPECT_EQ(ReadCode("large"), absl::StatusCode::kInvalidArgument);
  Write("options.onnx", "m");
  Write("options.yml", std::string((size_t{64} << 10) + 1, ' '));
  EXPECT_EQ(ReadCode("options"), absl::StatusCode::kInvalidArgument);
}

TEST_F(RepositoryFolderTest, FileThatIsWrittenMeanwhileIsSeen) {
  const absl::Status status =
      ReadWhile([](int fd) { EXPECT_EQ(pwrite(fd, "x", 1, 100), 1); });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
}

TEST_F(RepositoryFolderTest, FileThatIsTruncatedMeanwhileIsSeen) {
  const absl::Status status = ReadWhile([](int fd) {
    EXPECT_EQ(ftruncate(fd, off_t{4} << 20), 0);
    EXPECT_EQ(ftruncate(fd, off_t{8} << 20), 0);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
}

TEST_F(RepositoryFolderTest, FileThatGrowsMeanwhileIsSeen) {
  const absl::Status status = ReadWhile([](int fd) {
    struct stat now {};
    ASSERT_EQ(fstat(fd, &now), 0);
    // Not above the limit, which would be another reason.
    if (now.st_size < off_t{32} << 20) {
      EXPECT_EQ(ftruncate(fd, now.st_size + 1), 0);
    }
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
}

TEST_F(RepositoryFolderTest, ReadingEndsWhenTheServerStops) {
  Write("model.onnx", "m");
  stop_ = true;
  EXPECT_EQ(ReadCode("model"), absl::StatusCode::kCancelled);
}

TEST_F(RepositoryFolderTest, FilesOfARequestArePackedByVersion) {
  const auto packed =
      PackModelFiles("m", {{"10/model.onnx", "ten"},
                           {"2/weights.onnx", "two"},
                           {"2/model.yml", "mean_values: [[0]]\n"}});
  ASSERT_TRUE(packed.ok()) << packed.status();
  ASSERT_EQ(packed->size(), 2U);
  EXPECT_EQ((*packed)[0].first, "2");
  EXPECT_EQ(ContentsOf((*packed)[0].second.bytes), "two");
  EXPECT_EQ((*packed)[0].second.options, "mean_values: [[0]]\n");
  EXPECT_EQ((*packed)[1].first, "10");
  EXPECT_TRUE(
      base::HasSeals((*packed)[1].second.bytes.get(), base::Seals::kImmutable));
}

TEST_F(RepositoryFolderTest, FilesOfARequestThatAreNoModelAreRefused) {
  const std::vector<ModelFiles> wrong = {
      {{"model.onnx", "m"}},      {{"1/../model.onnx", "m"}},
      {{"../1/model.onnx", "m"}}, {{"1/.onnx", "m"}},
      {{"0/model.onnx", "m"}},    {{"1/model.pt", "m"}},
      {{"1/model.yml", "x: 1"}},  {{"1/a.onnx", "m"}, {"1/b.onnx", "m"}},
  };
  for (const ModelFiles& files : wrong) {
    EXPECT_EQ(PackModelFiles("m", files).status().code(),
              absl::StatusCode::kInvalidArgument)
        << files[0].first;
  }
}

}  // namespace
}  // namespace rknnd::transport
