// Pad: constant, reflect, edge and wrap; negative amounts cut.

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

enum class Mode { kConstant, kReflect, kEdge, kWrap };

// The kernel keeps a table as long as each axis.
constexpr int64_t kMaxSize = 1 << 24;

struct Params {
  Mode mode = Mode::kConstant;
  Shape begin, output;
};

absl::StatusOr<Params> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 4}));
  const Shape& shape = node.shape(0);
  const size_t rank = shape.size();
  // Version 1 had another name for the attribute; inputs from 11 on.
  std::vector<int64_t> pads =
      node.Ints(node.Has("paddings") ? "paddings" : "pads");
  std::vector<size_t> axes;
  for (size_t d = 0; d < rank; ++d) axes.push_back(d);
  if (node.has_input(1)) {
    RKNND_ASSIGN_OR_RETURN(pads, node.ConstantInts(1));
  }
  if (node.has_input(3)) {
    RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> given,
                           node.ConstantInts(3));
    RKNND_ASSIGN_OR_RETURN(axes, CheckAxes(node, given, rank));
  }
  if (pads.size() != 2 * axes.size()) {
    return node.Error(absl::StrCat("has ", pads.size(), " amounts for ",
                                   axes.size(), " axes"));
  }
  if (node.has_input(2) &&
      (node.type(2) != node.type(0) ||
       ProductOf(node.shape(2), 0, node.shape(2).size()) != 1)) {
    return node.Error("pads with something that is no single element");
  }
  Params params;
  const std::string mode = node.String("mode", "constant");
  if (mode == "reflect") {
    params.mode = Mode::kReflect;
  } else if (mode == "edge") {
    params.mode = Mode::kEdge;
  } else if (mode == "wrap") {
    params.mode = Mode::kWrap;
  } else if (mode != "constant") {
    return node.Error(absl::StrCat("mode is '", mode, "'"));
  }
  params.begin = Shape(rank, 0);
  params.output = shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t begin = pads[i], end = pads[axes.size() + i];
    int64_t& size = params.output[axes[i]];
    if (begin < -size || __builtin_add_overflow(size, begin, &size) ||
        __builtin_add_overflow(size, end, &size) || size < 0 ||
        size > kMaxSize) {
      return node.Error(absl::StrCat("pads axis ", axes[i], " of ",
                                     ShapeText(shape), " by ", begin, " and ",
                                     end));
    }
    if (params.mode != Mode::kConstant && shape[axes[i]] == 0 && size > 0) {
      return node.Error("repeats elements that are not there");
    }
    params.begin[axes[i]] = begin;
  }
  return params;
}

Inference InferPad(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  return InferOne(node, node.type(0), params.output);
}

// Where element `i` of an axis of `size` comes from; -1: from nowhere.
int64_t Source(Mode mode, int64_t i, int64_t size) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case Mode::kConstant:
      return -1;
    case Mode::kEdge:
      return i < 0 ? 0 : size - 1;
    case Mode::kWrap:
      return (i % size + size) % size;
    case Mode::kReflect:
      break;
  }
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);
  const int64_t at = (i % period + period) % period;
  return at < size ? at : period - at;
}

class PadKernel final : public Kernel {
 public:
  PadKernel(const KernelRequest& request, const Params& params)
      : out_(params.output), size_(SizeOf(request.outputs[0].type)) {
    const Shape& from = request.inputs[0].shape;
    const Shape strides = DenseStrides(from);
    if (out_.empty()) out_.push_back(1);
    offsets_.resize(out_.size(), {0});
    for (size_t d = 0; d < from.size(); ++d) {
      offsets_[d].clear();
      for (int64_t i = 0; i < out_[d]; ++i) {
        const int64_t at = Source(params.mode, i - params.begin[d], from[d]);
        offsets_[d].push_back(at < 0 ? -1 : at * strides[d]);
      }
    }
    const NodeView& node = request.node;
    has_value_ = node.has_input(2);
    // Attributes belong to float tensors.
    if (!has_value_ && request.outputs[0].type == DataType::kFloat32) {
      const float value = node.Float("value", 0.0F);
      std::memcpy(value_.data(), &value, sizeof(value));
    }
  }

  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* /*scratch*/) const override {
    const std::byte* value = has_value_ ? inputs[2] : value_.data();
    switch (size_) {
      case 1:
        Copy<uint8_t>(inputs[0], value, outputs[0]);
        break;
      case 2:
        Copy<uint16_t>(inputs[0], value, outputs[0]);
        break;
      case 4:
        Copy<uint32_t>(inputs[0], value, outputs[0]);
        break;
      default:
        Copy<uint64_t>(inputs[0], value, outputs[0]);
        break;
    }
    return absl::OkStatus();
  }

 private:
  template <class T>
  void Copy(const std::byte* from, const std::byte* value,
            std::byte* to) const {
    T fill;
    std::memcpy(&fill, value, sizeof(fill));
    const T* in = As<T>(from);
    T* out = As<T>(to);
    std::array<size_t, kMaxRank> index{};
    const size_t last = out_.size() - 1;
    for (;;) {
      StopPoint();
      int64_t offset = 0;
      bool inside = true;
      for (size_t d = 0; d < last; ++d) {
        const int64_t at = offsets_[d][index[d]];
        inside = inside && at >= 0;
        offset += at;
      }
      for (const int64_t at : offsets_[last]) {
        *out++ = inside && at >= 0 ? in[offset + at] : fill;
      }
      size_t d = last;
      for (; d > 0; --d) {
        if (++index[d - 1] < offsets_[d - 1].size()) break;
        index[d - 1] = 0;
      }
      if (d == 0) return;
    }
  }

  Shape out_;
  size_t size_;
  // Of each axis and output position: elements from the start of the input,
  // -1 for padding.
  std::vector<std::vector<int64_t>> offsets_;
  bool has_value_ = false;
  std::array<std::byte, 8> value_{};
};

MadeKernel MakePad(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(request.node));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  return std::make_unique<PadKernel>(request, params);
}

}  // namespace

void RegisterPad(OperatorTable& table) {
  table.Add({.type = "Pad", .infer = InferPad, .make = MakePad});
}

}  // namespace rknnd::soft
