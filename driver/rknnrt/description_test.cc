#include "driver/rknnrt/description.h"

#include <cstring>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::rknnrt {
namespace {

using driver::Direction;
using driver::TensorLayout;
using driver::TensorType;
using ::testing::HasSubstr;

// A picture of 2x5 pixels in rows of 8, and ten numbers.
struct Payload {
  LoadedModel about = {};
  rknn_tensor_attr attributes[4] = {};  // input, output, both native

  Payload() {
    about.inputs = about.outputs = about.rows = 1;
    about.weight_bytes = 100;
    about.internal_bytes = 4096;
    about.internal_outside = 1;
    std::strcpy(about.api_version, "2.3.2 (x)");
    rknn_tensor_attr& input = attributes[0];
    std::strcpy(input.name, "images");
    input.n_dims = 4;
    const uint32_t dims[] = {1, 2, 5, 3};
    std::memcpy(input.dims, dims, sizeof dims);
    input.fmt = RKNN_TENSOR_NHWC;
    input.type = RKNN_TENSOR_INT8;
    input.w_stride = 8;
    input.size_with_stride = 48;
    attributes[2] = input;
    rknn_tensor_attr& output = attributes[1];
    std::strcpy(output.name, "scores");
    output.n_dims = 2;
    output.dims[0] = 1;
    output.dims[1] = 10;
    output.fmt = RKNN_TENSOR_UNDEFINED;
    output.type = RKNN_TENSOR_FLOAT16;
    attributes[3] = output;
  }
  [[nodiscard]] std::vector<std::byte> Bytes() const {
    const auto* const begin = reinterpret_cast<const std::byte*>(this);
    return {begin, begin + sizeof(Payload)};
  }
};

TEST(DescriptionTest, TellsWhatAWorkerWrote) {
  const auto description = Describe(Payload().Bytes(), "m.rknn");

  ASSERT_TRUE(description.ok()) << description.status();
  EXPECT_EQ(description->info.weight_size, 100U);
  EXPECT_EQ(description->library_version, "2.3.2 (x)");
  const driver::ProgramInfo& program = description->info.programs.at(0);
  EXPECT_EQ(program.internal_size, 4096U);
  EXPECT_EQ(program.inputs.at(0).w_stride, 8U);
  EXPECT_EQ(program.inputs.at(0).size, 30U);
  EXPECT_EQ(program.outputs.at(0).size, 20U);
  EXPECT_EQ(program.outputs.at(0).name, "scores");
}

TEST(DescriptionTest, RefusesWhatCannotBe) {
  const auto refused = [](auto change) {
    Payload payload;
    change(payload);
    const auto description = Describe(payload.Bytes(), "m");
    EXPECT_FALSE(description.ok());
    return description.ok() ? "" : std::string(description.status().message());
  };
  EXPECT_THAT(refused([](Payload& p) { p.about.inputs = 65; }),
              HasSubstr("65 inputs"));
  EXPECT_THAT(refused([](Payload& p) { p.about.outputs = 0; }),
              HasSubstr("0 outputs"));
  EXPECT_THAT(refused([](Payload& p) { p.about.rows = 0; }),
              HasSubstr("0 shapes"));
  EXPECT_THAT(refused([](Payload& p) { p.about.rows = 2; }),
              HasSubstr("cut short"));
  EXPECT_THAT(refused([](Payload& p) { p.attributes[0].n_dims = 17; }),
              HasSubstr("17 dimensions"));
  EXPECT_THAT(refused([](Payload& p) { p.attributes[1].dims[1] = 0; }),
              HasSubstr("no elements"));
  EXPECT_THAT(refused([](Payload& p) { p.attributes[0].dims[0] = 1U << 31; }),
              HasSubstr("too many"));
  EXPECT_THAT(refused([](Payload& p) {
                p.attributes[0].type = static_cast<rknn_tensor_type>(77);
              }),
              HasSubstr("of type 77"));
}

// Whatever a worker writes is an answer or an error.
TEST(DescriptionTest, AnyBytesAreTakenOrRefused) {
  std::mt19937 random(1);
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes = Payload().Bytes();
    for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips) {
      // Of text there is most, and least in it.
      const size_t in_attributes = offsetof(Payload, attributes);
      const size_t at = random() % 2 == 0 ? random() % bytes.size()
                                          : in_attributes + random() % 72;
      bytes[at] = static_cast<std::byte>(random());
    }
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    taken += Describe(bytes, "m").ok() ? 1 : 0;
  }
  EXPECT_GT(taken, 100);
  EXPECT_LT(taken, 19900);
}

class BytesOfTest : public ::testing::Test {
 protected:
  const Description description_ = *Describe(Payload().Bytes(), "m");
  const PortAttributes input_ =
      AttributesOf(description_.info.programs[0], Direction::kInput, 0);
  const PortAttributes output_ =
      AttributesOf(description_.info.programs[0], Direction::kOutput, 0);
};

TEST_F(BytesOfTest, CountsRowsWithGaps) {
  EXPECT_EQ(*BytesOf(input_, {.type = TensorType::kUint8,
                              .layout = TensorLayout::kNhwc}),
            48U);
  EXPECT_EQ(*BytesOf(input_, {.type = TensorType::kFloat32,
                              .layout = TensorLayout::kNhwc,
                              .w_stride = 8}),
            192U);
  EXPECT_EQ(*BytesOf(input_, {.type = TensorType::kInt8,
                              .layout = TensorLayout::kNhwc,
                              .pass_through = true}),
            48U);
  EXPECT_EQ(*BytesOf(output_, {.type = TensorType::kFloat32,
                               .layout = TensorLayout::kUndefined}),
            40U);
}

TEST_F(BytesOfTest, RefusesWhatTheLibraryCannotTake) {
  const auto why = [](const PortAttributes& port,
                      const driver::TensorFormat& format) {
    const auto bytes = BytesOf(port, format);
    return bytes.ok() ? "" : std::string(bytes.status().message());
  };
  EXPECT_THAT(why(input_, {.type = TensorType::kUint8,
                           .layout = TensorLayout::kNhwc,
                           .w_stride = 5}),
              HasSubstr("reads rows of 8"));
  Payload several;
  several.attributes[0].dims[0] = several.attributes[2].dims[0] = 3;
  const Description batch = *Describe(several.Bytes(), "m");
  EXPECT_THAT(why(AttributesOf(batch.info.programs[0], Direction::kInput, 0),
                  {.type = TensorType::kFloat32,
                   .layout = TensorLayout::kNhwc,
                   .h_stride = UINT32_MAX}),
              HasSubstr("with these strides it has more than 4 GiB"));
  EXPECT_THAT(why(input_, {.type = static_cast<TensorType>(99),
                           .layout = TensorLayout::kNhwc}),
              HasSubstr("element type 99 is none"));
  EXPECT_THAT(why(input_, {.type = TensorType::kUint8,
                           .layout = TensorLayout::kNhwc,
                           .pass_through = true}),
              HasSubstr("with pass_through it has to be INT8 in NHWC"));
  EXPECT_THAT(why(output_, {.type = TensorType::kFloat32,
                            .layout = TensorLayout::kNc1hwc2}),
              HasSubstr("layout NC1HWC2 is not one of it"));
}

}  // namespace
}  // namespace rknnd::rknnrt
