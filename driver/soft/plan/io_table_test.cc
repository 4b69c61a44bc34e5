// The vendor's tables of what rknn_set_io_mem may be told (user guide 2.3.0,
// tables 5-3 to 5-6), all combinations: where a table says yes the numbers are
// checked, where it says no the message is. Written down here a second time, by
// name, so that neither side can be wrong alone.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/values/half.h"
#include "driver/soft/plan/io_port.h"
#include "driver/soft/plan/io_transfer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::Direction;
using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;
using ::testing::HasSubstr;

using Types = std::set<TensorType>;

// A model's type as rknn_query names it, and how such a tensor comes about.
struct Model {
  std::string name;
  DataType type;
  std::optional<Quantization> quantization;
  TensorType queried;
  int64_t c2;  // of its blocks on this SoC; 0: it has none
  Types inputs, outputs;
};

const std::vector<Model>& Models() {
  static const auto* const models = new std::vector<Model>{
      {"bool",
       DataType::kBool,
       {},
       TensorType::kBool,
       0,
       {TensorType::kBool},
       {TensorType::kBool}},
      {"int8",
       DataType::kInt8,
       Quantization{0.5F, 3},
       TensorType::kInt8,
       16,
       {TensorType::kInt8, TensorType::kUint8, TensorType::kFloat32},
       {TensorType::kInt8, TensorType::kFloat16, TensorType::kFloat32}},
      {"uint8 inside",
       DataType::kUint8,
       Quantization{0.5F, 131},
       TensorType::kInt8,
       16,
       {TensorType::kInt8, TensorType::kUint8, TensorType::kFloat32},
       {TensorType::kInt8, TensorType::kFloat16, TensorType::kFloat32}},
      {"int8 as it is",
       DataType::kInt8,
       {},
       TensorType::kInt8,
       16,
       {TensorType::kInt8, TensorType::kUint8, TensorType::kFloat32},
       {TensorType::kInt8, TensorType::kFloat16, TensorType::kFloat32}},
      {"float16",
       DataType::kFloat32,
       {},
       TensorType::kFloat16,
       8,
       {TensorType::kUint8, TensorType::kFloat32, TensorType::kFloat16},
       {TensorType::kFloat16, TensorType::kFloat32}},
      {"int16",
       DataType::kInt16,
       {},
       TensorType::kInt16,
       8,
       {TensorType::kInt16},
       {TensorType::kInt16}},
      {"int32",
       DataType::kInt32,
       {},
       TensorType::kInt32,
       0,
       {TensorType::kInt32},
       {TensorType::kInt32}},
      {"int64",
       DataType::kInt64,
       {},
       TensorType::kInt64,
       0,
       {TensorType::kInt64},
       {TensorType::kInt64}},
  };
  return *models;
}

IoPort PortOf(const Model& model, Direction direction, const Shape& shape) {
  PortConversion conversion;
  conversion.quantization = model.quantization;
  return *IoPort::Make(direction, "t", model.type, shape, 8,
                       std::move(conversion));
}

// One element of a program's memory.
double GetNumber(TensorType type, const std::vector<std::byte>& memory,
                 size_t i) {
  const auto load = [&]<class T>(T value) {
    std::memcpy(&value, memory.data() + i * sizeof value, sizeof value);
    return value;
  };
  switch (type) {
    case TensorType::kFloat32:
      return load(float{});
    case TensorType::kFloat16:
      return base::HalfToFloat(load(base::Half{}));
    case TensorType::kInt8:
      return load(int8_t{});
    case TensorType::kUint8:
    case TensorType::kBool:
      return load(uint8_t{});
    case TensorType::kInt16:
      return load(int16_t{});
    case TensorType::kInt32:
      return load(int32_t{});
    case TensorType::kInt64:
      return static_cast<double>(load(int64_t{}));
    default:
      return NAN;
  }
}

void PutNumber(TensorType type, std::vector<std::byte>& memory, size_t i,
               double value) {
  const auto store = [&](auto typed) {
    std::memcpy(memory.data() + i * sizeof typed, &typed, sizeof typed);
  };
  switch (type) {
    case TensorType::kFloat32:
      return store(static_cast<float>(value));
    case TensorType::kFloat16:
      return store(base::FloatToHalf(static_cast<float>(value)));
    case TensorType::kInt8:
      return store(static_cast<int8_t>(value));
    case TensorType::kUint8:
    case TensorType::kBool:
      return store(static_cast<uint8_t>(value));
    case TensorType::kInt16:
      return store(static_cast<int16_t>(value));
    case TensorType::kInt32:
      return store(static_cast<int32_t>(value));
    case TensorType::kInt64:
      return store(static_cast<int64_t>(value));
    default:
      return;
  }
}

// Inside, the numbers lie in the model's order, of the model's own type.
TensorType InsideType(const Model& model) {
  switch (model.type) {
    case DataType::kFloat32:
      return TensorType::kFloat32;
    case DataType::kUint8:
      return TensorType::kUint8;
    default:
      return model.queried;
  }
}

double Clamp8(double value) {
  return std::clamp(std::nearbyint(value), -128.0, 127.0);
}

// What a program's number becomes inside.
double ToInside(const Model& model, TensorType asked, double given) {
  if (model.queried != TensorType::kInt8) return given;
  const Quantization q = model.quantization.value_or(Quantization{});
  const double shift = model.type == DataType::kUint8 ? 128 : 0;
  if (asked == TensorType::kInt8) return given + shift;
  return Clamp8(given / q.scale + (q.zero - shift)) + shift;
}

// What a number inside becomes for a program.
double FromInside(const Model& model, TensorType asked, double inside) {
  if (model.queried != TensorType::kInt8) return inside;
  const Quantization q = model.quantization.value_or(Quantization{});
  const double shift = model.type == DataType::kUint8 ? 128 : 0;
  if (asked == TensorType::kInt8) return inside - shift;
  return (inside - q.zero) * q.scale;
}

// Where element (c, h, w) of a picture lies in a program's memory.
size_t PlaceOf(TensorLayout layout, int64_t c2, const Shape& s, int64_t c,
               int64_t h, int64_t w) {
  int64_t at = (c * s[2] + h) * s[3] + w;
  if (layout == TensorLayout::kNhwc) at = (h * s[3] + w) * s[1] + c;
  if (layout == TensorLayout::kNc1hwc2) {
    at = ((c / c2 * s[2] + h) * s[3] + w) * c2 + c % c2;
  }
  return static_cast<size_t>(at);
}

template <class F>
void ForEachElement(const Shape& shape, F&& f) {
  Shape s = shape;
  if (s.size() != 4) s = {1, shape[0], shape[1], shape[2]};
  size_t i = 0;
  for (int64_t c = 0; c < s[1]; ++c) {
    for (int64_t h = 0; h < s[2]; ++h) {
      for (int64_t w = 0; w < s[3]; ++w) f(i++, c, h, w);
    }
  }
}

class IoTableTest : public ::testing::Test {
 protected:
  // What the tables say of one combination; else what the refusal names.
  static std::string Refusal(const Model& model, Direction direction,
                             const Shape& shape, const TensorFormat& format) {
    const bool input = direction == Direction::kInput;
    const auto number = [](auto value) {
      return std::to_string(static_cast<uint32_t>(value));
    };
    const Types& types = input ? model.inputs : model.outputs;
    if (format.pass_through ? format.type != model.queried
                            : types.count(format.type) == 0) {
      return "type " + number(format.type) + " (";
    }
    const std::string layout = "layout " + number(format.layout);
    if (static_cast<uint32_t>(format.layout) > 3) return layout;
    const bool undefined = format.layout == TensorLayout::kUndefined;
    // {7, 3, 5}: the model's own order, as NCHW says; NHWC would be another.
    if (shape.size() != 4) {
      return undefined || format.layout == TensorLayout::kNchw ? "" : layout;
    }
    if (undefined) return layout;
    const TensorLayout native = NativeOf(model, direction, shape);
    if (format.pass_through) return format.layout == native ? "" : layout;
    if (format.layout == TensorLayout::kNc1hwc2 && native != format.layout) {
      return layout;
    }
    return "";
  }

  // The guide's 5.2.3: inputs of few channels are NHWC but for bool and int64,
  // what has blocks is NC1HWC2, other outputs are NCHW.
  static TensorLayout NativeOf(const Model& model, Direction direction,
                               const Shape& shape) {
    const bool few = shape[1] == 1 || shape[1] == 3 || shape[1] == 4;
    const bool input = direction == Direction::kInput;
    const bool nhwc = input && model.queried != TensorType::kBool &&
                      model.queried != TensorType::kInt64;
    if (model.c2 != 0 && !(input && few)) return TensorLayout::kNc1hwc2;
    return nhwc ? TensorLayout::kNhwc : TensorLayout::kNchw;
  }

  static TensorLayout LaidOut(Direction direction, const Shape& shape,
                              const TensorFormat& format) {
    if (shape.size() != 4) return TensorLayout::kNchw;
    // Not passed through, the blocks of an input are the library's work.
    if (direction == Direction::kInput && !format.pass_through &&
        format.layout == TensorLayout::kNc1hwc2) {
      return TensorLayout::kNhwc;
    }
    return format.layout;
  }

  static void CheckInput(const Model& model, const Shape& shape,
                         const TensorFormat& format) {
    const IoPort port = PortOf(model, Direction::kInput, shape);
    auto layout = port.Resolve(format);
    ASSERT_TRUE(layout.ok()) << layout.status();
    std::vector<std::byte> client(layout->bytes);
    const TensorSpec spec{model.type, shape, {1}};
    std::vector<std::byte> tensor(spec.bytes());
    std::vector<std::byte> scratch(TransferScratch(shape));
    // Rows as the NPU has them, where they are passed through.
    const auto pitch = static_cast<int64_t>(
        format.pass_through ? std::max<uint32_t>(port.native().w_stride, 1)
                            : 1);
    const auto place = [&](int64_t c, int64_t h, int64_t w) {
      Shape s = shape;
      if (s.size() != 4) s = {1, shape[0], shape[1], shape[2]};
      const TensorLayout laid = LaidOut(Direction::kInput, shape, format);
      if (laid == TensorLayout::kNhwc && pitch > 1) s[3] = pitch;
      return PlaceOf(laid, model.c2, s, c, h, w);
    };
    const auto given = [&](size_t i) -> double {
      if (model.queried == TensorType::kBool) return i % 3 == 0 ? 1 : 0;
      const bool sign = format.type != TensorType::kUint8;
      return static_cast<double>(i * 7 % 120) - (sign ? 50 : 0);
    };
    ForEachElement(shape, [&](size_t i, int64_t c, int64_t h, int64_t w) {
      ASSERT_LT(place(c, h, w) * driver::ElementSize(format.type),
                client.size());
      PutNumber(format.type, client, place(c, h, w), given(i));
    });

    ReadInput(*layout, client.data(), spec, tensor.data(), scratch.data(),
              port.conversion());

    ForEachElement(shape, [&](size_t i, int64_t, int64_t, int64_t) {
      ASSERT_EQ(GetNumber(InsideType(model), tensor, i),
                ToInside(model, format.type, given(i)))
          << "element " << i;
    });
  }

  static void CheckOutput(const Model& model, const Shape& shape,
                          const TensorFormat& format) {
    const IoPort port = PortOf(model, Direction::kOutput, shape);
    auto layout = port.Resolve(format);
    ASSERT_TRUE(layout.ok()) << layout.status();
    std::vector<std::byte> client(layout->bytes);
    const TensorSpec spec{model.type, shape, {1}};
    std::vector<std::byte> tensor(spec.bytes());
    std::vector<std::byte> scratch(TransferScratch(shape));
    const auto inside = [&](size_t i) -> double {
      if (model.queried == TensorType::kBool) return i % 3 == 0 ? 1 : 0;
      const bool sign = InsideType(model) != TensorType::kUint8;
      return static_cast<double>(i * 7 % 120) - (sign ? 50 : 0);
    };
    ForEachElement(shape, [&](size_t i, int64_t, int64_t, int64_t) {
      PutNumber(InsideType(model), tensor, i, inside(i));
    });

    WriteOutput(*layout, client.data(), spec, tensor.data(), scratch.data(),
                port.conversion());

    Shape s = shape;
    if (s.size() != 4) s = {1, shape[0], shape[1], shape[2]};
    const TensorLayout laid = LaidOut(Direction::kOutput, shape, format);
    ForEachElement(shape, [&](size_t i, int64_t c, int64_t h, int64_t w) {
      ASSERT_EQ(
          GetNumber(format.type, client, PlaceOf(laid, model.c2, s, c, h, w)),
          FromInside(model, format.type, inside(i)))
          << "element " << i;
    });
  }
};

TEST_F(IoTableTest, EveryCombinationIsAsTheGuideSays) {
  // Few channels, more than a block, and not 4-D. The odd width is aligned to
  // nothing.
  const std::vector<Shape> shapes = {
      {1, 3, 4, 5}, {1, 20, 3, 5}, {1, 4, 2, 16}, {7, 3, 5}};
  std::vector<uint32_t> types = {77};
  for (uint32_t t = 0; t < driver::kTensorTypeCount; ++t) types.push_back(t);
  int allowed = 0;
  int refused = 0;
  for (const Model& model : Models()) {
    for (const Direction direction : {Direction::kInput, Direction::kOutput}) {
      for (const Shape& shape : shapes) {
        for (const uint32_t type : types) {
          for (uint32_t layout = 0; layout < 5; ++layout) {
            for (const bool pass_through : {false, true}) {
              const TensorFormat format{
                  .type = static_cast<TensorType>(type),
                  .layout = static_cast<TensorLayout>(layout),
                  .pass_through = pass_through};
              SCOPED_TRACE(
                  model.name +
                  (direction == Direction::kInput ? " input " : " output ") +
                  ShapeText(shape) + " asked type " + std::to_string(type) +
                  " layout " + std::to_string(layout) +
                  (pass_through ? " passed through" : ""));
              const std::string wrong =
                  Refusal(model, direction, shape, format);
              if (wrong.empty()) {
                ++allowed;
                if (direction == Direction::kInput) {
                  CheckInput(model, shape, format);
                } else {
                  CheckOutput(model, shape, format);
                }
              } else {
                ++refused;
                const auto answer =
                    PortOf(model, direction, shape).Resolve(format);
                ASSERT_EQ(answer.status().code(),
                          absl::StatusCode::kInvalidArgument);
                ASSERT_THAT(std::string(answer.status().message()),
                            HasSubstr(wrong));
                ASSERT_THAT(std::string(answer.status().message()),
                            HasSubstr("'t': "));
              }
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(allowed + refused, 8 * 2 * 4 * 13 * 5 * 2);
  EXPECT_GT(allowed, 300);
}

TEST_F(IoTableTest, QueriesNameTheTypesOfTheTables) {
  for (const Model& model : Models()) {
    for (const Direction direction : {Direction::kInput, Direction::kOutput}) {
      const IoPort port = PortOf(model, direction, {1, 20, 3, 5});
      EXPECT_EQ(port.attr().type, model.queried) << model.name;
      EXPECT_EQ(port.native().layout, NativeOf(model, direction, {1, 20, 3, 5}))
          << model.name;
    }
  }
}

// Table 5-2: rows of 16 pixels, 8 on the SoCs whose blocks of halves are 4.
TEST_F(IoTableTest, RowsAreTightOrAligned) {
  for (const uint32_t half_block : {4U, 8U}) {
    const uint32_t alignment = 2 * half_block;
    const IoPort port = *IoPort::Make(
        Direction::kInput, "t", DataType::kFloat32, {1, 3, 6, 35}, half_block);
    for (uint32_t stride = 0; stride < 120; ++stride) {
      const TensorFormat format{.type = TensorType::kUint8,
                                .layout = TensorLayout::kNhwc,
                                .w_stride = stride};
      const bool good = stride == 0 || stride == 35 ||
                        (stride > 35 && stride % alignment == 0);
      const auto answer = port.Resolve(format);
      ASSERT_EQ(answer.ok(), good) << stride;
      if (good) {
        EXPECT_EQ(answer->row, int64_t{stride == 0 ? 35U : stride} * 3);
        continue;
      }
      EXPECT_THAT(
          std::string(answer.status().message()),
          HasSubstr(stride < 35
                        ? "w_stride " + std::to_string(stride) +
                              " is less than the width 35"
                        : "w_stride " + std::to_string(stride) +
                              " is neither the width 35 nor a multiple of " +
                              std::to_string(alignment)));
    }
  }
}

TEST_F(IoTableTest, PassedThroughRowsAreTheNpusOwn) {
  const IoPort port = *IoPort::Make(Direction::kInput, "t", DataType::kFloat32,
                                    {1, 3, 6, 35}, 8);
  TensorFormat format{.type = TensorType::kFloat16,
                      .layout = TensorLayout::kNhwc,
                      .pass_through = true};
  ASSERT_TRUE(port.Resolve(format).ok());
  EXPECT_EQ(port.Resolve(format)->row, 48 * 3);
  format.w_stride = 35;
  EXPECT_THAT(std::string(port.Resolve(format).status().message()),
              HasSubstr("w_stride 35: pass_through means rows of a multiple "
                        "of 16 pixels: use 48"));
  format.w_stride = 64;
  EXPECT_EQ(port.Resolve(format)->row, 64 * 3);
}

TEST_F(IoTableTest, OutputsHaveNoGaps) {
  const IoPort port = *IoPort::Make(Direction::kOutput, "t", DataType::kFloat32,
                                    {1, 3, 6, 35}, 8);
  TensorFormat format{.type = TensorType::kFloat32,
                      .layout = TensorLayout::kNchw,
                      .w_stride = 35,
                      .h_stride = 6};
  EXPECT_TRUE(port.Resolve(format).ok());
  format.w_stride = 48;
  EXPECT_THAT(std::string(port.Resolve(format).status().message()),
              HasSubstr("w_stride 48, h_stride 6: an output has no gaps"));
  format.w_stride = 0;
  format.h_stride = 7;
  EXPECT_THAT(std::string(port.Resolve(format).status().message()),
              HasSubstr("h_stride 7"));
}

TEST_F(IoTableTest, RowsOfABatchItemMayBeMore) {
  const IoPort port = *IoPort::Make(Direction::kInput, "t", DataType::kFloat32,
                                    {2, 3, 6, 16}, 8);
  TensorFormat format{
      .type = TensorType::kUint8, .layout = TensorLayout::kNhwc, .h_stride = 5};
  EXPECT_THAT(std::string(port.Resolve(format).status().message()),
              HasSubstr("h_stride 5 is less than the height 6"));
  format.h_stride = 9;
  ASSERT_TRUE(port.Resolve(format).ok());
  EXPECT_EQ(port.Resolve(format)->item, 9 * 16 * 3);
  EXPECT_EQ(port.Resolve(format)->bytes, (9U + 6) * 16 * 3);
}

}  // namespace
}  // namespace rknnd::soft
