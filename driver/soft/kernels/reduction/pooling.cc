// MaxPool and AveragePool. oneDNN where it has a kernel made for this CPU, of
// the same meaning; our own loops for the rest: dilations, indices, unusual
// padding.

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/convolution/window.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/onednn.h"

namespace rknnd::soft {
namespace {

struct Params {
  Window window;
  bool maximum = false;
  bool counts_padding = false;
  bool column_major_indices = false;
  Shape output;
};

absl::StatusOr<Params> Parse(const NodeView& node) {
  const bool maximum = node.node().type == "MaxPool";
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1, maximum ? size_t{2} : 1}));
  if (maximum) {
    RKNND_RETURN_IF_ERROR(CheckType(
        node, 0, {DataType::kFloat32, DataType::kInt8, DataType::kUint8}));
  } else {
    RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  }
  Params params;
  params.maximum = maximum;
  RKNND_ASSIGN_OR_RETURN(params.window, ParseWindow(node, node.shape(0), {}));
  params.counts_padding = node.Int("count_include_pad", 0) != 0;
  params.column_major_indices = node.Int("storage_order", 0) != 0;
  const Shape& input = node.shape(0);
  params.output = {input[0], input[1]};
  params.output.insert(params.output.end(), params.window.output.begin(),
                       params.window.output.end());
  return params;
}

Inference InferPool(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  return Infer(
      node, {{node.type(0), params.output}, {DataType::kInt64, params.output}});
}

bool HasIndices(const NodeView& node) {
  return node.output_count() > 1 && node.node().outputs[1] != kNoValue;
}

bool MayBlock(const NodeView& node, size_t, int) {
  return IsBlockable(node, 0) && !HasIndices(node);
}

bool MayLieLast(const NodeView& node, size_t) {
  return SizeOf(node.type(0)) == 1 && !HasIndices(node);
}

// Whether oneDNN means the same. It divides by the whole kernel where padding
// counts, also past the padding of ceil_mode, and its kernels expect each
// position to see some of the input.
bool SuitsOneDnn(const NodeView& node, const Params& params) {
  const Window& window = params.window;
  if (HasIndices(node)) return false;
  if (!params.maximum && node.type(0) != DataType::kFloat32) return false;
  if (!params.maximum && params.counts_padding && window.ceil_mode)
    return false;
  for (size_t d = 0; d < window.rank(); ++d) {
    const int64_t last = (window.output[d] - 1) * window.strides[d];
    if (window.dilations[d] != 1 || window.pads_begin[d] >= window.kernel[d] ||
        window.pads_end[d] >= window.kernel[d] ||
        last >= node.shape(0)[2 + d] + window.pads_begin[d]) {
      return false;
    }
  }
  return true;
}

int64_t Positions(const Window& window) {
  return ProductOf(window.kernel, 0, window.kernel.size());
}

// In pieces of whole blocks of channels, where these lie one behind the other.
class DnnlPool final : public Kernel {
 public:
  absl::Status Make(const KernelRequest& request, const Params& params) {
    work_ = WorkOf(request, Positions(params.window));
    const TensorSpec& input = request.inputs[0];
    const int64_t block = input.placement.block;
    const int64_t blocks = (input.shape[1] + block - 1) / block;
    constexpr int64_t kMostPieces = 6;  // even shares of two cores and of three
    const bool cut =
        input.shape[0] == 1 && blocks > 1 && PartsOf(work_, blocks, 2) > 1;
    const auto count =
        static_cast<uint32_t>(cut ? std::min(blocks, kMostPieces) : 1);
    if (work_.operations / count > MostOperations()) {
      return absl::UnimplementedError("our loops can be stopped");
    }
    for (uint32_t i = 0; i < count; ++i) {
      const Range share = ShareOf({i, count}, input.shape[1], block);
      TensorSpec from = input, to = request.outputs[0];
      from.shape[1] = to.shape[1] = share.size();
      const auto at = [&](const TensorSpec& whole) {
        return whole.bytes() / static_cast<uint64_t>(blocks) *
               static_cast<uint64_t>(share.begin / block);
      };
      pieces_.push_back({at(input), at(request.outputs[0]), nullptr});
      const bool is_new = i == 0 || share.size() != sizes_.back();
      sizes_.push_back(share.size());
      if (is_new) {
        RKNND_RETURN_IF_ERROR(AddCall(from, to, params));
      }
      pieces_.back().call = calls_.back().get();
    }
    return absl::OkStatus();
  }

  [[nodiscard]] size_t scratch_size() const override { return scratch_; }
  [[nodiscard]] std::string implementation() const override {
    return implementation_;
  }
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return PartsOf(work_, static_cast<int64_t>(pieces_.size()), cores);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* scratch) const override {
    const Range share = ShareOf(part, static_cast<int64_t>(pieces_.size()));
    for (int64_t i = share.begin; i < share.end; ++i) {
      StopPoint();
      const Piece& piece = pieces_[static_cast<size_t>(i)];
      void* const data[] = {const_cast<std::byte*>(inputs[0] + piece.input_at),
                            outputs[0] + piece.output_at, scratch};
      RKNND_RETURN_IF_ERROR(piece.call->Run(data));
    }
    return absl::OkStatus();
  }

 private:
  struct Piece {
    uint64_t input_at = 0, output_at = 0;  // bytes
    const DnnlCall* call = nullptr;
  };

  absl::Status AddCall(const TensorSpec& input_spec,
                       const TensorSpec& output_spec, const Params& params) {
    using dnnl::algorithm;
    using Primitive = dnnl::pooling_forward;
    using Dims = dnnl::memory::dims;
    const Window& window = params.window;
    Dims end;
    for (size_t d = 0; d < window.rank(); ++d) {
      // What the last position of ceil_mode reaches beyond the padding.
      end.push_back(std::max(window.pads_end[d],
                             (window.output[d] - 1) * window.strides[d] +
                                 window.kernel[d] - input_spec.shape[2 + d] -
                                 window.pads_begin[d]));
    }
    const auto from = [](const Shape& shape) {
      return Dims(shape.begin(), shape.end());
    };
    const auto input = Describe(input_spec);
    const auto output = Describe(output_spec);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const Primitive::primitive_desc chosen(
        Primitive::desc(dnnl::prop_kind::forward_inference,
                        params.maximum ? algorithm::pooling_max
                        : params.counts_padding
                            ? algorithm::pooling_avg_include_padding
                            : algorithm::pooling_avg_exclude_padding,
                        input, output, from(window.strides),
                        from(window.kernel), from(window.pads_begin), end),
        attributes, CpuEngine());
    // Its kernels for AVX and AVX2 are slower than our loops by a multiple.
    const std::string_view name = chosen.impl_info_str();
    if (!IsGenerated(name) || name == "jit:avx" || name == "jit:avx2") {
      return absl::UnimplementedError("our loops are quicker");
    }
    implementation_ = ImplementationOf(chosen);
    scratch_ = std::max(scratch_, chosen.scratchpad_desc().get_size());
    calls_.push_back(std::make_unique<DnnlCall>(
        Primitive(chosen),
        std::vector<DnnlArgument>{
            {DNNL_ARG_SRC, input},
            {DNNL_ARG_DST, output},
            {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()}}));
    return absl::OkStatus();
  }

  Work work_;
  std::vector<int64_t> sizes_;  // channels of each piece
  std::vector<Piece> pieces_;
  std::vector<std::unique_ptr<DnnlCall>> calls_;
  std::string implementation_;
  size_t scratch_ = 0;
};

// Three spatial axes, of which the first may be 1.
struct PlainPool {
  Params params;
  int64_t planes = 0;  // batch x channels, or blocks of channels
  int64_t lanes = 1;   // channels of a block
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1},
      stride{1, 1, 1}, dilation{1, 1, 1}, begin{0, 0, 0}, end{0, 0, 0};

  // Positions k of the kernel with low <= origin + k * dilation < high.
  [[nodiscard]] std::pair<int64_t, int64_t> Inside(size_t d, int64_t origin,
                                                   int64_t low,
                                                   int64_t high) const {
    const int64_t step = dilation[d];
    const int64_t first = origin >= low ? 0 : (low - origin + step - 1) / step;
    const int64_t last = origin >= high ? 0 : (high - origin + step - 1) / step;
    return {std::min(first, kernel[d]), std::min(last, kernel[d])};
  }
  // How many positions of an average's kernel count at `origin`.
  [[nodiscard]] int64_t Counted(size_t d, int64_t origin) const {
    const auto range = params.counts_padding
                           ? Inside(d, origin, -begin[d], in[d] + end[d])
                           : Inside(d, origin, 0, in[d]);
    return range.second - range.first;
  }
  // Elements x of an output row for which position `c` of the kernel is inside.
  [[nodiscard]] Range Columns(int64_t c) const {
    const int64_t shift = c * dilation[2] - begin[2];
    const int64_t s = stride[2];
    const int64_t first = shift >= 0 ? 0 : (-shift + s - 1) / s;
    const int64_t last = (in[2] - shift + s - 1) / s;
    return {std::min(first, out[2]), std::clamp<int64_t>(last, 0, out[2])};
  }

  [[nodiscard]] int64_t rows() const { return planes * out[0] * out[1]; }
  // Some rows of the output.
  template <class T>
  void Run(const T* input, Range rows, T* output) const;
  template <class T>
  void RunWithIndices(const T* input, Range rows, T* output,
                      int64_t* indices) const;

 private:
  template <class T, class F>
  void Combine(const T* row, T* to, F&& f) const;
  template <int kLanes, class T, class F>
  void CombinePixels(const T* row, int64_t count, T* to, const F& f) const;
};

// to = f(to, row), for each position of the kernel along the row: runs of
// memory, which compilers make vectors of.
template <class T, class F>
void PlainPool::Combine(const T* row, T* to, F&& f) const {
  StopPoint();
  for (int64_t c = 0; c < kernel[2]; ++c) {
    const Range columns = Columns(c);
    const int64_t from = columns.begin * stride[2] + c * dilation[2] - begin[2];
    const T* in_row = row + from * lanes;
    T* out_row = to + columns.begin * lanes;
    if (stride[2] == 1) {
      for (int64_t i = 0; i < columns.size() * lanes; ++i) {
        out_row[i] = f(out_row[i], in_row[i]);
      }
    } else if (lanes == 1) {
      for (int64_t x = 0; x < columns.size(); ++x) {
        out_row[x] = f(out_row[x], in_row[x * stride[2]]);
      }
    } else if (lanes == 8) {
      CombinePixels<8>(in_row, columns.size(), out_row, f);
    } else if (lanes == 16) {
      CombinePixels<16>(in_row, columns.size(), out_row, f);
    } else {
      CombinePixels<0>(in_row, columns.size(), out_row, f);
    }
  }
}

// Channels of a block side by side: as many as a constant says, or `lanes`.
template <int kLanes, class T, class F>
void PlainPool::CombinePixels(const T* row, int64_t count, T* to,
                              const F& f) const {
  const int64_t each = kLanes != 0 ? kLanes : lanes;
  const int64_t step = stride[2] * each;
  for (int64_t x = 0; x < count; ++x, row += step, to += each) {
    for (int64_t l = 0; l < each; ++l) to[l] = f(to[l], row[l]);
  }
}

template <class T>
void PlainPool::Run(const T* input, Range rows, T* output) const {
  constexpr bool kFloat = std::is_floating_point_v<T>;
  constexpr T kLeast = kFloat ? -std::numeric_limits<T>::infinity()
                              : std::numeric_limits<T>::lowest();
  const int64_t size = in[0] * in[1] * in[2];
  output += rows.begin * out[2] * lanes;
  for (int64_t n = rows.begin; n < rows.end; ++n, output += out[2] * lanes) {
    const int64_t y = n % out[1], z = n / out[1] % out[0];
    const int64_t plane = n / out[1] / out[0];
    std::fill_n(output, out[2] * lanes, params.maximum ? kLeast : T{});
    const int64_t origin_z = z * stride[0] - begin[0];
    const int64_t origin_y = y * stride[1] - begin[1];
    const auto depths = Inside(0, origin_z, 0, in[0]);
    const auto heights = Inside(1, origin_y, 0, in[1]);
    for (int64_t a = depths.first; a < depths.second; ++a) {
      for (int64_t b = heights.first; b < heights.second; ++b) {
        const int64_t at =
            (origin_z + a * dilation[0]) * in[1] + origin_y + b * dilation[1];
        const T* const row = input + (plane * size + at * in[2]) * lanes;
        if (params.maximum) {
          Combine(row, output, [](T most, T x) { return x > most ? x : most; });
        } else if constexpr (kFloat) {
          Combine(row, output, [](T sum, T x) { return sum + x; });
        }
      }
    }
    if (params.maximum) continue;
    const int64_t counted = Counted(0, origin_z) * Counted(1, origin_y);
    for (int64_t x = 0; x < out[2]; ++x) {
      const int64_t count = counted * Counted(2, x * stride[2] - begin[2]);
      for (int64_t l = 0; l < lanes; ++l) {
        T& sum = output[x * lanes + l];
        sum = count > 0 ? static_cast<T>(sum / static_cast<float>(count)) : T{};
      }
    }
  }
}

// Where each largest value lies. Such tensors are dense.
template <class T>
void PlainPool::RunWithIndices(const T* input, Range rows, T* output,
                               int64_t* indices) const {
  const int64_t size = in[0] * in[1] * in[2];
  for (int64_t n = rows.begin * out[2]; n < rows.end * out[2]; ++n) {
    const int64_t plane = n / (out[0] * out[1] * out[2]);
    const std::array<int64_t, 3> origin = {
        n / (out[1] * out[2]) % out[0] * stride[0] - begin[0],
        n / out[2] % out[1] * stride[1] - begin[1],
        n % out[2] * stride[2] - begin[2]};
    std::array<std::pair<int64_t, int64_t>, 3> range;
    for (size_t d = 0; d < 3; ++d) range[d] = Inside(d, origin[d], 0, in[d]);
    T best = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                         : std::numeric_limits<T>::lowest();
    int64_t best_at = 0;
    for (int64_t a = range[0].first; a < range[0].second; ++a) {
      for (int64_t b = range[1].first; b < range[1].second; ++b) {
        for (int64_t c = range[2].first; c < range[2].second; ++c) {
          const int64_t at = ((origin[0] + a * dilation[0]) * in[1] +
                              origin[1] + b * dilation[1]) *
                                 in[2] +
                             origin[2] + c * dilation[2];
          const T value = input[plane * size + at];
          if (value > best) {
            best = value;
            best_at = at;
          }
        }
      }
    }
    output[n] = best;
    if (params.column_major_indices) {
      const int64_t row = best_at / in[2];
      best_at = best_at % in[2] * (in[0] * in[1]) + row;
    }
    indices[n] = plane * size + best_at;
  }
}

MadeKernel MakePlainPool(const KernelRequest& request, Params params) {
  PlainPool pool;
  const Window& window = params.window;
  const Shape input = PhysicalShape(request.inputs[0]);
  pool.planes = input[0] * input[1];
  pool.lanes = request.inputs[0].placement.block;
  const size_t ahead = 3 - window.rank();
  for (size_t d = 0; d < window.rank(); ++d) {
    pool.in[ahead + d] = input[2 + d];
    pool.out[ahead + d] = window.output[d];
    pool.kernel[ahead + d] = window.kernel[d];
    pool.stride[ahead + d] = window.strides[d];
    pool.dilation[ahead + d] = window.dilations[d];
    pool.begin[ahead + d] = window.pads_begin[d];
    pool.end[ahead + d] = window.pads_end[d];
  }
  const Work work = WorkOf(request, Positions(window));
  pool.params = std::move(params);
  const TensorSpec& spec = request.outputs[0];
  return MakeSharedKernel(
      work, pool.rows(),
      [pool, spec](Inputs inputs, Outputs outputs, Part part) {
        auto* indices = outputs.size() > 1 ? As<int64_t>(outputs[1]) : nullptr;
        const Range rows = ShareOf(part, pool.rows());
        const auto run = [&](const auto* in, auto* out) {
          indices == nullptr ? pool.Run(in, rows, out)
                             : pool.RunWithIndices(in, rows, out, indices);
        };
        if (spec.type == DataType::kInt8) {
          run(As<int8_t>(inputs[0]), As<int8_t>(outputs[0]));
        } else if (spec.type == DataType::kUint8) {
          run(As<uint8_t>(inputs[0]), As<uint8_t>(outputs[0]));
        } else {
          run(As<float>(inputs[0]), As<float>(outputs[0]));
          const int64_t row = pool.out[2] * pool.lanes;
          ClearPadding(spec, As<float>(outputs[0]),
                       {rows.begin * row, rows.end * row});
        }
      });
}

MadeKernel MakePool(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(Params params, Parse(request.node));
  if (request.inputs[0].placement != request.outputs[0].placement) {
    return request.node.Error("its output is placed unlike its input");
  }
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  if (SuitsOneDnn(request.node, params)) {
    auto kernel = std::make_unique<DnnlPool>();
    const absl::Status made =
        GuardDnnl(request.node, [&] { return kernel->Make(request, params); });
    if (made.ok()) return kernel;
  }
  return MakePlainPool(request, std::move(params));
}

}  // namespace

void RegisterPooling(OperatorTable& table) {
  for (const char* type : {"MaxPool", "AveragePool"}) {
    table.Add({.type = type,
               .placement = PlacementRule::kElementwise,
               .infer = InferPool,
               .make = MakePool,
               .may_block = MayBlock,
               .may_channels_last = MayLieLast});
  }
}

}  // namespace rknnd::soft
