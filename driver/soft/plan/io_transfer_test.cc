// Every client format against every placement, compared with a walk that takes
// one element at a time.

#include "driver/soft/plan/io_transfer.h"

#include <cstring>
#include <vector>

#include "base/values/half.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::Direction;
using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;

struct TransferCase {
  Shape shape;
  int block;
  TensorFormat format;
};

// The element of client memory that holds (n, c, h, w).
int64_t Offset(const ClientLayout& layout, int64_t n, int64_t c, int64_t h,
               int64_t w) {
  return n * layout.item + c / layout.group * layout.plane + h * layout.row +
         w * layout.pitch + c % layout.group;
}

int64_t InsideOffset(const Shape& s, int block, int64_t n, int64_t c, int64_t h,
                     int64_t w) {
  int64_t blocks = (s[1] + block - 1) / block;
  return (((n * blocks + c / block) * s[2] + h) * s[3] + w) * block + c % block;
}

// Small integers: exact in every type.
float ValueAt(int64_t n, int64_t c, int64_t h, int64_t w) {
  return static_cast<float>((n * 31 + c * 17 + h * 5 + w * 3) % 100);
}

void Put(TensorType type, std::byte* memory, int64_t i, float value) {
  auto store = [&](auto typed) {
    std::memcpy(memory + i * static_cast<int64_t>(sizeof(typed)), &typed,
                sizeof(typed));
  };
  switch (type) {
    case TensorType::kFloat16:
      return store(base::FloatToHalf(value));
    case TensorType::kUint8:
      return store(static_cast<uint8_t>(value));
    default:
      return store(value);
  }
}

float Get(TensorType type, const std::byte* memory, int64_t i) {
  if (type == TensorType::kFloat16) {
    base::Half half;
    std::memcpy(&half, memory + i * 2, 2);
    return base::HalfToFloat(half);
  }
  float value;
  std::memcpy(&value, memory + i * 4, 4);
  return value;
}

template <class F>
void ForEach(const Shape& s, F&& f) {
  for (int64_t n = 0; n < s[0]; ++n) {
    for (int64_t c = 0; c < s[1]; ++c) {
      for (int64_t h = 0; h < s[2]; ++h) {
        for (int64_t w = 0; w < s[3]; ++w) f(n, c, h, w);
      }
    }
  }
}

std::vector<TransferCase> Cases(Direction direction) {
  std::vector<TransferCase> cases;
  const std::vector<Shape> shapes = {{1, 3, 5, 7},   {2, 20, 3, 4},
                                     {1, 1, 8, 9},   {1, 4, 33, 65},
                                     {1, 300, 2, 3}, {1, 5000, 1, 1}};
  for (const Shape& shape : shapes) {
    for (int block : {1, 8, 16}) {
      for (TensorLayout layout :
           {TensorLayout::kNhwc, TensorLayout::kNchw, TensorLayout::kNc1hwc2}) {
        std::vector<TensorType> types = {TensorType::kFloat32,
                                         TensorType::kFloat16};
        const bool input = direction == Direction::kInput;
        if (input) types.push_back(TensorType::kUint8);
        for (TensorType type : types) {
          const TensorFormat format{.type = type, .layout = layout};
          cases.push_back({shape, block, format});
          if (!input) continue;
          cases.push_back({shape, block, format});
          cases.back().format.w_stride =
              static_cast<uint32_t>(shape[3]) / 16 * 16 + 32;
          cases.back().format.h_stride = static_cast<uint32_t>(shape[2]) + 3;
          cases.push_back({shape, block, format});
          cases.back().format.pass_through = true;
        }
      }
    }
  }
  return cases;
}

TEST(IoTransferTest, EveryInputFormatIsReadRight) {
  int tried = 0;
  for (const TransferCase& c : Cases(Direction::kInput)) {
    IoPort port =
        *IoPort::Make(Direction::kInput, "x", DataType::kFloat32, c.shape, 8);
    auto layout = port.Resolve(c.format);
    if (!layout.ok()) continue;  // what only the native form may be
    ++tried;
    TensorSpec spec{DataType::kFloat32, c.shape, {c.block}};
    // One byte off every alignment, as a client's offset may be.
    std::vector<std::byte> client(layout->bytes + 1, std::byte{0x55});
    ForEach(c.shape, [&](auto n, auto ch, auto h, auto w) {
      Put(c.format.type, client.data() + 1, Offset(*layout, n, ch, h, w),
          ValueAt(n, ch, h, w));
    });
    std::vector<float> wanted(spec.bytes() / 4, 0.0F);  // padding is zero
    ForEach(c.shape, [&](auto n, auto ch, auto h, auto w) {
      wanted[static_cast<size_t>(InsideOffset(c.shape, c.block, n, ch, h, w))] =
          ValueAt(n, ch, h, w);
    });
    std::vector<std::byte> scratch(TransferScratch(c.shape));
    for (const uint32_t parts : {1U, 3U}) {
      std::vector<float> tensor(wanted.size(), -1.0F);
      for (uint32_t part = parts; part > 0; --part) {
        ReadInput(*layout, client.data() + 1, spec,
                  reinterpret_cast<std::byte*>(tensor.data()), scratch.data(),
                  {}, {part - 1, parts});
      }
      ASSERT_EQ(tensor, wanted)
          << ShapeText(c.shape) << " block " << c.block << " "
          << driver::TensorTypeName(c.format.type) << " "
          << driver::TensorLayoutName(c.format.layout) << ", " << parts
          << " parts";
    }
  }
  EXPECT_GT(tried, 150);
}

TEST(IoTransferTest, EveryOutputFormatIsWrittenRightAndNothingElse) {
  int tried = 0;
  for (const TransferCase& c : Cases(Direction::kOutput)) {
    IoPort port =
        *IoPort::Make(Direction::kOutput, "y", DataType::kFloat32, c.shape, 8);
    auto layout = port.Resolve(c.format);
    if (!layout.ok()) continue;
    ++tried;
    TensorSpec spec{DataType::kFloat32, c.shape, {c.block}};
    std::vector<float> tensor(spec.bytes() / 4, 0.0F);
    ForEach(c.shape, [&](auto n, auto ch, auto h, auto w) {
      tensor[static_cast<size_t>(InsideOffset(c.shape, c.block, n, ch, h, w))] =
          ValueAt(n, ch, h, w);
    });
    std::vector<std::byte> scratch(TransferScratch(c.shape));
    // One byte off every alignment, and as programs allocate.
    for (const size_t start : {size_t{1}, size_t{4}}) {
      for (const uint32_t parts : {1U, 3U}) {
        std::vector<std::byte> client(start + layout->bytes + 1,
                                      std::byte{0x55});
        for (uint32_t part = parts; part > 0; --part) {
          WriteOutput(*layout, client.data() + start, spec,
                      reinterpret_cast<const std::byte*>(tensor.data()),
                      scratch.data(), {}, {part - 1, parts});
        }
        int wrong = 0;
        ForEach(c.shape, [&](auto n, auto ch, auto h, auto w) {
          wrong += Get(c.format.type, client.data() + start,
                       Offset(*layout, n, ch, h, w)) != ValueAt(n, ch, h, w);
        });
        ASSERT_EQ(wrong, 0) << ShapeText(c.shape) << " block " << c.block << " "
                            << driver::TensorTypeName(c.format.type) << " "
                            << driver::TensorLayoutName(c.format.layout)
                            << " from " << start << ", " << parts << " parts";
        EXPECT_EQ(client[start - 1], std::byte{0x55});
        EXPECT_EQ(client.back(), std::byte{0x55});
      }
    }
  }
  EXPECT_GT(tried, 100);
}

TEST(IoTransferTest, IntegersLieInBlocksOfTheirTypeBothWays) {
  const Shape shape{1, 5, 2, 3};
  for (const DataType type : {DataType::kInt8, DataType::kInt16}) {
    const auto size = SizeOf(type);
    const int64_t block = type == DataType::kInt8 ? 8 : 4;
    std::vector<std::byte> tensor(30 * size);
    for (size_t i = 0; i < 30; ++i) {
      tensor[i * size] = static_cast<std::byte>(i + 1);
    }
    IoPort out = *IoPort::Make(Direction::kOutput, "y", type, shape, 4);
    IoPort in = *IoPort::Make(Direction::kInput, "x", type, shape, 4);
    const TensorFormat format = {.type = out.native().type,
                                 .layout = TensorLayout::kNc1hwc2,
                                 .pass_through = true};
    auto layout = out.Resolve(format);
    ASSERT_TRUE(layout.ok()) << layout.status();
    ASSERT_EQ(layout->group, block);
    std::vector<std::byte> client(layout->bytes, std::byte{0x55});
    std::vector<std::byte> back(tensor.size());

    WriteOutput(*layout, client.data(), {type, shape, {}}, tensor.data(),
                nullptr);
    auto again = in.Resolve(format);
    ASSERT_TRUE(again.ok()) << again.status();
    ReadInput(*again, client.data(), {type, shape, {}}, back.data(), nullptr);

    EXPECT_EQ(back, tensor);
    // Channel 1 of the first pixel lies beside channel 0.
    EXPECT_EQ(client[size], std::byte{7});
    EXPECT_EQ(static_cast<int>(client.back()), 0);
  }
}

TEST(IoTransferTest, IntegersKeepTheirValues) {
  const Shape shape{1, 2, 2, 3};
  IoPort port =
      *IoPort::Make(Direction::kOutput, "y", DataType::kInt64, shape, 8);
  std::vector<int64_t> tensor = {1,  -2, int64_t{1} << 40, 4, 5, 6, 7, 8, 9, 10,
                                 11, 12};
  auto layout =
      port.Resolve({.type = TensorType::kInt64, .layout = TensorLayout::kNhwc});
  ASSERT_TRUE(layout.ok());
  std::vector<int64_t> client(12);

  WriteOutput(*layout, reinterpret_cast<std::byte*>(client.data()),
              {DataType::kInt64, shape, {}},
              reinterpret_cast<const std::byte*>(tensor.data()), nullptr);

  EXPECT_EQ(client, (std::vector<int64_t>{1, 7, -2, 8, int64_t{1} << 40, 9, 4,
                                          10, 5, 11, 6, 12}));
}

}  // namespace
}  // namespace rknnd::soft
