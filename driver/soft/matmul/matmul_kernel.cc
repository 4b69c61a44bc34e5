#include "driver/soft/matmul/matmul_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>

#include "base/values/half.h"
#include "driver/soft/kernels/stop.h"
#include "driver/soft/kernels/work.h"
#include "driver/soft/matmul/run_state.h"

namespace rknnd::soft {
namespace {

using matmul::Element;
using matmul::Scales;

constexpr int64_t kMostRows = 256;
// Of A, for which columns of B are read where they lie.
constexpr int64_t kFewRows = 4;
// What rows of A may take, so that they stay in a core's cache.
constexpr size_t kRowsBytes = size_t{1} << 20;
// Rows of B lie far apart: those of several panels are read at once.
constexpr int64_t kMostPanels = 4;
constexpr size_t kPanelsBytes = size_t{1} << 20;

PanelSource SourceOf(const matmul::Spec& spec, const matmul::Shape& shape,
                     const matmul::Blocks& blocks) {
  return {.element = matmul::ElementsOf(spec.type).b,
          .places = {spec.b_layout, shape, blocks},
          .shape = shape,
          .block_n = blocks.b_n,
          .run_k = blocks.b_k};
}

// Eight numbers: the even ones, then the odd ones.
template <class T>
void PairEights(T* numbers, int64_t count) {
  for (int64_t i = 0; i < count; i += 8) {
    const std::array<T, 8> old = {
        numbers[i],     numbers[i + 1], numbers[i + 2], numbers[i + 3],
        numbers[i + 4], numbers[i + 5], numbers[i + 6], numbers[i + 7]};
    for (size_t j = 0; j < 4; ++j) {
      numbers[i + static_cast<int64_t>(j)] = old[2 * j];
      numbers[i + 4 + static_cast<int64_t>(j)] = old[2 * j + 1];
    }
  }
}

}  // namespace

MatmulKernel::MatmulKernel(const matmul::Spec& spec, const matmul::Shape& shape,
                           const matmul::Blocks& blocks, CpuLevel level)
    : spec_(spec),
      shape_(shape),
      blocks_(blocks),
      elements_(matmul::ElementsOf(spec.type)),
      bytes_(ByteKernelsFor(level)),
      floats_(FloatKernelsFor(level)),
      dots_(DotKernelsFor(level)),
      sums_bytes_(elements_.a != Element::kFloat16 &&
                  spec.b_scales() != Scales::kPerGroup),
      scales_late_(spec.b_scales() != Scales::kPerGroup),
      source_(SourceOf(spec, shape, blocks)) {
  const bool lies_in_units =
      spec.b_layout == matmul::Layout::kTransposed
          ? shape.k % kDotUnit == 0
          : spec.b_layout == matmul::Layout::kNative && blocks.b_k == kDotUnit;
  if (shape.m <= kFewRows && lies_in_units) {
    if (!sums_bytes_) {
      if (elements_.b == Element::kFloat16) dot_ = dots_.halves;
      dot_number_ = sizeof(float);
    } else if (elements_.b == Element::kInt4) {
      dot_ = dots_.pairs;
      dot_number_ = 1;
    } else {
      dot_ = dots_.bytes;
      dot_number_ = dots_.form == RowForm::kWide ? 2 : 1;
    }
  }
  if (shape.m <= kFewRows && spec.b_layout == matmul::Layout::kNormal) {
    if (!sums_bytes_) {
      if (elements_.b == Element::kFloat16) dot_rows_ = dots_.half_rows;
      dot_number_ = sizeof(float);
    } else {
      dot_rows_ =
          elements_.b == Element::kInt4 ? dots_.pair_rows : dots_.byte_rows;
      dot_number_ = 1;
    }
  }
  sums_are_c_ =
      !spec.native_ac &&
      (elements_.c == Element::kInt32 ||
       (elements_.c == Element::kFloat32 && elements_.b == Element::kFloat16));
  const size_t number = sums_bytes_ ? SizeOf(bytes_.form) : sizeof(float);
  row_bytes_ = static_cast<size_t>(shape.k) * number;
  panel_bytes_ = PanelBytes(shape.k, sums_bytes_ ? 1 : sizeof(float));
  rows_ = std::clamp(static_cast<int64_t>(kRowsBytes / row_bytes_), int64_t{1},
                     std::min<int64_t>(kMostRows, shape.m));
  panels_in_n_ = (shape.n + kPanelColumns - 1) / kPanelColumns;
  if (spec.b_layout == matmul::Layout::kNormal) {
    panels_ = std::clamp(static_cast<int64_t>(kPanelsBytes / panel_bytes_),
                         int64_t{1}, std::min(kMostPanels, panels_in_n_));
  }
  steps_ = (panels_in_n_ + panels_ - 1) / panels_;
  const auto reserve = [this](size_t bytes) {
    const size_t at = scratch_;
    scratch_ += (bytes + 63) / 64 * 64;
    return at;
  };
  // One more row, of ones.
  const auto rows = static_cast<size_t>(rows_) + 1;
  reserve(
      std::max(rows * row_bytes_,
               dot_ == nullptr && dot_rows_ == nullptr
                   ? 0
                   : static_cast<size_t>(shape.m * shape.k) * sizeof(float)) +
      kWeightSlack);
  // Or some columns of one row of C.
  panels_at_ = reserve(std::max(static_cast<size_t>(panels_) * panel_bytes_,
                                kRowColumns * sizeof(int32_t)));
  sums_at_ = reserve(rows * kColumns * sizeof(int32_t));
  row_sums_at_ = reserve(rows * sizeof(uint32_t));
  line_at_ = reserve(static_cast<size_t>(shape.k) * sizeof(base::Half));
}

MatmulKernel::Room MatmulKernel::RoomIn(std::byte* scratch) const {
  return {scratch,
          scratch + panels_at_,
          scratch + sums_at_,
          scratch + panels_at_,
          reinterpret_cast<uint32_t*>(scratch + row_sums_at_),
          scratch + line_at_};
}

const std::byte* MatmulKernel::RowOfA(const Matrices& matrices, int64_t row,
                                      std::byte* line) const {
  const auto k = static_cast<size_t>(shape_.k);
  const size_t bits = matmul::BitsOf(elements_.a);
  const size_t block = spec_.native_ac ? static_cast<size_t>(blocks_.a_k) : k;
  const size_t block_bytes = block * bits / 8;
  const size_t step =
      block_bytes * (spec_.native_ac ? static_cast<size_t>(shape_.m) : 1);
  const std::byte* from = matrices.a + static_cast<size_t>(row) * block_bytes;
  for (size_t b = 0; b * block < k; ++b, from += step) {
    const size_t here = std::min(block, k - b * block);
    if (elements_.a == Element::kInt4) {
      UnpackInt4(from, static_cast<int64_t>(here),
                 reinterpret_cast<int8_t*>(line) + b * block);
    } else {
      std::memcpy(line + b * block_bytes, from, here * bits / 8);
    }
  }
  return line;
}

void MatmulKernel::PrepareRows(const Matrices& matrices, int64_t first,
                               int64_t count, const Numbers& numbers,
                               const Room& room) const {
  const auto k = static_cast<size_t>(shape_.k);
  for (int64_t r = 0; r < count; ++r) {
    const std::byte* const from = RowOfA(matrices, first + r, room.line);
    std::byte* const to = room.rows + static_cast<size_t>(r) * row_bytes_;
    if (!sums_bytes_) {
      auto* const row = reinterpret_cast<float*>(to);
      if (elements_.a == Element::kFloat16) {
        base::HalfToFloat(
            std::span(reinterpret_cast<const base::Half*>(from), k),
            std::span(row, k));
      } else {
        const auto* const bytes = reinterpret_cast<const int8_t*>(from);
        for (size_t i = 0; i < k; ++i) {
          row[i] = static_cast<float>(bytes[i] - numbers.a_zero);
        }
      }
      continue;
    }
    room.row_sums[r] = numbers.has_b_zeros ? SumOf(from, k) : 0;
    if (PairsRows(source_)) PairEights(room.line, shape_.k);
    bytes_.convert(from, /*is_signed=*/true, k, to);
  }
  if (!sums_bytes_) return;
  std::byte* const ones = room.rows + static_cast<size_t>(count) * row_bytes_;
  if (bytes_.form == TileForm::kWide) {
    std::fill_n(reinterpret_cast<int16_t*>(ones), k, int16_t{1});
  } else {
    std::fill_n(ones, k, std::byte{1});
  }
}

void MatmulKernel::PreparePanels(const Matrices& matrices, int64_t first,
                                 int64_t columns, const Numbers& numbers,
                                 const Room& room) const {
  if (sums_bytes_) {
    return PackBytes(source_, matrices.b, first, columns, room.panels);
  }
  PackFloats(source_, matrices.b, first, columns,
             reinterpret_cast<float*>(room.panels));
  if (elements_.b == Element::kFloat16 ||
      (scales_late_ && !numbers.has_b_zeros)) {
    return;
  }
  const int64_t group = scales_late_ ? shape_.k : spec_.group;
  for (int64_t c = 0; c < columns; c += kPanelColumns) {
    auto* const panel = reinterpret_cast<float*>(
        room.panels + static_cast<size_t>(c / kPanelColumns) * panel_bytes_);
    const int64_t here = std::min(columns - c, kPanelColumns);
    OfColumns<float> zero{}, scale{};
    for (int64_t k = 0; k < shape_.k; ++k) {
      for (int64_t i = 0; i < here && k % group == 0; ++i) {
        const auto at = static_cast<size_t>(i);
        const int64_t column = first + c + i;
        const int64_t entry = k / group * shape_.n + column;
        zero[at] =
            static_cast<float>(scales_late_ ? numbers.ZeroOfColumn(column)
                                            : numbers.ZeroAt(entry));
        scale[at] = scales_late_ ? 1.0F : numbers.ScaleAt(entry);
      }
      float* const row = panel + k * kPanelColumns;
      for (size_t i = 0; i < kColumns; ++i) {
        row[i] = (row[i] - zero[i]) * scale[i];
      }
    }
  }
}

void MatmulKernel::Run(Part part, const Matrices& matrices,
                       std::byte* scratch) const {
  const Room room = RoomIn(scratch);
  const Numbers numbers(*this, matrices.scales);
  if (dot_ != nullptr && numbers.a_zero == 0) {
    RunDots(part, matrices, numbers, room);
  } else if (dot_rows_ != nullptr && numbers.a_zero == 0) {
    RunRows(part, matrices, numbers, room);
  } else {
    RunTiles(part, matrices, numbers, room);
  }
}

void MatmulKernel::RunTiles(Part part, const Matrices& matrices,
                            const Numbers& numbers, const Room& room) const {
  const Range steps = ShareOf(part, steps_);
  static constexpr std::array<float, kColumns + kMaxLanes> kZeros{};
  static constexpr auto kOnes = [] {
    std::array<float, kColumns + kMaxLanes> ones{};
    ones.fill(1.0F);
    return ones;
  }();
  TileEpilogue epilogue;
  epilogue.bias = kZeros.data();
  epilogue.scale = kOnes.data();
  epilogue.low = -std::numeric_limits<float>::infinity();
  epilogue.high = std::numeric_limits<float>::infinity();
  epilogue.output = sums_bytes_ ? TileOutput::kSum : TileOutput::kFloat;
  const auto more =
      static_cast<uint32_t>(numbers.a_zero) +
      (bytes_.form == TileForm::kUnsigned ? uint32_t{128} : uint32_t{0});
  // Sums of B's columns, where something is a multiple of them.
  const bool needs_ones = sums_bytes_ && more != 0;
  std::array<const std::byte*, kMostRows + 1> pixels;
  std::array<int32_t, kColumns + kMaxLanes> starts{};
  const ptrdiff_t offset = 0;
  Tile tile;
  tile.offsets = &offset;
  tile.runs = 1;
  tile.cells = static_cast<size_t>(sums_bytes_ ? shape_.k / 4 : shape_.k);
  tile.weight_step = kColumns * kWeightCell;
  const auto run = [&] {
    (sums_bytes_ ? bytes_.tile : floats_.tile)(tile, epilogue);
  };
  for (int64_t row = 0; row < shape_.m; row += rows_) {
    const int64_t count = std::min(rows_, shape_.m - row);
    PrepareRows(matrices, row, count, numbers, room);
    for (int64_t r = 0; r <= count; ++r) {
      pixels[static_cast<size_t>(r)] =
          room.rows + static_cast<size_t>(r) * row_bytes_;
    }
    for (int64_t step = steps.begin; step < steps.end; ++step) {
      StopPoint();
      const int64_t first = step * panels_ * kPanelColumns;
      const int64_t columns =
          std::min(panels_ * kPanelColumns, shape_.n - first);
      PreparePanels(matrices, first, columns, numbers, room);
      for (int64_t c = 0; c < columns; c += kPanelColumns) {
        const int64_t here = std::min(columns - c, kPanelColumns);
        tile.weights =
            room.panels + static_cast<size_t>(c / kPanelColumns) * panel_bytes_;
        tile.channels = static_cast<size_t>(here);
        tile.output = room.sums;
        tile.output_step = kColumns * sizeof(int32_t);
        tile.pixels = pixels.data();
        tile.count = static_cast<size_t>(count + (needs_ones ? 1 : 0));
        if (sums_are_c_) {
          if (needs_ones) {
            tile.pixels += count;
            tile.count = 1;
            run();
            const auto* const ones =
                reinterpret_cast<const uint32_t*>(room.sums);
            for (size_t i = 0; i < kColumns; ++i) {
              starts[i] = static_cast<int32_t>(-(more * ones[i]));
            }
            epilogue.start = starts.data();
          }
          tile.pixels = pixels.data();
          tile.count = static_cast<size_t>(count);
          tile.output_step = static_cast<size_t>(shape_.n) * sizeof(int32_t);
          tile.output =
              matrices.c +
              static_cast<size_t>(row * shape_.n + first + c) * sizeof(int32_t);
          run();
          epilogue.start = nullptr;
          continue;
        }
        run();
        if (sums_bytes_) {
          FinishBytes(numbers, room, more, row, count, first + c, here,
                      matrices.c);
        } else {
          FinishFloats(numbers, room, row, count, first + c, here, matrices.c);
        }
      }
    }
  }
}

}  // namespace rknnd::soft
