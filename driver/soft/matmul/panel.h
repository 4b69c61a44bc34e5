// Columns of B as the tiles of products read their weights
// (driver/soft/tiles/tile_kernels.h): blocks of 32 columns, in each block cell
// by cell: four int8, or one float, of each column. B's own memory is a
// program's and may be in any layout; a block is brought into this form while
// it is multiplied, so that a run always sees what B holds then.
//
//   bytes    [K/4][32][4]     floats   [K][32]
//
// Thread: any. Nothing allocates.

#ifndef DRIVER_SOFT_MATMUL_PANEL_H_
#define DRIVER_SOFT_MATMUL_PANEL_H_

#include <cstddef>
#include <cstdint>

#include "driver/matmul/matmul_layout.h"

namespace rknnd::soft {

// B's numbers, where they lie.
struct PanelSource {
  matmul::Element element = matmul::Element::kInt8;
  matmul::PlacesOfB places;
  matmul::Shape shape;
  int64_t block_n = 32, run_k = 32;  // of the native layout
};

inline constexpr int64_t kPanelColumns = 32;
// Of one block, with what tiles may read behind it.
size_t PanelBytes(int64_t k, size_t number);

// int4 in columns lie in pairs: the cells of a panel of theirs have the even
// rows of eight, then the odd ones. So must A.
bool PairsRows(const PanelSource& source);

// `columns` of them, from a multiple of 32 on: as many blocks, PanelBytes
// apart. A multiple of 8 columns, and of 16 rows.
void PackBytes(const PanelSource& source, const std::byte* b, int64_t first,
               int64_t columns, std::byte* panel);
void PackFloats(const PanelSource& source, const std::byte* b, int64_t first,
                int64_t columns, float* panel);

// `count` int4, a multiple of two, in their order.
void UnpackInt4(const std::byte* from, int64_t count, int8_t* to);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_MATMUL_PANEL_H_
