#include "client/ctl/models/onnx_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rknnd::client {
namespace {

using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// A length-delimited field, shorter than 128 bytes.
std::string Field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) +
         static_cast<char>(bytes.size()) + bytes;
}
std::string Number(int number, char value) {
  return {static_cast<char>(number << 3), value};
}

OnnxHeader Read(const std::string& file) {
  return ReadOnnxHeader(std::as_bytes(std::span(file.data(), file.size())));
}

std::string SmallFile() {
  return Number(1, 8) + Field(2, "maker") + Field(3, "1.2") +
         Field(7, "a graph, whatever it holds") +
         Field(8, Field(1, "") + Number(2, 13)) +
         Field(8, Field(1, "com.example") + Number(2, 1)) +
         Field(14, Field(1, "rknn.target_platform") + Field(2, "rk3576"));
}

TEST(OnnxHeaderTest, ReadsVersionsAndMetadata) {
  const OnnxHeader header = Read(SmallFile());
  EXPECT_EQ(header.ir_version, 8);
  EXPECT_EQ(header.producer_name, "maker");
  EXPECT_EQ(header.producer_version, "1.2");
  ASSERT_THAT(header.opsets, SizeIs(2));
  EXPECT_EQ(header.opsets[0].domain, "");
  EXPECT_EQ(header.opsets[0].version, 13);
  EXPECT_EQ(header.opsets[1].domain, "com.example");
  EXPECT_THAT(header.metadata,
              UnorderedElementsAre(Pair("rknn.target_platform", "rk3576")));
}

TEST(OnnxHeaderTest, FileCutAnywhereIsReadSoFar) {
  const std::string whole = SmallFile();
  for (size_t size = 0; size < whole.size(); ++size) {
    const OnnxHeader header = Read(whole.substr(0, size));
    EXPECT_LE(header.opsets.size(), 2U);
  }
  EXPECT_EQ(Read(whole.substr(0, 12)).producer_name, "maker");
}

TEST(OnnxHeaderTest, SizesBeyondTheFileEndTheReading) {
  EXPECT_EQ(Read(Number(1, 8) + "\x12\xff\xff\xff\xff\x0f" + "x").ir_version,
            8);
  EXPECT_EQ(Read(std::string(64, '\xff')).ir_version, 0);
}

}  // namespace
}  // namespace rknnd::client
