// Dumps as files: what a daemon says of them is not taken for granted.

#include "client/rknnrt/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "base/posix/memfd.h"
#include "client/image/npy.h"
#include "client/image/temporary_folder.h"
#include "client/target/progress.h"

namespace rknnd::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WriteDumpTest : public testing::Test {
 protected:
  // Four floats, in one tensor.
  WriteDumpTest() {
    const float values[] = {1, 2, 3, 4};
    const auto bytes = std::as_bytes(std::span(values));
    const auto memfd = base::MakeImmutableMemfd("dump", bytes);
    auto mapping = base::Mapping::OfFd(memfd->get(), 0, bytes.size(),
                                       base::Mapping::Access::kRead);
    dump_.bytes = *std::move(mapping);
    wire::DumpedTensor tensor{};
    tensor.layer = 1;
    wire::SetText(tensor.type, "ConvRelu");
    wire::SetText(tensor.name, "features/conv 1");
    tensor.dims_count = 2;
    tensor.dims[0] = tensor.dims[1] = 2;
    tensor.size = bytes.size();
    dump_.tensors.push_back(tensor);
  }
  std::string File(const std::string& name) { return folder_.File(name); }
  std::string WhyNot() {
    const auto written = WriteDump(dump_, File(""));
    return written.ok() ? "it was written" : written.error().message;
  }

  TemporaryFolder folder_;
  LayerDump dump_;
};

TEST_F(WriteDumpTest, NameHasTheLayersIdAndTypeAndNoFolders) {
  ASSERT_TRUE(WriteDump(dump_, File("")).ok());
  const auto array = ReadNpy(File("0002_ConvRelu_features_conv_1.npy"));
  ASSERT_TRUE(array.ok()) << array.error().message;
  EXPECT_EQ(array->type, ElementType::kFloat32);
  EXPECT_THAT(array->shape, ElementsAre(2, 2));
}

TEST_F(WriteDumpTest, WithoutRoomForAllNoneIsWritten) {
  // Takes address space alone.
  constexpr size_t kHuge = size_t{8} << 40;
  const base::UniqueFd sparse(memfd_create("sparse", MFD_CLOEXEC));
  if (ftruncate(sparse.get(), kHuge) != 0) GTEST_SKIP() << "no sparse memfd";
  auto mapping =
      base::Mapping::OfFd(sparse.get(), 0, kHuge, base::Mapping::Access::kRead);
  if (!mapping.ok()) GTEST_SKIP() << mapping.error().message;
  dump_.bytes = *std::move(mapping);
  EXPECT_THAT(WhyNot(), HasSubstr("make room"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(WriteDumpTest, ProgressIsToldToItsEnd) {
  struct Told {
    std::string what;
    uint64_t done = 0, total = 0;
  } told;
  SetProgress(
      [](void* user, const char* what, uint64_t done, uint64_t total) {
        *static_cast<Told*>(user) = {what, done, total};
      },
      &told);
  ASSERT_TRUE(WriteDump(dump_, File("")).ok());
  SetProgress(nullptr, nullptr);
  EXPECT_EQ(told.what, "dump");
  EXPECT_EQ(told.done, 16U);
  EXPECT_EQ(told.total, 16U);
  dump_.tensors.clear();
  ASSERT_TRUE(WriteDump(dump_, File("")).ok());  // nobody is told
}

TEST_F(WriteDumpTest, NameThatClimbsStaysInTheFolder) {
  wire::SetText(dump_.tensors[0].name, "../../outside");
  ASSERT_TRUE(WriteDump(dump_, File("")).ok());
  EXPECT_TRUE(std::filesystem::exists(File("0002_ConvRelu_.._.._outside.npy")));
}

TEST_F(WriteDumpTest, TensorOfTheSameNameGetsANumber) {
  dump_.tensors.push_back(dump_.tensors[0]);
  ASSERT_TRUE(WriteDump(dump_, File("")).ok());
  EXPECT_TRUE(
      std::filesystem::exists(File("0002_ConvRelu_features_conv_1_2.npy")));
}

TEST_F(WriteDumpTest, NumberedNameTakesNoOthersFile) {
  const wire::DumpedTensor twice = dump_.tensors[0];
  wire::DumpedTensor other = twice;
  wire::SetText(other.name, "features/conv 1_2");
  dump_.tensors = {twice, other, twice, twice};
  ASSERT_TRUE(WriteDump(dump_, File("")).ok());
  for (const char* name : {"0002_ConvRelu_features_conv_1.npy",
                           "0002_ConvRelu_features_conv_1_2.npy",
                           "0002_ConvRelu_features_conv_1_3.npy",
                           "0002_ConvRelu_features_conv_1_4.npy"}) {
    EXPECT_TRUE(std::filesystem::exists(File(name))) << name;
  }
}

TEST_F(WriteDumpTest, TensorOutsideTheBytesIsRefused) {
  dump_.tensors[0].offset = 8;
  EXPECT_THAT(WhyNot(), HasSubstr("is damaged"));
  dump_.tensors[0].offset = UINT64_MAX;
  EXPECT_THAT(WhyNot(), HasSubstr("is damaged"));
}

TEST_F(WriteDumpTest, ShapeThatIsNotItsBytesIsRefused) {
  dump_.tensors[0].dims[0] = 3;
  EXPECT_THAT(WhyNot(), HasSubstr("its shape needs"));
  dump_.tensors[0].dims[0] = dump_.tensors[0].dims[1] = UINT64_MAX;
  EXPECT_THAT(WhyNot(), HasSubstr("its shape needs"));
  // Nor is one without bytes that only seems to need none.
  dump_.tensors[0].size = 0;
  EXPECT_THAT(WhyNot(), HasSubstr("its shape needs"));
}

TEST_F(WriteDumpTest, UnknownTypeIsRefused) {
  dump_.tensors[0].data_type = 77;
  EXPECT_THAT(WhyNot(), HasSubstr("is damaged"));
}

}  // namespace
}  // namespace rknnd::client
