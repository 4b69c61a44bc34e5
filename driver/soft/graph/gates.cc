// x * f(x) on 8-bit numbers, f a table: a table too. So Swish of an 8-bit
// network, which ONNX writes as x * Sigmoid(x), is one function of one number.

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status/status.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

Constant TableOf(DataType type, const std::byte* bytes) {
  Constant constant;
  constant.type = type;
  constant.shape = {256};
  constant.data.assign(bytes, bytes + 256);
  return constant;
}

// The product for each byte x may be, computed by the product itself.
std::optional<Constant> Products(const Graph& graph, const Node& product,
                                 size_t x_at, const Constant& table,
                                 const OperatorTable& ops) {
  std::array<std::byte, 256> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
  Graph small;
  Node step = product;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (i == x_at) {
      const DataType type = graph.value(product.inputs[i]).type;
      step.inputs[i] = AddConstant(small, "all", TableOf(type, all.data()));
    } else if (i == 3 - x_at) {
      step.inputs[i] =
          AddConstant(small, "table", TableOf(table.type, table.data.data()));
    } else if (step.inputs[i] != kNoValue) {
      small.values.push_back(graph.value(step.inputs[i]));
      step.inputs[i] = static_cast<ValueId>(small.values.size() - 1);
    }
  }
  small.values.emplace_back();
  const auto answer = static_cast<ValueId>(small.values.size() - 1);
  step.outputs = {answer};
  small.nodes.push_back(std::move(step));
  Folder folder;
  if (!InferAndFold(small, ops, folder).ok()) return std::nullopt;
  const std::shared_ptr<const Constant>& made = small.value(answer).constant;
  if (made == nullptr || made->elements() != 256 || !IsEightBit(made->type)) {
    return std::nullopt;
  }
  return *made;
}

const char* NameOf(const Node& gate) {
  if (gate.layer_type == "Sigmoid") return "ExSwish";
  if (gate.layer_type == "HardSigmoid") return "HardSwish";
  return nullptr;
}

}  // namespace

void FoldGates(Graph& graph, const OperatorTable& operators) {
  const Uses uses(graph);
  for (Node& product : graph.nodes) {
    if (product.domain != "com.microsoft" || product.type != "QLinearMul" ||
        product.inputs.size() < 7 || product.outputs.size() != 1 ||
        product.epilogue.activation != Activation::kNone) {
      continue;
    }
    for (const size_t x_at : {size_t{0}, size_t{3}}) {
      const ValueId x = product.inputs[x_at];
      const ValueId gated = product.inputs[3 - x_at];
      if (x == kNoValue || gated == kNoValue) continue;
      const size_t g = uses.producer(gated);
      if (g == Uses::kNoNode) continue;
      const Node& gate = graph.nodes[g];
      if (gate.domain != "rknnd" || gate.type != "Lookup" ||
          gate.inputs[0] != x || NameOf(gate) == nullptr) {
        continue;
      }
      const Constant* table = NodeView(graph, gate).Tensor("table");
      if (table == nullptr || table->elements() != 256) continue;
      std::optional<Constant> products =
          Products(graph, product, x_at, *table, operators);
      if (!products.has_value()) continue;
      Node made;
      made.name = product.name;
      made.type = "Lookup";
      made.domain = "rknnd";
      made.opset = 1;
      made.inputs = {x};
      made.outputs = product.outputs;
      made.layer_type = NameOf(gate);
      made.attributes["table"] =
          std::make_shared<const Constant>(*std::move(products));
      product = std::move(made);
      break;
    }
  }
  RemoveDeadNodes(graph);
}

}  // namespace rknnd::soft
