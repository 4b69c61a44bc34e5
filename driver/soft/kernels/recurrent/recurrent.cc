// LSTM, GRU and RNN. What the input adds to the gates is known for all steps at
// once and becomes a Gemm of its own; what is left, rknnd's own operator of the
// same name, takes step after step:
//
//   X, W, Wb  --Reshape, Gemm-->  gates of all steps  --+
//   R, Rb, sequence_lens, initial states, P  -----------+-->  Y, Y_h, Y_c
//
// The product of a step is one of tiles (tiles/tile_kernels.h), its rows the
// sequences of the batch. Cores of a gang share directions and sequences out.

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/expansion.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/recurrent/cell.h"
#include "driver/soft/tiles/packed_weights.h"
#include "driver/soft/tiles/tile_kernels.h"

namespace rknnd::soft {
namespace {

constexpr size_t kFloat = sizeof(float);

// ---- ONNX's node ------------------------------------------------------------

// X, W, R, B, sequence_lens, initial_h, and of LSTM initial_c and P.
enum OnnxInput : size_t { kX, kW, kR, kB, kP = 7 };

absl::Status CheckShape(const NodeView& node, size_t i, const Shape& wanted) {
  if (!node.has_input(i) || node.shape(i) == wanted) return absl::OkStatus();
  return node.Error(absl::StrCat("input ", i, " is ", ShapeText(node.shape(i)),
                                 ", it must be ", ShapeText(wanted)));
}

// The weights of all directions side by side, a row for each value of the
// input; the first half of the biases.
ValueId InputWeights(const NodeView& node, const Cell& cell, Expansion& to) {
  const Constant& w = *node.constant(kW);
  const int64_t rows = cell.directions * cell.width(), values = w.shape[2];
  std::vector<float> turned(static_cast<size_t>(rows * values));
  const auto* from = w.as<float>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < values; ++v) {
      turned[static_cast<size_t>(v * rows + r)] = from[r * values + v];
    }
  }
  return to.Floats({values, rows}, turned);
}
ValueId InputBias(const NodeView& node, const Cell& cell, Expansion& to) {
  std::vector<float> bias;
  const auto* from = node.constant(kB)->as<float>();
  for (int64_t d = 0; d < cell.directions; ++d) {
    const float* own = from + d * 2 * cell.width();
    bias.insert(bias.end(), own, own + cell.width());
  }
  return to.Floats({cell.directions * cell.width()}, bias);
}

absl::Status ExpandRecurrent(const NodeView& node, Expansion& to) {
  const bool lstm = node.node().type == "LSTM";
  const size_t most_inputs = lstm ? 8 : 6, most_outputs = lstm ? 3 : 2;
  if (node.input_count() < 3 || node.input_count() > most_inputs ||
      node.output_count() > most_outputs || !node.has_input(kX)) {
    return node.Error(absl::StrCat("has ", node.input_count(), " inputs and ",
                                   node.output_count(), " outputs"));
  }
  for (const size_t i : {size_t{kW}, size_t{kR}, size_t{kB}, size_t{kP}}) {
    RKNND_RETURN_IF_ERROR(CheckFloat(node, i));
    if (i <= kR || node.has_input(i)) {
      RKNND_RETURN_IF_ERROR(node.NeedsConstant(i));
    }
  }
  RKNND_ASSIGN_OR_RETURN(Cell cell, ParseCell(node));
  const Shape& recurrent = node.shape(kR);
  cell.hidden = recurrent.size() == 3 ? recurrent[2] : 0;
  if (cell.hidden < 1 || node.Int("hidden_size", cell.hidden) != cell.hidden) {
    return node.Error(absl::StrCat("hidden_size ", node.Int("hidden_size", 0),
                                   ", R is ", ShapeText(recurrent)));
  }
  const Shape x = node.shape(kX);
  RKNND_RETURN_IF_ERROR(
      CheckShape(node, kW, {cell.directions, cell.width(), x[2]}));
  RKNND_RETURN_IF_ERROR(
      CheckShape(node, kB, {cell.directions, 2 * cell.width()}));
  const int64_t rows = cell.directions * cell.width();
  std::vector<ValueId> factors = {
      to.Add("Reshape", {node.node().inputs[kX], to.Ints({x[0] * x[1], x[2]})}),
      InputWeights(node, cell, to)};
  if (node.has_input(kB)) factors.push_back(InputBias(node, cell, to));
  const ValueId product = to.Add("Gemm", std::move(factors));
  std::vector<ValueId> inputs = node.node().inputs;
  inputs[kX] = to.Add("Reshape", {product, to.Ints({x[0], x[1], rows})});
  inputs.erase(inputs.begin() + kW);
  Node& own =
      to.Be(node.node().type, std::move(inputs), node.node().attributes);
  own.domain = "rknnd";
  own.opset = 1;
  // Only outputs that are read; which these are says `makes`.
  std::vector<int64_t> makes;
  own.outputs.clear();
  for (size_t i = 0; i < node.output_count(); ++i) {
    if (node.node().outputs[i] == kNoValue) continue;
    makes.push_back(static_cast<int64_t>(i));
    own.outputs.push_back(node.node().outputs[i]);
  }
  own.attributes["makes"] = std::move(makes);
  return absl::OkStatus();
}

// ---- rknnd's node -----------------------------------------------------------

// The gates, R, B, sequence_lens, initial_h, initial_c, P.
enum OwnInput : size_t {
  kGates,
  kOwnR,
  kOwnB,
  kOwnLengths,
  kOwnH,
  kOwnC,
  kOwnP
};

absl::StatusOr<Cell> ParseOwn(const NodeView& node) {
  if (node.input_count() < 2 || node.input_count() > 7 ||
      !node.has_input(kGates)) {
    return node.Error(absl::StrCat("has ", node.input_count(), " inputs"));
  }
  // Which outputs of ONNX's node its own are, in order.
  const std::vector<int64_t> makes = node.Ints("makes");
  const int64_t outputs = node.node().type == "LSTM" ? 3 : 2;
  for (size_t i = 0; i < makes.size(); ++i) {
    if (makes[i] < (i == 0 ? 0 : makes[i - 1] + 1) || makes[i] >= outputs) {
      return node.Error(absl::StrCat("makes output ", makes[i]));
    }
  }
  if (makes.size() != node.output_count()) {
    return node.Error(absl::StrCat("makes ", makes.size(), " outputs"));
  }
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (i != kOwnLengths) RKNND_RETURN_IF_ERROR(CheckFloat(node, i));
  }
  RKNND_RETURN_IF_ERROR(CheckType(node, kOwnLengths, {DataType::kInt32}));
  RKNND_ASSIGN_OR_RETURN(Cell cell, ParseCell(node));
  RKNND_RETURN_IF_ERROR(node.NeedsConstant(kOwnR));
  if (node.shape(kOwnR).size() != 3 || node.shape(kOwnR)[2] < 1) {
    return node.Error(absl::StrCat("R is ", ShapeText(node.shape(kOwnR))));
  }
  cell.hidden = node.shape(kOwnR)[2];
  const int64_t d = cell.directions, h = cell.hidden;
  const Shape state =
      cell.batch_first ? Shape{cell.batch, d, h} : Shape{d, cell.batch, h};
  const std::pair<size_t, Shape> wanted[] = {{kOwnR, {d, cell.width(), h}},
                                             {kOwnB, {d, 2 * cell.width()}},
                                             {kOwnLengths, {cell.batch}},
                                             {kOwnH, state},
                                             {kOwnC, state},
                                             {kOwnP, {d, 3 * h}}};
  for (const auto& [i, shape] : wanted) {
    RKNND_RETURN_IF_ERROR(CheckShape(node, i, shape));
  }
  if (node.shape(kGates)[2] != d * cell.width()) {
    return node.Error(
        absl::StrCat("its gates are ", ShapeText(node.shape(kGates))));
  }
  return cell;
}

Inference InferOwn(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Cell cell, ParseOwn(node));
  const int64_t d = cell.directions, h = cell.hidden;
  const Shape all = cell.batch_first ? Shape{cell.batch, cell.steps, d, h}
                                     : Shape{cell.steps, d, cell.batch, h};
  const Shape last =
      cell.batch_first ? Shape{cell.batch, d, h} : Shape{d, cell.batch, h};
  std::vector<InferredOutput> outputs;
  for (const int64_t i : node.Ints("makes")) {
    outputs.push_back({DataType::kFloat32, i == 0 ? all : last});
  }
  return Infer(node, std::move(outputs));
}

// R's rows, packed for tiles, and what is added to their products.
struct RecurrentProduct {
  PackedShape packed;
  const std::byte* weights = nullptr;
  const float* bias = nullptr;
  const float* scale = nullptr;
};

class RecurrentKernel final : public Kernel {
 public:
  RecurrentKernel(const KernelRequest& request, const Cell& cell)
      : cell_(cell),
        loops_(FloatKernelsFor(CurrentCpuLevel())),
        bad_length_(request.node.Error(absl::StrCat(
            "a sequence length is not within 0 and ", cell.steps))) {
    work_ = WorkOf(request);
    work_.operations = cell.steps * cell.batch * cell.directions *
                       cell.width() * (cell.hidden + kFunction);
    const NodeView& node = request.node;
    has_lengths_ = node.has_input(kOwnLengths);
    has_h_ = node.has_input(kOwnH);
    has_c_ = node.has_input(kOwnC);
    has_peepholes_ = node.has_input(kOwnP);
    const std::vector<int64_t> makes = node.Ints("makes");
    for (size_t i = 0; i < makes.size(); ++i) {
      output_[static_cast<size_t>(makes[i])] = static_cast<int>(i);
    }
  }

  absl::Status Make(const KernelRequest& request);

  [[nodiscard]] size_t scratch_size() const override {
    return Room(cell_.directions * cell_.batch).bytes;
  }
  [[nodiscard]] bool reads_constant(size_t i) const override {
    return i != kOwnR && i != kOwnB;
  }
  [[nodiscard]] std::string implementation() const override {
    return absl::StrCat("floats ", loops_.name);
  }
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return PartsOf(work_, cell_.directions * cell_.batch, cores);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* scratch) const override;

 private:
  // Where the numbers of some sequences lie in scratch.
  struct Places {
    size_t h = 0, c = 0, gates = 0, given = 0, rows = 0, bytes = 0;
  };
  [[nodiscard]] Places Room(int64_t sequences) const;

  // Some sequences of one direction while they are computed.
  struct Sequences {
    int64_t direction = 0, first = 0, count = 0;
    float* h = nullptr;
    float* c = nullptr;
    float* gates = nullptr;  // of one step
    float* given = nullptr;  // GRU: what its last product reads
    const std::byte** rows = nullptr;
  };
  absl::Status RunSequences(const Sequences& some, Inputs inputs,
                            Outputs outputs) const;
  // gates [columns from `at` on] = states x R' + bias
  void Multiply(const RecurrentProduct& product, const Sequences& some,
                const float* states, int64_t at) const;
  // What a step makes of a sequence's gates; `input`: what X adds to them.
  void StepLstm(const Sequences& some, int64_t i, const float* input,
                const float* peepholes) const;
  void StepGru(const Sequences& some, int64_t i, const float* input) const;
  void StepRnn(const Sequences& some, int64_t i, const float* input) const;
  void Clip(float* numbers, int64_t n) const;
  void Apply(const Sequences& some, size_t function, float* numbers,
             int64_t n) const {
    Clip(numbers, n);
    cell_.functions[static_cast<size_t>(some.direction)][function].Run(numbers,
                                                                       n);
  }

  // Elements of Y, of Y_h and Y_c and initial states.
  [[nodiscard]] int64_t AllAt(int64_t t, int64_t d, int64_t b) const {
    return (cell_.batch_first ? (b * cell_.steps + t) * cell_.directions + d
                              : (t * cell_.directions + d) * cell_.batch + b) *
           cell_.hidden;
  }
  [[nodiscard]] int64_t StateAt(int64_t d, int64_t b) const {
    return (cell_.batch_first ? b * cell_.directions + d
                              : d * cell_.batch + b) *
           cell_.hidden;
  }
  [[nodiscard]] const float* GatesAt(const float* all, int64_t t, int64_t d,
                                     int64_t b) const {
    const int64_t row =
        cell_.batch_first ? b * cell_.steps + t : t * cell_.batch + b;
    return all + (row * cell_.directions + d) * cell_.width();
  }
  [[nodiscard]] float* Output(Outputs outputs, size_t which) const {
    const int i = output_[which];
    return i < 0 ? nullptr : As<float>(outputs[static_cast<size_t>(i)]);
  }
  // Whether a GRU's last gate has a product of its own, after the others.
  [[nodiscard]] bool in_two() const {
    return cell_.kind == CellKind::kGru && !cell_.linear_before_reset;
  }

  const Cell cell_;
  const FloatKernels& loops_;
  const absl::Status bad_length_;
  Work work_;
  bool has_lengths_ = false, has_h_ = false, has_c_ = false,
       has_peepholes_ = false;
  std::array<int, 3> output_ = {-1, -1, -1};
  // Of each direction one, or the two of a GRU.
  std::vector<RecurrentProduct> products_;
};

absl::Status RecurrentKernel::Make(const KernelRequest& request) {
  const NodeView& node = request.node;
  const int64_t width = cell_.width(), hidden = cell_.hidden;
  const auto* r = node.constant(kOwnR)->as<float>();
  if (node.has_input(kOwnB)) RKNND_RETURN_IF_ERROR(node.NeedsConstant(kOwnB));
  const auto* b = node.has_input(kOwnB) ? ConstantFloats(node, kOwnB) : nullptr;
  const int64_t first = in_two() ? 2 * hidden : width;
  for (int64_t d = 0; d < cell_.directions; ++d) {
    for (int64_t row = 0; row < width; row += first) {
      RecurrentProduct product;
      const int64_t rows = std::min(first, width - row);
      product.packed.outputs = rows;
      product.packed.inputs = hidden;
      product.packed.cell = 1;
      RKNND_ASSIGN_OR_RETURN(
          product.weights,
          request.weights.Store(product.packed.bytes(), [&](std::byte* room) {
            PackWeights(product.packed,
                        std::span(r + (d * width + row) * hidden,
                                  static_cast<size_t>(rows * hidden)),
                        room);
          }));
      // Tiles read whole vectors of both.
      const size_t padded = static_cast<size_t>(rows) + kChannelBlock;
      RKNND_ASSIGN_OR_RETURN(
          const std::byte* const kept,
          request.weights.Store(2 * padded * kFloat, [&](std::byte* room) {
            auto* const to = As<float>(room);
            if (b != nullptr) {
              const float* own = b + (2 * d + 1) * width + row;
              std::copy(own, own + rows, to);
            }
            std::fill_n(to + padded, padded, 1.0F);
          }));
      product.bias = As<float>(kept);
      product.scale = product.bias + padded;
      products_.push_back(product);
    }
  }
  return absl::OkStatus();
}

RecurrentKernel::Places RecurrentKernel::Room(int64_t sequences) const {
  Places places;
  const auto take = [&](int64_t numbers, size_t each) {
    const size_t at = places.bytes;
    places.bytes +=
        (static_cast<size_t>(numbers) * each + kWeightSlack + 63) / 64 * 64;
    return at;
  };
  const int64_t states = sequences * cell_.hidden;
  places.h = take(states, kFloat);
  places.c = take(cell_.kind == CellKind::kLstm ? states : 0, kFloat);
  places.gates = take(sequences * cell_.width(), kFloat);
  places.given = take(in_two() ? states : 0, kFloat);
  places.rows = take(sequences, sizeof(const std::byte*));
  return places;
}

void RecurrentKernel::Multiply(const RecurrentProduct& product,
                               const Sequences& some, const float* states,
                               int64_t at) const {
  constexpr ptrdiff_t kNoOffset = 0;
  const PackedShape& packed = product.packed;
  const auto step = static_cast<size_t>(cell_.width()) * kFloat;
  for (int64_t i = 0; i < some.count; ++i) {
    some.rows[i] =
        reinterpret_cast<const std::byte*>(states + i * cell_.hidden);
  }
  TileEpilogue epilogue;
  epilogue.output = TileOutput::kFloat;
  epilogue.low = -std::numeric_limits<float>::infinity();
  epilogue.high = std::numeric_limits<float>::infinity();
  Tile tile;
  tile.pixels = some.rows;
  tile.count = static_cast<size_t>(some.count);
  tile.offsets = &kNoOffset;
  tile.runs = 1;
  tile.cells = static_cast<size_t>(packed.cells());
  tile.output_step = step;
  for (int64_t block = 0; block < packed.blocks(); ++block) {
    StopPoint();
    const int64_t column = block * static_cast<int64_t>(kChannelBlock);
    tile.weights = product.weights + packed.OffsetOf(0, block);
    tile.weight_step = packed.StepOf(block);
    tile.channels = static_cast<size_t>(packed.ChannelsOf(block));
    tile.output = reinterpret_cast<std::byte*>(some.gates + at + column);
    epilogue.bias = product.bias + column;
    epilogue.scale = product.scale + column;
    loops_.tile(tile, epilogue);
  }
}

void RecurrentKernel::Clip(float* numbers, int64_t n) const {
  if (cell_.clip == 0.0F) return;
  for (int64_t i = 0; i < n; ++i) {
    numbers[i] = std::clamp(numbers[i], -cell_.clip, cell_.clip);
  }
}

// Gates i, o, f and the new cell.
void RecurrentKernel::StepLstm(const Sequences& some, int64_t i,
                               const float* input,
                               const float* peepholes) const {
  const int64_t n = cell_.hidden;
  float* const gates = some.gates + i * cell_.width();
  float* const c = some.c + i * n;
  float* const h = some.h + i * n;
  float* const out = gates + n;
  float* const forget = gates + 2 * n;
  float* const cell = gates + 3 * n;
  for (int64_t k = 0; k < 4 * n; ++k) gates[k] += input[k];
  if (peepholes == nullptr) {
    Apply(some, 0, gates, 3 * n);
  } else {
    for (int64_t k = 0; k < n; ++k) gates[k] += peepholes[k] * c[k];
    for (int64_t k = 0; k < n; ++k) forget[k] += peepholes[2 * n + k] * c[k];
    Apply(some, 0, gates, n);
    Apply(some, 0, forget, n);
  }
  if (cell_.input_forget) {
    for (int64_t k = 0; k < n; ++k) forget[k] = 1.0F - gates[k];
  }
  Apply(some, 1, cell, n);
  for (int64_t k = 0; k < n; ++k) c[k] = forget[k] * c[k] + gates[k] * cell[k];
  if (peepholes != nullptr) {
    for (int64_t k = 0; k < n; ++k) out[k] += peepholes[n + k] * c[k];
    Apply(some, 0, out, n);
  }
  std::copy(c, c + n, cell);
  Apply(some, 2, cell, n);
  for (int64_t k = 0; k < n; ++k) h[k] = out[k] * cell[k];
}

// Gates z and r, then the new state, of which `given` or the third gate holds
// what came of the last one.
void RecurrentKernel::StepGru(const Sequences& some, int64_t i,
                              const float* input) const {
  const int64_t n = cell_.hidden;
  const float* const update = some.gates + i * cell_.width();
  const float* const reset = update + n;
  float* const state = some.gates + i * cell_.width() + 2 * n;
  float* const h = some.h + i * n;
  if (cell_.linear_before_reset) {
    for (int64_t k = 0; k < n; ++k) {
      state[k] = input[2 * n + k] + reset[k] * state[k];
    }
  } else {
    for (int64_t k = 0; k < n; ++k) state[k] += input[2 * n + k];
  }
  Apply(some, 1, state, n);
  for (int64_t k = 0; k < n; ++k) {
    h[k] = (1.0F - update[k]) * state[k] + update[k] * h[k];
  }
}

void RecurrentKernel::StepRnn(const Sequences& some, int64_t i,
                              const float* input) const {
  const int64_t n = cell_.hidden;
  float* const gates = some.gates + i * n;
  for (int64_t k = 0; k < n; ++k) gates[k] += input[k];
  Apply(some, 0, gates, n);
  std::copy(gates, gates + n, some.h + i * n);
}

absl::Status RecurrentKernel::RunSequences(const Sequences& some, Inputs inputs,
                                           Outputs outputs) const {
  const int64_t n = cell_.hidden, d = some.direction;
  const bool reversed = d == 1 || cell_.first_reversed;
  const auto* const all_gates = As<float>(inputs[kGates]);
  const float* const peepholes =
      has_peepholes_ ? As<float>(inputs[kOwnP]) + d * 3 * n : nullptr;
  const RecurrentProduct* const products =
      &products_[static_cast<size_t>(d) * (in_two() ? 2 : 1)];
  float* const all = Output(outputs, 0);
  // Clients may change it meanwhile: checked each time that it is read.
  const auto length_of = [&](int64_t b) -> int64_t {
    return has_lengths_ ? Once(As<int32_t>(inputs[kOwnLengths])[b])
                        : cell_.steps;
  };
  for (int64_t i = 0; i < some.count; ++i) {
    const int64_t b = some.first + i;
    const int64_t at = StateAt(d, b);
    const auto begin = [&](bool given, size_t from, float* to) {
      if (given) {
        std::memcpy(to + i * n, As<float>(inputs[from]) + at,
                    static_cast<size_t>(n) * kFloat);
      } else {
        std::fill_n(to + i * n, n, 0.0F);
      }
    };
    begin(has_h_, kOwnH, some.h);
    if (cell_.kind == CellKind::kLstm) begin(has_c_, kOwnC, some.c);
  }
  for (int64_t step = 0; step < cell_.steps; ++step) {
    Multiply(products[0], some, some.h, 0);
    if (in_two()) {
      // z and r are needed before the last product.
      for (int64_t i = 0; i < some.count; ++i) {
        const int64_t length = length_of(some.first + i);
        if (length < 0 || length > cell_.steps) return bad_length_;
        const int64_t t =
            reversed ? std::max<int64_t>(length - 1 - step, 0) : step;
        const float* const input = GatesAt(all_gates, t, d, some.first + i);
        float* const gates = some.gates + i * cell_.width();
        for (int64_t k = 0; k < 2 * n; ++k) gates[k] += input[k];
        Apply(some, 0, gates, 2 * n);
        for (int64_t k = 0; k < n; ++k) {
          some.given[i * n + k] = gates[n + k] * some.h[i * n + k];
        }
      }
      Multiply(products[1], some, some.given, 2 * n);
    }
    for (int64_t i = 0; i < some.count; ++i) {
      const int64_t b = some.first + i;
      const int64_t length = length_of(b);
      if (length < 0 || length > cell_.steps) return bad_length_;
      if (step >= length) {
        if (all != nullptr) std::fill_n(all + AllAt(step, d, b), n, 0.0F);
        continue;
      }
      const int64_t t = reversed ? length - 1 - step : step;
      const float* const input = GatesAt(all_gates, t, d, b);
      switch (cell_.kind) {
        case CellKind::kLstm:
          StepLstm(some, i, input, peepholes);
          break;
        case CellKind::kGru:
          if (cell_.linear_before_reset) {
            float* const gates = some.gates + i * cell_.width();
            for (int64_t k = 0; k < 2 * n; ++k) gates[k] += input[k];
            Apply(some, 0, gates, 2 * n);
          }
          StepGru(some, i, input);
          break;
        case CellKind::kRnn:
          StepRnn(some, i, input);
          break;
      }
      if (all != nullptr) {
        std::memcpy(all + AllAt(t, d, b), some.h + i * n,
                    static_cast<size_t>(n) * kFloat);
      }
    }
  }
  for (int64_t i = 0; i < some.count; ++i) {
    const int64_t at = StateAt(d, some.first + i);
    const auto end = [&](size_t which, const float* from) {
      float* const to = Output(outputs, which);
      if (to == nullptr) return;
      std::memcpy(to + at, from + i * n, static_cast<size_t>(n) * kFloat);
    };
    end(1, some.h);
    end(2, some.c);
  }
  return absl::OkStatus();
}

absl::Status RecurrentKernel::RunPart(Part part, Inputs inputs, Outputs outputs,
                                      std::byte* scratch) const {
  const Range share = ShareOf(part, cell_.directions * cell_.batch);
  for (int64_t at = share.begin; at < share.end;) {
    Sequences some;
    some.direction = at / cell_.batch;
    some.first = at % cell_.batch;
    some.count = std::min(share.end - at, cell_.batch - some.first);
    const Places places = Room(some.count);
    some.h = As<float>(scratch + places.h);
    some.c = As<float>(scratch + places.c);
    some.gates = As<float>(scratch + places.gates);
    some.given = As<float>(scratch + places.given);
    some.rows = reinterpret_cast<const std::byte**>(scratch + places.rows);
    RKNND_RETURN_IF_ERROR(RunSequences(some, inputs, outputs));
    at += some.count;
  }
  return absl::OkStatus();
}

MadeKernel MakeOwn(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Cell cell, ParseOwn(request.node));
  auto kernel = std::make_unique<RecurrentKernel>(request, cell);
  RKNND_RETURN_IF_ERROR(kernel->Make(request));
  return kernel;
}

}  // namespace

void RegisterRecurrent(OperatorTable& table) {
  for (const char* type : {"LSTM", "GRU", "RNN"}) {
    table.Add({.type = type, .expand = ExpandRecurrent});
    table.Add(
        {.domain = "rknnd", .type = type, .infer = InferOwn, .make = MakeOwn});
  }
}

}  // namespace rknnd::soft
