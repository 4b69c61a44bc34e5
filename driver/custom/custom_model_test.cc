// What a device says of custom operators comes back as it was, and damaged
// bytes are refused.

#include "driver/custom/custom_model.h"

#include <gtest/gtest.h>

#include <string>

namespace rknnd::custom {
namespace {

Model Sample() {
  Model model;
  model.tensors = {{"a", 0, {1, 3, 4, 5}}, {"scalar", 8, {}}};
  Operator op;
  op.name = "dual";
  op.type = "cstDual";
  op.inputs = {0, 1};
  op.outputs = {1};
  op.is_known = true;
  op.attributes = {{"alpha", 0, 1, std::vector<std::byte>(4)},
                   {"empty", 3, 0, {}}};
  model.operators = {op};
  model.parts = {{{{false, 0}}, {{true, 0}, {true, 1}}}, {{{true, 1}}, {}}};
  return model;
}

TEST(CustomModelTest, ComesBackFromItsBytes) {
  const std::string bytes = Write(Sample());
  const base::Expected<Model> back = Read(bytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(Write(*back), bytes);
  EXPECT_EQ(back->operators[0].attributes[1].name, "empty");
  EXPECT_EQ(back->tensors[0].dims[3], 5U);
}

TEST(CustomModelTest, DamagedBytesAreRefused) {
  const std::string bytes = Write(Sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Read(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(Read(bytes + "x").ok());
  // No number, however large, makes it read or allocate what is not there.
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = '\xff';
    static_cast<void>(Read(damaged).ok());
  }
}

}  // namespace
}  // namespace rknnd::custom
