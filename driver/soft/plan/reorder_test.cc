#include "driver/soft/plan/reorder.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

template <class T>
void ExpectThereAndBack(DataType type, const Shape& shape, int block) {
  TensorSpec dense{type, shape, {}};
  TensorSpec blocked{type, shape, {block}};
  std::vector<T> source(dense.bytes() / sizeof(T));
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<T>(i + 1);
  std::vector<T> middle(blocked.bytes() / sizeof(T), T{99});
  std::vector<T> back(source.size());

  Reorder(dense, blocked)
      .Run(reinterpret_cast<const std::byte*>(source.data()),
           reinterpret_cast<std::byte*>(middle.data()));
  Reorder(blocked, dense)
      .Run(reinterpret_cast<const std::byte*>(middle.data()),
           reinterpret_cast<std::byte*>(back.data()));

  EXPECT_EQ(back, source) << ShapeText(shape) << " block " << block;
  // The second channel's first pixel stands beside the first's.
  size_t pixels = 1;
  for (size_t i = 2; i < shape.size(); ++i) {
    pixels *= static_cast<size_t>(shape[i]);
  }
  if (shape[1] > 1) {
    EXPECT_EQ(middle[1], source[pixels]);
  }
  if (shape[1] % block != 0) {
    EXPECT_EQ(middle.back(), T{0});  // padding
  }
}

TEST(ReorderTest, BlockedAndBackIsTheSame) {
  for (int block : {4, 8, 16}) {
    for (const Shape& shape :
         {Shape{1, 16, 4, 4}, Shape{2, 20, 3, 5}, Shape{1, 3, 1, 1},
          Shape{1, 33, 7}, Shape{2, 32}, Shape{1, 5, 2, 3, 4}}) {
      ExpectThereAndBack<float>(DataType::kFloat32, shape, block);
      ExpectThereAndBack<uint8_t>(DataType::kUint8, shape, block);
      ExpectThereAndBack<int64_t>(DataType::kInt64, shape, block);
    }
  }
}

TEST(ReorderTest, BlocksBecomeOtherBlocks) {
  for (const Shape& shape :
       {Shape{2, 20, 3, 5}, Shape{1, 40, 2, 2}, Shape{1, 3, 4, 4}}) {
    const TensorSpec dense{DataType::kUint8, shape, {}};
    const auto channels = static_cast<int>(shape[1]);
    std::vector<uint8_t> source(dense.bytes());
    std::iota(source.begin(), source.end(), uint8_t{1});
    const auto move = [](const TensorSpec& from, const TensorSpec& to,
                         const std::vector<uint8_t>& tensor) {
      std::vector<uint8_t> moved(to.bytes(), 99);
      Reorder(from, to).Run(reinterpret_cast<const std::byte*>(tensor.data()),
                            reinterpret_cast<std::byte*>(moved.data()));
      return moved;
    };
    const TensorSpec blocked{DataType::kUint8, shape, {16}};
    const TensorSpec last{DataType::kUint8, shape, {channels}};
    const auto in_blocks = move(dense, blocked, source);
    const auto in_pixels = move(dense, last, source);

    EXPECT_EQ(move(blocked, last, in_blocks), in_pixels) << ShapeText(shape);
    EXPECT_EQ(move(last, blocked, in_pixels), in_blocks) << ShapeText(shape);
  }
}

}  // namespace
}  // namespace rknnd::soft
