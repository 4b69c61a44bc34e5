// See integer_product.h.

#include "driver/soft/kernels/product/integer_product.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "driver/soft/kernels/convolution/integer_layer.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

constexpr int64_t kRowsAtOnce = 64;
constexpr auto kBlock = static_cast<int64_t>(kChannelBlock);

bool IsSigned(DataType type) { return type == DataType::kInt8; }

int32_t ByteAt(DataType type, const std::byte* data, int64_t i) {
  return IsSigned(type) ? int32_t{As<int8_t>(data)[i]}
                        : int32_t{As<uint8_t>(data)[i]};
}

}  // namespace

// Those of rows and columns in the forms that tiles multiply.
struct IntegerProduct::Zeros {
  DataType a_type, b_type;
  ZeroPoints a, b;
  int32_t a_more, b_more;  // in form
  // These wrap, as the sums of tiles do.
  const uint32_t* column_sums;
  const uint32_t* row_sums;

  [[nodiscard]] int32_t OfRow(int64_t row) const {
    return a_more +
           (a.data == nullptr ? 0 : ByteAt(a_type, a.data, a.many ? row : 0));
  }
  [[nodiscard]] int32_t OfColumn(int64_t column) const {
    return b_more + (b.data == nullptr
                         ? 0
                         : ByteAt(b_type, b.data, b.many ? column : 0));
  }
};

IntegerProduct::IntegerProduct(const IntegerProductSpec& spec, CpuLevel level)
    : spec_(spec), loops_(ByteKernelsFor(level)) {
  packed_.outputs = spec.n;
  packed_.inputs = spec.k;
  offsets_ = {0};
  for (int64_t i = 0; i < spec.n + static_cast<int64_t>(kMaxLanes); ++i) {
    const auto at = static_cast<size_t>(std::min(i, spec.n - 1));
    bias_.push_back(spec.bias.empty() ? 0.0F : spec.bias[at]);
    scale_.push_back(spec.scale[spec.scale.size() == 1 ? 0 : at]);
  }
  epilogue_ = EpilogueOf(spec.output, spec.output_zero, spec.epilogue);
  epilogue_.bias = bias_.data();
  epilogue_.scale = scale_.data();
  rows_ = std::min(spec.m, kRowsAtOnce);
  const auto reserve = [this](int64_t values, size_t size) {
    constexpr size_t kAlignment = 64;
    const size_t at = scratch_;
    scratch_ += (static_cast<size_t>(values) * size + kAlignment - 1) /
                kAlignment * kAlignment;
    return at;
  };
  constexpr auto kSlack = static_cast<int64_t>(kMaxLanes);
  reserve(static_cast<int64_t>(packed_.bytes()), 1);
  sums_at_ = reserve(spec.n + kSlack, sizeof(int32_t));
  starts_at_ = reserve(spec.n + kSlack, sizeof(int32_t));
  rows_at_ = reserve(rows_ * spec.k + kSlack, SizeOf(loops_.form));
  tile_at_ = reserve(rows_ * kBlock, sizeof(int32_t));
}

void IntegerProduct::Pack(const std::byte* b, std::byte* scratch) const {
  auto* const sums = As<uint32_t>(scratch + sums_at_);
  std::fill_n(sums, spec_.n, 0U);
  const auto flip = IsSigned(spec_.b) ? std::byte{0} : std::byte{0x80};
  constexpr auto kCell = static_cast<int64_t>(kWeightCell);
  for (int64_t block = 0; block < packed_.blocks(); ++block) {
    const int64_t first = block * kBlock;
    const int64_t columns = packed_.ChannelsOf(block);
    std::byte* to = scratch + packed_.OffsetOf(0, block);
    for (int64_t k = 0; k < spec_.k; k += kCell) {
      for (int64_t i = 0; i < kCell; ++i) {
        if (k + i >= spec_.k) {
          for (int64_t c = 0; c < columns; ++c) to[c * kCell + i] = {};
          continue;
        }
        const std::byte* const from = spec_.transposed
                                          ? b + first * spec_.k + k + i
                                          : b + (k + i) * spec_.n + first;
        const int64_t step = spec_.transposed ? spec_.k : 1;
        for (int64_t c = 0; c < columns; ++c) {
          const std::byte w = from[c * step] ^ flip;
          to[c * kCell + i] = w;
          sums[first + c] += static_cast<uint32_t>(static_cast<int8_t>(w));
        }
      }
      to += packed_.StepOf(block);
    }
  }
}

void IntegerProduct::Multiply(const std::byte* a, ZeroPoints a_zero,
                              ZeroPoints b_zero, std::byte* output,
                              std::byte* scratch) const {
  const bool a_signed = IsSigned(spec_.a);
  int32_t more = 0;
  if (loops_.form == TileForm::kUnsigned && a_signed) more = 128;
  if (loops_.form == TileForm::kSigned && !a_signed) more = -128;
  std::array<uint32_t, kRowsAtOnce> row_sums = {};
  const Zeros zeros = {spec_.a,
                       spec_.b,
                       a_zero,
                       b_zero,
                       more,
                       IsSigned(spec_.b) ? 0 : -128,
                       As<uint32_t>(scratch + sums_at_),
                       row_sums.data()};
  // One number for each column is all that tiles add by themselves.
  const bool at_once = !a_zero.many && !b_zero.many && zeros.OfColumn(0) == 0;
  auto* const starts = As<int32_t>(scratch + starts_at_);
  for (int64_t n = 0; n < spec_.n; ++n) {
    starts[n] = static_cast<int32_t>(static_cast<uint32_t>(-zeros.OfRow(0)) *
                                     zeros.column_sums[n]);
  }
  const size_t row_bytes = static_cast<size_t>(spec_.k) * SizeOf(loops_.form);
  const size_t size = SizeOf(epilogue_.output);
  std::byte* const rows = scratch + rows_at_;
  std::array<const std::byte*, kRowsAtOnce> pixels;
  for (int64_t i = 0; i < rows_; ++i) {
    pixels[static_cast<size_t>(i)] = rows + static_cast<size_t>(i) * row_bytes;
  }
  Tile tile;
  tile.pixels = pixels.data();
  tile.offsets = offsets_.data();
  tile.runs = offsets_.size();
  tile.cells = static_cast<size_t>(packed_.cells());
  for (int64_t row = 0; row < spec_.m; row += rows_) {
    const int64_t count = std::min(rows_, spec_.m - row);
    const std::byte* const from = a + row * spec_.k;
    loops_.convert(from, a_signed, static_cast<size_t>(count * spec_.k), rows);
    for (int64_t i = 0; i < count && !at_once; ++i) {
      uint32_t sum =
          static_cast<uint32_t>(spec_.k) * static_cast<uint32_t>(more);
      for (int64_t k = 0; k < spec_.k; ++k) {
        sum += static_cast<uint32_t>(ByteAt(spec_.a, from, i * spec_.k + k));
      }
      row_sums[static_cast<size_t>(i)] = sum;
    }
    tile.count = static_cast<size_t>(count);
    for (int64_t block = 0; block < packed_.blocks(); ++block) {
      StopPoint();
      const int64_t column = block * kBlock;
      tile.weights = scratch + packed_.OffsetOf(0, block);
      tile.weight_step = packed_.StepOf(block);
      tile.channels = static_cast<size_t>(packed_.ChannelsOf(block));
      TileEpilogue epilogue = epilogue_;
      if (at_once) {
        epilogue.start = starts + column;
        epilogue.bias += column;
        epilogue.scale += column;
        tile.output_step = static_cast<size_t>(spec_.n) * size;
        tile.output =
            output + static_cast<size_t>(row * spec_.n + column) * size;
        loops_.tile(tile, epilogue);
        continue;
      }
      epilogue.output = TileOutput::kSum;
      tile.output_step = kChannelBlock * sizeof(int32_t);
      tile.output = scratch + tile_at_;
      loops_.tile(tile, epilogue);
      Finish(As<int32_t>(tile.output), row, count, column,
             packed_.ChannelsOf(block), zeros, output);
    }
  }
}

void IntegerProduct::Finish(const int32_t* sums, int64_t row, int64_t count,
                            int64_t column, int64_t columns, const Zeros& zeros,
                            std::byte* output) const {
  const TileEpilogue& e = epilogue_;
  const auto first = static_cast<size_t>(column);
  const uint32_t* const column_sums = zeros.column_sums + column;
  std::array<int32_t, kChannelBlock> column_zeros, exact;
  for (int64_t c = 0; c < columns; ++c) {
    column_zeros[static_cast<size_t>(c)] = zeros.OfColumn(column + c);
  }
  for (int64_t i = 0; i < count; ++i, sums += kChannelBlock) {
    const auto zero = static_cast<uint32_t>(zeros.OfRow(row + i));
    const uint32_t of_row =
        static_cast<uint32_t>(spec_.k) * zero - zeros.row_sums[i];
    for (size_t c = 0; c < static_cast<size_t>(columns); ++c) {
      exact[c] = static_cast<int32_t>(
          static_cast<uint32_t>(sums[c]) - zero * column_sums[c] +
          static_cast<uint32_t>(column_zeros[c]) * of_row);
    }
    std::byte* const out =
        output +
        static_cast<size_t>((row + i) * spec_.n + column) * SizeOf(e.output);
    if (e.output == TileOutput::kSum) {
      std::memcpy(out, exact.data(),
                  static_cast<size_t>(columns) * sizeof(int32_t));
      continue;
    }
    std::array<float, kChannelBlock> steps;
    for (size_t c = 0; c < static_cast<size_t>(columns); ++c) {
      float v = (static_cast<float>(exact[c]) + e.bias[first + c]) *
                e.scale[first + c];
      v = v < 0.0F ? v * e.slope : v;
      v = v > e.low ? v : e.low;
      steps[c] = v < e.high ? v : e.high;
    }
    if (e.output == TileOutput::kFloat) {
      std::memcpy(out, steps.data(),
                  static_cast<size_t>(columns) * sizeof(float));
      continue;
    }
    for (size_t c = 0; c < static_cast<size_t>(columns); ++c) {
      constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds
      const float rounded = (steps[c] + kRound) - kRound;
      out[c] = static_cast<std::byte>(static_cast<int32_t>(rounded) + e.zero);
    }
  }
}

}  // namespace rknnd::soft
