#include "client/image/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "client/image/file.h"
#include "client/image/temporary_folder.h"

namespace rknnd::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::byte> TextBytes(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// A file of version 1 with the given header and data.
std::vector<std::byte> File(const std::string& header,
                            std::string_view data = "") {
  std::string file("\x93NUMPY\1\0", 8);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file += data;
  return TextBytes(file);
}

std::string Refusal(const std::vector<std::byte>& file) {
  const auto array = ParseNpy(file, "x.npy");
  return array.ok() ? "" : array.error().message;
}

TEST(NpyTest, WrittenArrayIsReadAgain) {
  const TemporaryFolder folder;
  const std::string path = folder.File("a.npy");
  const float values[] = {1, -2, 3.5F, 0, 5, 6};
  const size_t shape[] = {1, 2, 3};
  ASSERT_TRUE(WriteNpy(path, ElementType::kFloat32, shape,
                       std::as_bytes(std::span(values)))
                  .ok());

  const auto array = ReadNpy(path);
  const auto file = ReadFile(path);

  ASSERT_TRUE(array.ok()) << array.error().message;
  EXPECT_EQ(array->type, ElementType::kFloat32);
  EXPECT_THAT(array->shape, ElementsAre(1, 2, 3));
  const auto wanted = std::as_bytes(std::span(values));
  EXPECT_TRUE(std::equal(array->bytes.begin(), array->bytes.end(),
                         wanted.begin(), wanted.end()));
  // NumPy wants the data aligned.
  EXPECT_EQ((file->size() - sizeof(values)) % 64, 0U);
}

TEST(NpyTest, HeaderOfVersionTwoIsRead) {
  const std::string header =
      "{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": (2,)}";
  std::string file("\x93NUMPY\2\0", 8);
  file += static_cast<char>(header.size());
  file += std::string(3, '\0');
  file += header + "ab";

  const auto array = ParseNpy(TextBytes(file), "x.npy");

  ASSERT_TRUE(array.ok()) << array.error().message;
  EXPECT_EQ(array->type, ElementType::kUint8);
  EXPECT_EQ(array->bytes, TextBytes("ab"));
}

TEST(NpyTest, ScalarHasNoAxes) {
  const auto array = ParseNpy(
      File("{'descr': '<i2', 'fortran_order': False, 'shape': ()}", "ab"),
      "x.npy");

  ASSERT_TRUE(array.ok()) << array.error().message;
  EXPECT_TRUE(array->shape.empty());
}

TEST(NpyTest, OtherOrdersAndTypesAreRefusedByName) {
  EXPECT_THAT(
      Refusal(File("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}",
                   "1234")),
      HasSubstr("C order"));
  EXPECT_THAT(
      Refusal(File("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}",
                   "1234")),
      HasSubstr(">f4"));
  EXPECT_THAT(
      Refusal(File("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
                   "1234")),
      HasSubstr("little-endian number"));
  EXPECT_THAT(
      Refusal(File("{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}",
                   "1234567812345678")),
      HasSubstr("little-endian number"));
}

TEST(NpyTest, SizesThatDoNotAgreeAreRefused) {
  EXPECT_THAT(
      Refusal(File("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
                   "1234")),
      HasSubstr("needs 8 bytes and it has 4"));
  EXPECT_THAT(Refusal(File("{'descr': '<f4', 'fortran_order': False, 'shape': "
                           "(4294967296, 4294967296, 4)}",
                           "1234")),
              HasSubstr("too large"));
  EXPECT_THAT(Refusal(File("{'descr': '<f4', 'fortran_order': False, 'shape': "
                           "(99999999999999999999999,)}")),
              HasSubstr("'shape'"));
}

TEST(NpyTest, EveryPrefixOfAFileIsAnErrorAndNoMore) {
  const auto file = File(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }   \n", "1234");
  ASSERT_EQ(Refusal(file), "");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(Refusal({file.begin(), file.begin() + static_cast<long>(size)}),
              "")
        << size;
  }
}

}  // namespace
}  // namespace rknnd::client
