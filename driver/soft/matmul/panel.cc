#include "driver/soft/matmul/panel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/values/half.h"
#include "driver/soft/tiles/packed_weights.h"

namespace rknnd::soft {
namespace {

using matmul::Element;
using matmul::Layout;

constexpr size_t kCell = 4;
constexpr size_t kRow = kPanelColumns * kCell;  // bytes of a row of cells
// Rows of a column that are turned at once where all of them lie together.
constexpr int64_t kRun = 128;

// 128 bits, as every CPU has them.
using Bytes [[gnu::vector_size(16)]] = uint8_t;
using Words [[gnu::vector_size(16)]] = uint32_t;

template <class T>
T Load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void Store(const T& value, void* to) {
  std::memcpy(to, &value, sizeof value);
}

// Four columns' vectors of four cells: one row of four cells each.
void Turn(const std::array<Words, 4>& columns, std::byte* to, size_t step) {
  const Words low01 =
      __builtin_shufflevector(columns[0], columns[1], 0, 4, 1, 5);
  const Words high01 =
      __builtin_shufflevector(columns[0], columns[1], 2, 6, 3, 7);
  const Words low23 =
      __builtin_shufflevector(columns[2], columns[3], 0, 4, 1, 5);
  const Words high23 =
      __builtin_shufflevector(columns[2], columns[3], 2, 6, 3, 7);
  Store(__builtin_shufflevector(low01, low23, 0, 1, 4, 5), to);
  Store(__builtin_shufflevector(low01, low23, 2, 3, 6, 7), to + step);
  Store(__builtin_shufflevector(high01, high23, 0, 1, 4, 5), to + 2 * step);
  Store(__builtin_shufflevector(high01, high23, 2, 3, 6, 7), to + 3 * step);
}

// Columns of 4-byte cells that lie `pitch` bytes apart.
void TurnCells(const std::byte* from, size_t pitch, int64_t columns,
               int64_t cells, std::byte* to) {
  for (int64_t c = 0; c < columns; c += 4) {
    const std::byte* column = from + static_cast<size_t>(c) * pitch;
    std::byte* row = to + static_cast<size_t>(c) * kCell;
    for (int64_t i = 0; i < cells; i += 4) {
      Turn({Load<Words>(column), Load<Words>(column + pitch),
            Load<Words>(column + 2 * pitch), Load<Words>(column + 3 * pitch)},
           row, kRow);
      column += sizeof(Words);
      row += 4 * kRow;
    }
  }
}

Bytes LowHalves(Bytes pairs) { return ((pairs & 0x0f) ^ 8) - 8; }
Bytes HighHalves(Bytes pairs) { return ((pairs >> 4) ^ 8) - 8; }

// The same of int4: cells of even rows and of odd ones take turns.
void TurnPairs(const std::byte* from, size_t pitch, int64_t columns,
               int64_t rows, std::byte* to) {
  for (int64_t c = 0; c < columns; c += 4) {
    const std::byte* column = from + static_cast<size_t>(c) * pitch;
    std::byte* row = to + static_cast<size_t>(c) * kCell;
    for (int64_t k = 0; k < rows; k += 32) {
      std::array<Words, 4> even, odd;
      for (size_t i = 0; i < 4; ++i) {
        const auto pairs = Load<Bytes>(column + i * pitch);
        even[i] = reinterpret_cast<Words>(LowHalves(pairs));
        odd[i] = reinterpret_cast<Words>(HighHalves(pairs));
      }
      Turn(even, row, 2 * kRow);
      Turn(odd, row + kRow, 2 * kRow);
      column += sizeof(Bytes);
      row += 8 * kRow;
    }
  }
}

// Four rows of 16 columns: 16 cells.
void Interleave(const std::array<Bytes, 4>& rows, std::byte* to) {
  const auto zip = [](Bytes a, Bytes b, Bytes& low, Bytes& high) {
    low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                  21, 6, 22, 7, 23);
    high = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                   13, 29, 14, 30, 15, 31);
  };
  const auto zip_pairs = [](Bytes a, Bytes b, std::byte* at) {
    Store(__builtin_shufflevector(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20,
                                  21, 6, 7, 22, 23),
          at);
    Store(__builtin_shufflevector(a, b, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13,
                                  28, 29, 14, 15, 30, 31),
          at + 16);
  };
  Bytes low01, high01, low23, high23;
  zip(rows[0], rows[1], low01, high01);
  zip(rows[2], rows[3], low23, high23);
  zip_pairs(low01, low23, to);
  zip_pairs(high01, high23, to + 32);
}

// 16 int4 of one row.
Bytes RowOfPairs(const std::byte* from) {
  std::array<std::byte, 16> padded{};
  std::memcpy(padded.data(), from, 8);
  const auto pairs = Load<Bytes>(padded.data());
  return __builtin_shufflevector(LowHalves(pairs), HighHalves(pairs), 0, 16, 1,
                                 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

void PackRows(const PanelSource& source, const std::byte* b, int64_t first,
              int64_t columns, std::byte* panel) {
  const bool pairs = source.element == Element::kInt4;
  const size_t panel_bytes = PanelBytes(source.shape.k, 1);
  const int64_t n = source.shape.n;
  for (int64_t k = 0; k < source.shape.k; k += 4) {
    for (int64_t c = 0; c < columns; c += 16) {
      std::array<Bytes, 4> rows;
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t at = (k + i) * n + first + c;
        rows[static_cast<size_t>(i)] =
            pairs ? RowOfPairs(b + at / 2) : Load<Bytes>(b + at);
      }
      const auto block = static_cast<size_t>(c / kPanelColumns);
      Interleave(rows, panel + block * panel_bytes +
                           static_cast<size_t>(k) / 4 * kRow +
                           static_cast<size_t>(c % kPanelColumns) * kCell);
    }
  }
}

// Calls turn(first number, numbers from column to column, columns, first row,
// rows, first column) for the runs of the block of columns from `first` on.
template <class TurnRun>
void ForRuns(const PanelSource& source, int64_t first, int64_t columns,
             const TurnRun& turn) {
  const bool native = source.places.layout() == Layout::kNative;
  const int64_t run = native ? source.run_k : kRun;
  const int64_t group =
      native ? std::min(source.block_n, kPanelColumns) : kPanelColumns;
  const int64_t pitch = native ? source.run_k : source.shape.k;
  for (int64_t k = 0; k < source.shape.k; k += run) {
    const int64_t rows = std::min(run, source.shape.k - k);
    for (int64_t c = 0; c < columns; c += group) {
      turn(source.places.Of(k, first + c), pitch, std::min(group, columns - c),
           k, rows, c);
    }
  }
}

// Some numbers in their order.
void ToFloats(Element element, const std::byte* b, int64_t at, int64_t count,
              float* to) {
  if (element == Element::kFloat16) {
    const auto* const from = reinterpret_cast<const base::Half*>(b) + at;
    base::HalfToFloat(std::span(from, static_cast<size_t>(count)),
                      std::span(to, static_cast<size_t>(count)));
    return;
  }
  if (element == Element::kInt4) {
    std::array<int8_t, kRun> bytes;
    UnpackInt4(b + at / 2, count, bytes.data());
    for (int64_t i = 0; i < count; ++i) {
      to[i] = bytes[static_cast<size_t>(i)];
    }
    return;
  }
  const auto* const from = reinterpret_cast<const int8_t*>(b) + at;
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

}  // namespace

size_t PanelBytes(int64_t k, size_t number) {
  return static_cast<size_t>(k) * kPanelColumns * number + kWeightSlack;
}

bool PairsRows(const PanelSource& source) {
  return source.element == Element::kInt4 &&
         source.places.layout() != Layout::kNormal;
}

void UnpackInt4(const std::byte* from, int64_t count, int8_t* to) {
  for (int64_t i = 0; i < count; i += 2) {
    const auto pair = static_cast<uint8_t>(from[i / 2]);
    to[i] = static_cast<int8_t>(((pair & 0xf) ^ 8) - 8);
    to[i + 1] = static_cast<int8_t>(((pair >> 4) ^ 8) - 8);
  }
}

void PackBytes(const PanelSource& source, const std::byte* b, int64_t first,
               int64_t columns, std::byte* panel) {
  if (source.places.layout() == Layout::kNormal) {
    return PackRows(source, b, first, columns, panel);
  }
  const bool pairs = source.element == Element::kInt4;
  for (int64_t c = 0; c < columns; c += kPanelColumns) {
    ForRuns(source, first + c, std::min(columns - c, kPanelColumns),
            [&](int64_t at, int64_t pitch, int64_t count, int64_t k,
                int64_t rows, int64_t column) {
              std::byte* const to = panel + static_cast<size_t>(k) / 4 * kRow +
                                    static_cast<size_t>(column) * kCell;
              if (pairs) {
                TurnPairs(b + at / 2, static_cast<size_t>(pitch / 2), count,
                          rows, to);
              } else {
                TurnCells(b + at, static_cast<size_t>(pitch), count, rows / 4,
                          to);
              }
            });
    panel += PanelBytes(source.shape.k, 1);
  }
}

void PackFloats(const PanelSource& source, const std::byte* b, int64_t first,
                int64_t columns, float* panel) {
  const size_t panel_floats = PanelBytes(source.shape.k, 4) / sizeof(float);
  if (source.places.layout() == Layout::kNormal) {
    for (int64_t k = 0; k < source.shape.k; ++k) {
      for (int64_t c = 0; c < columns; c += kPanelColumns) {
        ToFloats(source.element, b, source.places.Of(k, first + c),
                 std::min(columns - c, kPanelColumns),
                 panel + static_cast<size_t>(c / kPanelColumns) * panel_floats +
                     k * kPanelColumns);
      }
    }
    return;
  }
  for (int64_t c = 0; c < columns; c += kPanelColumns) {
    ForRuns(source, first + c, std::min(columns - c, kPanelColumns),
            [&](int64_t at, int64_t pitch, int64_t count, int64_t k,
                int64_t rows, int64_t column) {
              std::array<float, kPanelColumns * kRun> run;
              if (pitch == rows && source.element == Element::kFloat16) {
                ToFloats(source.element, b, at, count * rows, run.data());
              } else {
                for (int64_t i = 0; i < count; ++i) {
                  ToFloats(source.element, b, at + i * pitch, rows,
                           run.data() + i * rows);
                }
              }
              TurnCells(reinterpret_cast<const std::byte*>(run.data()),
                        static_cast<size_t>(rows) * sizeof(float), count, rows,
                        reinterpret_cast<std::byte*>(panel + k * kPanelColumns +
                                                     column));
            });
    panel += panel_floats;
  }
}

}  // namespace rknnd::soft
