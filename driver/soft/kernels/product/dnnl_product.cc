// See dnnl_product.h.

#include "driver/soft/kernels/product/dnnl_product.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/onednn.h"

namespace rknnd::soft {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Primitive = dnnl::matmul;
constexpr auto kFloat = dnnl::memory::data_type::f32;

// oneDNN packs columns by up to 64: of a narrow matrix most is zeros then, and
// its kernels are no slower on the matrix as it came.
bool PaddedOut(const dnnl::memory::desc& packed,
               const dnnl::memory::desc& given) {
  return packed.get_size() > given.get_size() + given.get_size() / 4;
}

// From row to row of a right-hand matrix with so many columns. Its rows are
// read a few columns at a time: a KiB apart, they would share a few lines of a
// cache.
int64_t RowStep(int64_t columns) {
  constexpr int64_t kSameLines = 1024 / sizeof(float);
  constexpr int64_t kLine = 64 / sizeof(float);
  return columns % kSameLines == 0 ? columns + kLine : columns;
}

// Matrices of these sizes that lie so in memory; with a stride of 0 there is
// one for all of an axis.
Desc Matrices(const Shape& batch, const Shape& batch_strides, int64_t rows,
              int64_t columns, int64_t row, int64_t column) {
  Dims dims, strides;
  for (size_t d = 0; d < batch.size(); ++d) {
    const bool once = batch_strides[d] == 0;
    dims.push_back(once ? 1 : batch[d]);
    strides.push_back(once ? rows * columns : batch_strides[d]);
  }
  dims.insert(dims.end(), {rows, columns});
  strides.insert(strides.end(), {row, column});
  return {dims, kFloat, strides};
}

// In pieces that are the same for one core and for any gang: oneDNN sums in
// another order where a product has other sizes.
class DnnlProduct final : public Kernel {
 public:
  DnnlProduct(const KernelRequest& request, const Product& product)
      : product_(product),
        finish_(request, product),
        work_(WorkOf(request, product)) {}

  absl::Status Make(const KernelRequest& request, bool has_own);

  [[nodiscard]] size_t scratch_size() const override { return scratch_; }
  [[nodiscard]] bool reads_constant(size_t i) const override {
    return !(i == 1 && is_packed_) && !(i == 2 && bias_ != nullptr);
  }
  [[nodiscard]] std::string implementation() const override {
    return implementation_;
  }
  [[nodiscard]] bool is_reference() const override {
    return !IsGenerated(implementation_);
  }
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return PartsOf(work_, static_cast<int64_t>(pieces_.size()), cores);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* scratch) const override;

 private:
  // What computes pieces of one size.
  struct Call {
    Desc a, b, output;  // b as the model has it
    Primitive::primitive_desc chosen;
    std::unique_ptr<DnnlCall> call;
  };
  struct Piece {
    ProductPiece cut;
    size_t call = 0;
    const std::byte* weights = nullptr;  // packed; null: given with each run
    const std::byte* bias = nullptr;
  };

  // One value per column, known now: oneDNN adds it for nothing.
  absl::Status TakeBias(const KernelRequest& request);
  // The pieces and what computes them; false: there are none, or oneDNN has
  // another kernel for some than the wanted one.
  bool Choose(const KernelRequest& request, const std::string& wanted,
              std::vector<ProductPiece> cuts);
  void ChoosePieces(const KernelRequest& request, const std::string& wanted);
  [[nodiscard]] Call ChooseCall(const KernelRequest& request,
                                const ProductPiece& piece) const;
  absl::Status Pack(const KernelRequest& request);

  const Product product_;
  ProductFinish finish_;
  const Work work_;
  std::vector<Call> calls_;
  std::vector<Piece> pieces_;
  bool is_packed_ = false;
  const std::byte* bias_ = nullptr;
  std::string implementation_;
  size_t scratch_ = 0;
};

absl::Status DnnlProduct::TakeBias(const KernelRequest& request) {
  const NodeView& node = request.node;
  const float* c = ConstantFloats(node, 2);
  if (node.node().type != "Gemm" || c == nullptr || product_.n == 0 ||
      (product_.alpha != 1.0F && node.constant(1) == nullptr)) {
    return absl::OkStatus();
  }
  const Shape& shape = node.shape(2);
  const int64_t count = ProductOf(shape, 0, shape.size());
  const bool columns = !shape.empty() && shape.back() == count;
  if (count != 1 && !columns) return absl::OkStatus();
  RKNND_ASSIGN_OR_RETURN(
      bias_, request.weights.Store(
                 static_cast<size_t>(product_.n) * sizeof(float),
                 [&](std::byte* room) {
                   for (int64_t i = 0; i < product_.n; ++i) {
                     As<float>(room)[i] = product_.beta * c[count == 1 ? 0 : i];
                   }
                 }));
  finish_.DropC();
  return absl::OkStatus();
}

void DnnlProduct::ChoosePieces(const KernelRequest& request,
                               const std::string& wanted) {
  if (Choose(request, wanted, CutLongProduct(product_))) return;
  // Not so many that a piece is too little for a core.
  const int64_t most = PartsOf(work_, kMostPieces, kMostPieces);
  for (const int64_t count : {kMostPieces, int64_t{2}, int64_t{1}}) {
    for (const Within within : {Within::kColumns, Within::kRows}) {
      if (count <= most &&
          Choose(request, wanted, CutProduct(product_, count, within))) {
        return;
      }
    }
  }
}

DnnlProduct::Call DnnlProduct::ChooseCall(const KernelRequest& request,
                                          const ProductPiece& piece) const {
  const Product& p = product_;
  Shape to_batch = DenseStrides(p.batch);
  for (int64_t& stride : to_batch) stride *= p.m * p.n;
  Call call;
  call.a = Matrices(piece.batch, p.a_batch, piece.m, p.k, p.a_row, p.a_column);
  call.b = Matrices(piece.batch, p.b_batch, p.k, piece.n, p.b_row, p.b_column);
  // A single row is dense: some kernels write to nothing else.
  call.output = Matrices(piece.batch, to_batch, piece.m, piece.n,
                         piece.m == 1 ? piece.n : p.n, 1);
  Desc bias;
  if (bias_ != nullptr) {
    Dims dims(piece.batch.size() + 2, 1);
    dims.back() = piece.n;
    bias = DescribeDense(dims);
  }
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto choose = [&](const Desc& right) {
    return Primitive::primitive_desc(
        bias_ == nullptr ? Primitive::desc(call.a, right, call.output)
                         : Primitive::desc(call.a, right, bias, call.output),
        attributes, CpuEngine(), /*allow_empty=*/true);
  };
  if (request.node.constant(1) == nullptr) {
    call.chosen = choose(call.b);
    return call;
  }
  call.chosen =
      choose(Desc(call.b.dims(), kFloat, dnnl::memory::format_tag::any));
  if (!call.chosen) return call;
  // As the model has it, without what lies between the columns of a piece.
  const bool turned = p.b_column != 1;
  const int64_t step = turned ? p.k : RowStep(piece.n);
  const int64_t size = turned ? piece.n : p.k;
  Shape b_batch = p.b_batch;
  for (int64_t& stride : b_batch) stride = stride / (p.k * p.n) * step * size;
  const Desc given = Matrices(piece.batch, b_batch, p.k, piece.n,
                              turned ? 1 : step, turned ? step : 1);
  const std::string kernel = call.chosen.impl_info_str();
  const bool as_rows = kernel.find("gemm") != std::string::npos && !turned;
  if (as_rows || PaddedOut(call.chosen.weights_desc(), given)) {
    auto as_given = choose(given);
    if (as_given && as_given.impl_info_str() == kernel) {
      call.chosen = std::move(as_given);
    }
  }
  return call;
}

bool DnnlProduct::Choose(const KernelRequest& request,
                         const std::string& wanted,
                         std::vector<ProductPiece> cuts) {
  calls_.clear();
  pieces_.clear();
  for (ProductPiece& cut : cuts) {
    const auto alike = std::find_if(
        pieces_.begin(), pieces_.end(),
        [&](const Piece& piece) { return piece.cut.has_sizes_of(cut); });
    size_t call = calls_.size();
    if (alike != pieces_.end()) {
      call = alike->call;
    } else {
      calls_.push_back(ChooseCall(request, cut));
      const auto& chosen = calls_.back().chosen;
      if (!chosen || chosen.impl_info_str() != wanted) return false;
    }
    pieces_.push_back({std::move(cut), call});
  }
  return !pieces_.empty();
}

absl::Status DnnlProduct::Pack(const KernelRequest& request) {
  struct Packed {
    Desc desc;
    int64_t at = 0;
    const std::byte* weights = nullptr;
  };
  const Constant& weights = *request.node.constant(1);
  is_packed_ = true;
  std::vector<Packed> done;  // pieces of other rows share what is theirs
  for (Piece& piece : pieces_) {
    const Call& call = calls_[piece.call];
    const Desc packed = call.chosen.weights_desc();
    const int64_t at = piece.cut.b_at;
    const auto same =
        std::find_if(done.begin(), done.end(), [&](const Packed& other) {
          return other.at == at && other.desc == packed;
        });
    if (same != done.end()) {
      piece.weights = same->weights;
      continue;
    }
    // A compiled model brings what is stored here, and not what it is made of.
    RKNND_ASSIGN_OR_RETURN(
        piece.weights,
        request.weights.Store(packed.get_size(), [&](std::byte* room) {
          std::vector<float> scaled;
          const auto* from = weights.as<float>();
          if (product_.alpha != 1.0F) {
            scaled.assign(from, from + weights.elements());
            for (float& weight : scaled) weight *= product_.alpha;
            from = scaled.data();
          }
          ReorderNow(call.b, from + at, packed, room);
        }));
    done.push_back({packed, at, piece.weights});
  }
  finish_.DropAlpha();
  return absl::OkStatus();
}

absl::Status DnnlProduct::Make(const KernelRequest& request, bool has_own) {
  RKNND_RETURN_IF_ERROR(TakeBias(request));
  const auto whole = CutProduct(product_, 1, Within::kRows);
  const auto chosen = ChooseCall(request, whole.front()).chosen;
  if (has_own && (!chosen || !IsGenerated(chosen.impl_info_str()))) {
    return absl::UnimplementedError("our own kernel is quicker");
  }
  if (!chosen) return request.node.Error("oneDNN has no kernel for it");
  ChoosePieces(request, chosen.impl_info_str());
  if (request.node.constant(1) != nullptr) {
    RKNND_RETURN_IF_ERROR(Pack(request));
  }
  implementation_ = ImplementationOf(chosen);
  for (Piece& piece : pieces_) {
    if (bias_ == nullptr) continue;
    piece.bias =
        bias_ + piece.cut.first_column * static_cast<int64_t>(sizeof(float));
  }
  for (Call& call : calls_) {
    const auto scratch = call.chosen.scratchpad_desc();
    scratch_ = std::max(scratch_, scratch.get_size());
    std::vector<DnnlArgument> arguments = {
        {DNNL_ARG_SRC, call.a},
        {DNNL_ARG_DST, call.output},
        {DNNL_ARG_SCRATCHPAD, scratch},
        {DNNL_ARG_WEIGHTS, call.chosen.weights_desc()}};
    if (bias_ != nullptr) {
      arguments.push_back({DNNL_ARG_BIAS, call.chosen.bias_desc()});
    }
    call.call = std::make_unique<DnnlCall>(Primitive(call.chosen), arguments);
  }
  return absl::OkStatus();
}

absl::Status DnnlProduct::RunPart(Part part, Inputs inputs, Outputs outputs,
                                  std::byte* scratch) const {
  const Range share = ShareOf(part, static_cast<int64_t>(pieces_.size()));
  for (int64_t i = share.begin; i < share.end; ++i) {
    StopPoint();
    const Piece& piece = pieces_[static_cast<size_t>(i)];
    const ProductPiece& cut = piece.cut;
    auto* const output = As<float>(outputs[0]);
    const auto* right = piece.weights != nullptr
                            ? As<float>(piece.weights)
                            : As<float>(inputs[1]) + cut.b_at;
    void* const data[] = {const_cast<float*>(As<float>(inputs[0]) + cut.a_at),
                          output + cut.output_at, scratch,
                          const_cast<float*>(right),
                          const_cast<std::byte*>(piece.bias)};
    RKNND_RETURN_IF_ERROR(calls_[piece.call].call->Run(
        std::span(data, piece.bias == nullptr ? 4 : 5)));
    for (int64_t run = 0; run < cut.runs; ++run) {
      const int64_t at = cut.output_at + run * cut.run_step;
      finish_.Run(inputs, output, {at, at + cut.run});
    }
  }
  return absl::OkStatus();
}

}  // namespace

MadeKernel MakeDnnlProduct(const KernelRequest& request, const Product& product,
                           bool has_own) {
  auto kernel = std::make_unique<DnnlProduct>(request, product);
  RKNND_RETURN_IF_ERROR(
      GuardDnnl(request.node, [&] { return kernel->Make(request, has_own); }));
  return kernel;
}

}  // namespace rknnd::soft
