// What LSTM, GRU and RNN are told: sizes, directions and functions, read from a
// node and checked.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_KERNELS_RECURRENT_CELL_H_
#define DRIVER_SOFT_KERNELS_RECURRENT_CELL_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/soft/kernels/elementwise/activation.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

enum class CellKind : uint8_t { kRnn, kGru, kLstm };

// A function of gates or states, over a run of numbers.
struct CellFunction {
  FloatLoop loop = nullptr;
  float alpha = 0.0F, beta = 0.0F;
  void Run(float* numbers, int64_t n) const {
    loop(numbers, numbers, n, alpha, beta);
  }
};

struct Cell {
  CellKind kind = CellKind::kRnn;
  int64_t directions = 1, steps = 0, batch = 0, hidden = 0;
  bool batch_first = false;     // layout 1
  bool first_reversed = false;  // direction "reverse"
  bool input_forget = false;    // LSTM: the forget gate is 1 - the input gate
  bool linear_before_reset = false;  // GRU
  float clip = 0.0F;                 // of what functions are given; 0: none
  // Of each direction: f, g and h of ONNX's text.
  std::array<std::array<CellFunction, 3>, 2> functions;

  [[nodiscard]] int64_t gates() const {
    return kind == CellKind::kLstm ? 4 : kind == CellKind::kGru ? 3 : 1;
  }
  // Numbers that one step of one direction computes for one sequence.
  [[nodiscard]] int64_t width() const { return gates() * hidden; }
};

// Of a node of ONNX's or of rknnd's LSTM, GRU or RNN, whose first input has two
// axes of steps and batch and a third one.
absl::StatusOr<Cell> ParseCell(const NodeView& node);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_RECURRENT_CELL_H_
