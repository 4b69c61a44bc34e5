// Products of a row with columns with AVX-512's dot product of bytes. It
// multiplies bytes without a sign with bytes that have one: those of a column
// have their upper bit turned, 128 more than they were.

#include "driver/soft/dots/avx2_vectors.h"
#include "driver/soft/dots/dot_levels.h"
#include "driver/soft/dots/dot_loops.h"

namespace rknnd::soft {
namespace {

struct Avx512VnniDots : Avx2Dots {
  static constexpr RowForm kForm = RowForm::kBytes;
  static constexpr uint32_t kMoreOfBytes = 128;

  static Ints Bytes(Ints sum, const std::byte* column, const std::byte* row) {
    return _mm256_dpbusd_epi32(
        sum, _mm256_xor_si256(Load(column), _mm256_set1_epi8(-128)), Load(row));
  }
  static Ints Pairs(Ints sum, const std::byte* column, const std::byte* row) {
    return _mm256_dpbusd_epi32(sum, Unpaired(column), Load(row));
  }
};

__m512i NoSums() { return _mm512_setzero_si512(); }

__m512i AddBytes(__m512i sum, const std::byte* column, __m512i row) {
  return _mm512_dpbusd_epi32(
      sum, _mm512_xor_si512(_mm512_loadu_si512(column), _mm512_set1_epi8(-128)),
      row);
}

__m512i AddPairs(__m512i sum, const std::byte* column, __m512i even,
                 __m512i odd) {
  const __m512i low = _mm512_set1_epi8(0xf);
  const __m512i pairs =
      _mm512_xor_si512(_mm512_loadu_si512(column), _mm512_set1_epi8(-0x78));
  sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(pairs, low), even);
  return _mm512_dpbusd_epi32(
      sum, _mm512_and_si512(_mm512_srli_epi16(pairs, 4), low), odd);
}

// Where units of neighbouring columns lie side by side, a vector has those of
// two columns, or of four, and a block is read from its begin to its end. Of 32
// columns each.
void BytesSideBySide(const Dots& dots) {
  auto* sums = static_cast<uint32_t*>(dots.sums);
  const uint32_t more = 128 * dots.row_sum;
  for (size_t c = 0; c < dots.columns; c += 32, sums += 32) {
    __m512i lanes[16];
    for (__m512i& sum : lanes) sum = NoSums();
    const std::byte* column = dots.column + c * dots.column_step;
    for (size_t unit = 0; unit < dots.units; ++unit) {
      const __m512i row =
          _mm512_broadcast_i64x4(Avx2Dots::Load(dots.row + unit * kDotUnit));
      for (size_t i = 0; i < 16; ++i) {
        lanes[i] = AddBytes(lanes[i], column + i * 64, row);
      }
      column += dots.unit_step;
    }
    for (size_t i = 0; i < 16; ++i) {
      const __m256i low = _mm512_castsi512_si256(lanes[i]);
      const __m256i high = _mm512_extracti64x4_epi64(lanes[i], 1);
      sums[2 * i] += static_cast<uint32_t>(Avx2Dots::Total(low)) - more;
      sums[2 * i + 1] += static_cast<uint32_t>(Avx2Dots::Total(high)) - more;
    }
  }
}

void PairsSideBySide(const Dots& dots) {
  auto* sums = static_cast<uint32_t*>(dots.sums);
  const uint32_t more = 8 * dots.row_sum;
  for (size_t c = 0; c < dots.columns; c += 32, sums += 32) {
    __m512i lanes[8];
    for (__m512i& sum : lanes) sum = NoSums();
    const std::byte* column = dots.column + c * dots.column_step;
    for (size_t unit = 0; unit < dots.units; ++unit) {
      const std::byte* const row = dots.row + unit * kDotUnit;
      const __m512i even = _mm512_broadcast_i32x4(Avx2Dots::LoadHalf(row));
      const __m512i odd = _mm512_broadcast_i32x4(Avx2Dots::LoadHalf(row + 16));
      for (size_t i = 0; i < 8; ++i) {
        lanes[i] = AddPairs(lanes[i], column + i * 64, even, odd);
      }
      column += dots.unit_step;
    }
    for (size_t i = 0; i < 8; ++i) {
      uint32_t parts[16];
      _mm512_storeu_si512(parts, lanes[i]);
      for (size_t j = 0; j < 4; ++j) {
        const uint32_t* const part = parts + 4 * j;
        sums[4 * i + j] += part[0] + part[1] + part[2] + part[3] - more;
      }
    }
  }
}

// Where units of one column lie side by side, a vector has two, or four of
// them, and the matrix is read from its begin to its end, a column after the
// other. So many sums of a column, as one waits for the one before.
constexpr size_t kApart = 4;

uint32_t TotalOf(const __m512i (&lanes)[kApart]) {
  return static_cast<uint32_t>(_mm512_reduce_add_epi32(
      _mm512_add_epi32(_mm512_add_epi32(lanes[0], lanes[1]),
                       _mm512_add_epi32(lanes[2], lanes[3]))));
}

void BytesOfColumns(const Dots& dots) {
  auto* const sums = static_cast<uint32_t*>(dots.sums);
  const size_t bytes = dots.units * kDotUnit;
  for (size_t c = 0; c < dots.columns; ++c) {
    __m512i lanes[kApart];
    for (__m512i& sum : lanes) sum = NoSums();
    const std::byte* const column = dots.column + c * dots.column_step;
    const auto add = [&](__m512i& sum, size_t at) {
      sum = AddBytes(sum, column + at, _mm512_loadu_si512(dots.row + at));
    };
    size_t at = 0;
    for (; at + 64 * kApart <= bytes; at += 64 * kApart) {
      for (size_t i = 0; i < kApart; ++i) add(lanes[i], at + 64 * i);
    }
    for (; at < bytes; at += 64) add(lanes[0], at);
    sums[c] += TotalOf(lanes) - 128 * dots.row_sum;
  }
}

void PairsOfColumns(const Dots& dots) {
  auto* const sums = static_cast<uint32_t*>(dots.sums);
  const size_t bytes = dots.units * kDotUnit / 2;
  for (size_t c = 0; c < dots.columns; ++c) {
    __m512i lanes[kApart];
    for (__m512i& sum : lanes) sum = NoSums();
    const std::byte* const column = dots.column + c * dots.column_step;
    const auto add = [&](__m512i& sum, size_t at) {
      const __m512i first = _mm512_loadu_si512(dots.row + 2 * at);
      const __m512i second = _mm512_loadu_si512(dots.row + 2 * at + 64);
      sum =
          AddPairs(sum, column + at, _mm512_shuffle_i64x2(first, second, 0x88),
                   _mm512_shuffle_i64x2(first, second, 0xdd));
    };
    size_t at = 0;
    for (; at + 64 * kApart <= bytes; at += 64 * kApart) {
      for (size_t i = 0; i < kApart; ++i) add(lanes[i], at + 64 * i);
    }
    for (; at < bytes; at += 64) add(lanes[0], at);
    sums[c] += TotalOf(lanes) - 8 * dots.row_sum;
  }
}

constexpr DotKernels kUnitByUnit = DotLoops<Avx512VnniDots>::Of("avx512_vnni");

void Bytes(const Dots& dots) {
  if (dots.column_step == kDotUnit && dots.columns % 32 == 0) {
    BytesSideBySide(dots);
  } else if (dots.unit_step == kDotUnit && dots.units % 2 == 0) {
    BytesOfColumns(dots);
  } else {
    kUnitByUnit.bytes(dots);
  }
}

void Pairs(const Dots& dots) {
  if (dots.column_step == kDotUnit / 2 && dots.columns % 32 == 0) {
    PairsSideBySide(dots);
  } else if (dots.unit_step == kDotUnit / 2 && dots.units % 4 == 0) {
    PairsOfColumns(dots);
  } else {
    kUnitByUnit.pairs(dots);
  }
}

constexpr DotKernels Made() {
  DotKernels kernels = kUnitByUnit;
  kernels.bytes = &Bytes;
  kernels.pairs = &Pairs;
  return kernels;
}

}  // namespace

constexpr DotKernels kDotsAvx512Vnni = Made();

}  // namespace rknnd::soft
