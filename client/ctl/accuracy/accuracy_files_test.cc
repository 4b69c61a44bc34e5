#include "client/ctl/accuracy/accuracy_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "client/ctl/accuracy/accuracy_dumps.h"
#include "client/ctl/models/onnx_header.h"
#include "client/image/file.h"
#include "client/image/temporary_folder.h"

namespace rknnd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AccuracyFilesTest : public testing::Test {
 protected:
  // A folder with these files, each of which holds its own name.
  std::string Dump(const char* name, const std::vector<std::string>& files) {
    const std::string folder = folder_.File(name);
    std::filesystem::create_directories(folder);
    for (const std::string& file : files) {
      EXPECT_TRUE(WriteFile(folder + "/" + file,
                            std::as_bytes(std::span(file.data(), file.size())))
                      .ok());
    }
    return folder;
  }
  static std::vector<std::string> Names(const std::string& folder) {
    std::vector<std::string> names;
    for (const DumpedFile& file : FilesOfDump(folder)) {
      names.push_back(file.file);
    }
    return names;
  }
  static std::string Contents(const std::string& path) {
    const auto bytes = ReadFile(path);
    EXPECT_TRUE(bytes.ok());
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(AccuracyFilesTest, FilesOfADumpAreInTheOrderOfRunning) {
  const std::string folder =
      Dump("d", {"10000_Add_z.npy", "0002_ConvRelu_a_b.npy", "0001_Conv_c.npy",
                 "notes.txt", "x_Conv_c.npy", "0003.npy"});

  const std::vector<DumpedFile> files = FilesOfDump(folder);

  EXPECT_THAT(Names(folder),
              ElementsAre("0001_Conv_c.npy", "0002_ConvRelu_a_b.npy",
                          "10000_Add_z.npy"));
  EXPECT_EQ(files[1].stem, "ConvRelu_a_b");
  EXPECT_EQ(files[1].type, "ConvRelu");
  EXPECT_EQ(files[1].name, "a_b");
  EXPECT_TRUE(FilesOfDump(folder + "/none").empty());
}

TEST_F(AccuracyFilesTest, ClearingTakesAwayDumpsAlone) {
  const std::string folder = Dump("d", {"0001_Conv_c.npy", "mine.npy"});

  ASSERT_TRUE(ClearDump(folder).ok());

  EXPECT_THAT(Names(folder), ElementsAre());
  EXPECT_TRUE(std::filesystem::exists(folder + "/mine.npy"));
  EXPECT_TRUE(ClearDump(folder + "/new/deep").ok());
  EXPECT_FALSE(ClearDump(folder + "/mine.npy").ok());
}

TEST_F(AccuracyFilesTest, FilesAreNamedLikeThoseOfTheModel) {
  const std::vector<DumpedFile> like = FilesOfDump(
      Dump("model", {"0001_Conv_a.npy", "0002_Add_b.npy", "0003_Add_c.npy"}));
  const std::string folder =
      Dump("golden", {"0002_Conv_a.npy", "0003_Add_b.npy", "0001_Add_c.npy",
                      "0004_Reshape_d.npy"});

  ASSERT_TRUE(NameFilesLike(like, folder).ok());

  EXPECT_THAT(Names(folder), ElementsAre("0001_Conv_a.npy", "0002_Add_b.npy",
                                         "0003_Add_c.npy"));
  EXPECT_EQ(Contents(folder + "/0001_Conv_a.npy"), "0002_Conv_a.npy");
  EXPECT_EQ(Contents(folder + "/0003_Add_c.npy"), "0001_Add_c.npy");
}

TEST_F(AccuracyFilesTest, TensorsOfAnotherModelAreFoundByTheirNames) {
  const std::vector<DumpedFile> like = FilesOfDump(
      Dump("model", {"0001_InputOperator_x.npy",
                     "0002_ConvRelu_r_QuantizeLinear_"
                     "Output.npy",
                     "0003_Add_only.npy", "0004_OutputOperator_y.npy"}));
  const std::string from =
      Dump("float", {"0001_InputOperator_x.npy", "0002_Conv_c.npy",
                     "0003_Relu_r.npy", "0004_OutputOperator_y.npy"});
  const std::string folder = Dump("golden", {});

  const auto taken = TakeFilesLike(like, from, folder);

  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(*taken, 3U);
  EXPECT_EQ(Contents(folder + "/0002_ConvRelu_r_QuantizeLinear_Output.npy"),
            "0003_Relu_r.npy");
  EXPECT_FALSE(std::filesystem::exists(folder + "/0003_Add_only.npy"));
}

TEST_F(AccuracyFilesTest, EndingsOfQuantisersAreNoPartOfAName) {
  EXPECT_EQ(PlainTensorName("464"), "464");
  EXPECT_EQ(PlainTensorName("464_QuantizeLinear_Output"), "464");
  EXPECT_EQ(PlainTensorName("464_DequantizeLinear_Output.quantized"), "464");
  EXPECT_EQ(PlainTensorName("464_quantized"), "464");
  EXPECT_EQ(PlainTensorName("_quantized"), "_quantized");
}

TEST_F(AccuracyFilesTest, RoomIsCheckedBeforeItIsUsed) {
  EXPECT_TRUE(CheckSpace("d", 100, 100).ok());
  const auto full = CheckSpace("d", 3 << 20, 1 << 20);
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.error().message, HasSubstr("need 3.0 MiB in 'd', where 1.0 "
                                              "MiB are free"));
  EXPECT_THAT(full.error().message, HasSubstr("--output-dir"));
  const auto free = FreeSpace(Dump("d", {}));
  ASSERT_TRUE(free.ok());
  EXPECT_GT(*free, 0U);
  EXPECT_FALSE(FreeSpace("/nonexistent/folder").ok());
}

TEST(AccuracyDumpsTest, AModelIsContinuedByAnOption) {
  const std::string text = MetadataEntry("rknn.mean_values", "[[1]]") +
                           MetadataEntry("rknn.accuracy", "golden");
  const OnnxHeader header =
      ReadOnnxHeader(std::as_bytes(std::span(text.data(), text.size())));
  EXPECT_EQ(header.metadata.at("rknn.accuracy"), "golden");
  EXPECT_EQ(header.metadata.at("rknn.mean_values"), "[[1]]");
}

TEST(AccuracyDumpsTest, ElementsOfShapes) {
  EXPECT_EQ(ElementsOf("1x64x80x80"), 409600U);
  EXPECT_EQ(ElementsOf("7"), 7U);
  EXPECT_EQ(ElementsOf(""), 0U);
  EXPECT_EQ(ElementsOf("1x"), 1U);
  EXPECT_EQ(ElementsOf("1,2"), 0U);
  EXPECT_EQ(ElementsOf("4294967296x4294967296"), 0U);
}

}  // namespace
}  // namespace rknnd::client
