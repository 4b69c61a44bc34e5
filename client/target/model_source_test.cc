#include "client/target/model_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "base/posix/memfd.h"

namespace rknnd::client {
namespace {

using base::Code;
using ::testing::HasSubstr;

std::span<const std::byte> ModelBytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Bytes that outlive the sources made of them.
const std::string& Network() {
  static const std::string network = "network";
  return network;
}

class ModelSourceTest : public testing::Test {
 protected:
  ModelSourceTest() { mkdir(folder_.c_str(), 0700); }
  ~ModelSourceTest() override {
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(folder_.c_str());
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    files_.push_back(path);
    return path;
  }

  const std::string folder_ =
      testing::TempDir() + "model_source_test." + std::to_string(getpid());
  std::vector<std::string> files_;
};

std::string Contents(const base::UniqueFd& fd) {
  std::string text(4096, '\0');
  const ssize_t size = pread(fd.get(), text.data(), text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return text;
}

TEST_F(ModelSourceTest, FileAndItsBytesAreTheSameModel) {
  const auto file =
      ModelSource::OfFile(Write("m.onnx", "network"), std::nullopt);
  const auto bytes = ModelSource::OfBytes(ModelBytes(Network()), std::nullopt);
  ASSERT_TRUE(file.ok() && bytes.ok());
  EXPECT_EQ((*file)->id(), (*bytes)->id());
  EXPECT_EQ((*file)->id(), base::Sha256Of(ModelBytes("network")));
  EXPECT_EQ((*file)->name(), "m.onnx");
}

TEST_F(ModelSourceTest, LargeFileIsHashedWhole) {
  const std::string large(300 * 1000, 'x');
  const auto file = ModelSource::OfFile(Write("m.onnx", large), std::nullopt);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->id(), base::Sha256Of(ModelBytes(large)));
}

TEST_F(ModelSourceTest, OptionsBesideTheFileArePartOfTheModel) {
  const std::string path = Write("m.onnx", "network");
  Write("m.yml", "mean_values: 0\n");
  const auto file = ModelSource::OfFile(path, std::nullopt);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->options(), "mean_values: 0\n");
  EXPECT_EQ((*file)->id(),
            base::Sha256Of(ModelBytes("networkmean_values: 0\n")));
}

TEST_F(ModelSourceTest, SliceInsideTheFileIsTheModel) {
  const auto file =
      ModelSource::OfFile(Write("m.bin", "headNETtail"), ModelSlice{4, 3});
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->id(), base::Sha256Of(ModelBytes("NET")));
  EXPECT_EQ(Contents(*(*file)->ToMemfd()), "NET");
}

TEST_F(ModelSourceTest, SliceBeyondTheFileIsIgnored) {
  const auto file =
      ModelSource::OfFile(Write("m.bin", "network"), ModelSlice{4, 100});
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->id(), base::Sha256Of(ModelBytes("network")));
}

TEST_F(ModelSourceTest, MemfdHoldsTheBytesSealed) {
  for (const auto& source :
       {ModelSource::OfFile(Write("m.onnx", "network"), std::nullopt),
        ModelSource::OfBytes(ModelBytes(Network()), std::nullopt)}) {
    ASSERT_TRUE(source.ok());
    const auto memfd = (*source)->ToMemfd();
    ASSERT_TRUE(memfd.ok());
    EXPECT_EQ(Contents(*memfd), "network");
    EXPECT_TRUE(base::HasSeals(memfd->get(), base::Seals::kImmutable));
  }
}

TEST_F(ModelSourceTest, ChangedFileIsNotHandedOut) {
  const std::string path = Write("m.onnx", "network");
  const auto file = ModelSource::OfFile(path, std::nullopt);
  ASSERT_TRUE(file.ok());
  Write("m.onnx", "another");
  const auto memfd = (*file)->ToMemfd();
  ASSERT_FALSE(memfd.ok());
  EXPECT_EQ(memfd.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(memfd.error().message, HasSubstr("not what it was"));
}

TEST_F(ModelSourceTest, MissingFileIsNamedWithTheReason) {
  const auto file = ModelSource::OfFile(folder_ + "/none.onnx", std::nullopt);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("none.onnx"));
  EXPECT_THAT(file.error().message, HasSubstr("No such file"));
}

TEST_F(ModelSourceTest, FolderIsNoModel) {
  EXPECT_FALSE(ModelSource::OfFile(folder_, std::nullopt).ok());
}

TEST_F(ModelSourceTest, EmptyModelsAreTruncated) {
  const auto file = ModelSource::OfFile(Write("m.onnx", ""), std::nullopt);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("truncated"));
  EXPECT_FALSE(ModelSource::OfBytes({}, std::nullopt).ok());
}

TEST_F(ModelSourceTest, ForgottenBytesAreNotHandedOut) {
  const auto source = ModelSource::OfBytes(ModelBytes(Network()), std::nullopt);
  ASSERT_TRUE(source.ok());
  (*source)->ForgetBytes();
  EXPECT_FALSE((*source)->ToMemfd().ok());
}

TEST_F(ModelSourceTest, KeptBytesOutliveTheProgramsOwn) {
  std::string network = "network";
  const auto source = ModelSource::OfBytes(ModelBytes(network), std::nullopt);
  ASSERT_TRUE(source.ok());
  ASSERT_TRUE((*source)->KeepBytes().ok());
  (*source)->ForgetBytes();
  network = "garbage";
  EXPECT_EQ(Contents(*(*source)->ToMemfd()), "network");
}

TEST_F(ModelSourceTest, WhoseWeightsItSharesIsPartOfItsIdentity) {
  const std::string large = "large";
  const auto owner = ModelSource::OfBytes(ModelBytes(large), std::nullopt);
  const auto alone = ModelSource::OfBytes(ModelBytes(Network()), std::nullopt);
  const auto one = ModelSource::OfBytes(ModelBytes(Network()), std::nullopt);
  const std::string path = Write("f.onnx", Network());
  const auto two = ModelSource::OfFile(path, std::nullopt);
  ASSERT_TRUE(owner.ok() && alone.ok() && one.ok() && two.ok());

  (*one)->ShareWeightsOf(*owner);
  (*two)->ShareWeightsOf(*owner);

  const std::string line = "weights_of: " + base::ToHex((*owner)->id()) + "\n";
  EXPECT_EQ((*one)->options(), line);
  EXPECT_NE((*one)->id(), (*alone)->id());
  EXPECT_EQ((*one)->id(), base::Sha256Of(ModelBytes(Network() + line)));
  EXPECT_EQ((*two)->id(), (*one)->id());
  // The file is still itself.
  const auto memfd = (*two)->ToMemfd();
  ASSERT_TRUE(memfd.ok()) << memfd.error().message;
  EXPECT_EQ(Contents(*memfd), Network());
}

TEST_F(ModelSourceTest, ItsOwnOptionsComeFirst) {
  const std::string large = "large";
  const auto owner = ModelSource::OfBytes(ModelBytes(large), std::nullopt);
  Write("o.yml", "custom_string: x");
  const auto file =
      ModelSource::OfFile(Write("o.onnx", Network()), std::nullopt);
  ASSERT_TRUE(owner.ok() && file.ok());

  (*file)->ShareWeightsOf(*owner);

  EXPECT_EQ((*file)->options(), "custom_string: x\nweights_of: " +
                                    base::ToHex((*owner)->id()) + "\n");
  EXPECT_EQ((*file)->id(),
            base::Sha256Of(ModelBytes(Network() + (*file)->options())));
}

}  // namespace
}  // namespace rknnd::client
