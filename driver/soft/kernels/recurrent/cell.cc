// See cell.h.

#include "driver/soft/kernels/recurrent/cell.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"

namespace rknnd::soft {
namespace {

// What activation.h has no loop for.
template <float (*kFunction)(float x, float alpha, float beta)>
void Each(const float* in, float* out, int64_t n, float alpha, float beta) {
  for (int64_t i = 0; i < n; ++i) out[i] = kFunction(in[i], alpha, beta);
}

float Affine(float x, float alpha, float beta) { return alpha * x + beta; }
float ThresholdedRelu(float x, float alpha, float) {
  return x > alpha ? x : 0.0F;
}
float ScaledTanh(float x, float alpha, float beta) {
  return alpha * std::tanh(beta * x);
}
float Elu(float x, float alpha, float) {
  return x < 0.0F ? alpha * std::expm1(x) : x;
}
float Softsign(float x, float, float) { return x / (1.0F + std::fabs(x)); }
float Softplus(float x, float, float) {
  return std::max(x, 0.0F) + std::log1p(std::exp(-std::fabs(x)));
}

struct KnownFunction {
  std::string_view name;  // in small letters: ONNX does not tell them apart
  FloatLoop loop;
  int parameters;
  float alpha, beta;  // where the node gives none
};

const KnownFunction* FindFunction(std::string name) {
  static const KnownFunction kKnown[] = {
      {"sigmoid", LoopOf(Activation::kSigmoid), 0, 0.0F, 0.0F},
      {"tanh", LoopOf(Activation::kTanh), 0, 0.0F, 0.0F},
      {"relu", LoopOf(Activation::kRelu), 0, 0.0F, 0.0F},
      {"leakyrelu", LoopOf(Activation::kLeakyRelu), 1, 0.01F, 0.0F},
      {"hardsigmoid", LoopOf(Activation::kHardSigmoid), 2, 0.2F, 0.5F},
      {"affine", Each<Affine>, 2, 1.0F, 0.0F},
      {"thresholdedrelu", Each<ThresholdedRelu>, 1, 1.0F, 0.0F},
      {"scaledtanh", Each<ScaledTanh>, 2, 1.0F, 1.0F},
      {"elu", Each<Elu>, 1, 1.0F, 0.0F},
      {"softsign", Each<Softsign>, 0, 0.0F, 0.0F},
      {"softplus", Each<Softplus>, 0, 0.0F, 0.0F}};
  for (char& letter : name) {
    letter =
        static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  for (const KnownFunction& known : kKnown) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

std::vector<std::string> FunctionsOf(CellKind kind) {
  switch (kind) {
    case CellKind::kLstm:
      return {"Sigmoid", "Tanh", "Tanh"};
    case CellKind::kGru:
      return {"Sigmoid", "Tanh"};
    case CellKind::kRnn:
      break;
  }
  return {"Tanh"};
}

absl::Status TakeFunctions(const NodeView& node, Cell& cell) {
  const std::vector<std::string> usual = FunctionsOf(cell.kind);
  const auto directions = static_cast<size_t>(cell.directions);
  std::vector<std::string> names = node.Strings("activations");
  if (names.empty()) {
    for (size_t d = 0; d < directions; ++d) {
      names.insert(names.end(), usual.begin(), usual.end());
    }
  }
  if (names.size() != usual.size() * directions) {
    return node.Error(absl::StrCat("has ", names.size(), " activations, ",
                                   usual.size() * directions, " are needed"));
  }
  // Numbers go to the functions that have such a parameter, in their order.
  const std::vector<float> alphas = node.Floats("activation_alpha");
  const std::vector<float> betas = node.Floats("activation_beta");
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const KnownFunction* known = FindFunction(names[i]);
    if (known == nullptr) {
      return node.Error(
          absl::StrCat("activation '", names[i], "' is not supported"));
    }
    CellFunction function{known->loop, known->alpha, known->beta};
    if (known->parameters > 0 && alpha < alphas.size()) {
      function.alpha = alphas[alpha++];
    }
    if (known->parameters > 1 && beta < betas.size()) {
      function.beta = betas[beta++];
    }
    cell.functions[i / usual.size()][i % usual.size()] = function;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Cell> ParseCell(const NodeView& node) {
  Cell cell;
  const std::string& type = node.node().type;
  cell.kind = type == "LSTM"  ? CellKind::kLstm
              : type == "GRU" ? CellKind::kGru
                              : CellKind::kRnn;
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  const Shape& shape = node.shape(0);
  if (shape.size() != 3) {
    return node.Error(absl::StrCat("its input is ", ShapeText(shape),
                                   ", not steps, batch and values"));
  }
  const int64_t layout = node.Int("layout", 0);
  const std::string direction = node.String("direction", "forward");
  if ((layout != 0 && layout != 1) ||
      (direction != "forward" && direction != "reverse" &&
       direction != "bidirectional")) {
    return node.Error(
        absl::StrCat("layout ", layout, ", direction '", direction, "'"));
  }
  cell.batch_first = layout == 1;
  cell.steps = shape[cell.batch_first ? 1 : 0];
  cell.batch = shape[cell.batch_first ? 0 : 1];
  cell.directions = direction == "bidirectional" ? 2 : 1;
  cell.first_reversed = direction == "reverse";
  cell.input_forget = node.Int("input_forget", 0) != 0;
  cell.linear_before_reset = node.Int("linear_before_reset", 0) != 0;
  cell.clip = node.Float("clip", 0.0F);
  if (!(cell.clip >= 0.0F)) {
    return node.Error(absl::StrCat("clips at ", cell.clip));
  }
  RKNND_RETURN_IF_ERROR(TakeFunctions(node, cell));
  return cell;
}

}  // namespace rknnd::soft
