#include "base/values/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace rknnd::base {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Answers: FIPS 180-4's published examples.
TEST(Sha256Test, EmptyInput) {
  EXPECT_EQ(ToHex(Sha256Of({})),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256Test, OneBlock) {
  EXPECT_EQ(ToHex(Sha256Of(BytesOf("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, AMillionBytes) {
  EXPECT_EQ(ToHex(Sha256Of(BytesOf(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PiecesGiveTheSameAsTheWhole) {
  const std::string text(1000, 'x');
  Sha256 hash;
  hash.Update(BytesOf(std::string_view(text).substr(0, 1)));
  hash.Update(BytesOf(std::string_view(text).substr(1, 700)));
  hash.Update({});
  hash.Update(BytesOf(std::string_view(text).substr(701)));
  EXPECT_EQ(hash.Finish(), Sha256Of(BytesOf(text)));
}

}  // namespace
}  // namespace rknnd::base
