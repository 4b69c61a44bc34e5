// Gelu, which networks before opset 20 write out in small operators, found by
// what is multiplied, in any order and on either side:
//
//   x * 0.5 * (1 + Erf(x / sqrt(2)))
//   x * 0.5 * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

// Of one product: more than any way of writing it has. Files may have chains of
// thousands.
constexpr int kMostNodes = 8;

class Gelus {
 public:
  Gelus(const Graph& graph, const Uses& uses) : graph_(graph), uses_(uses) {}

  struct Found {
    ValueId x = kNoValue;
    bool by_tanh = false;
  };
  // What the node is, if it is the last product of one.
  [[nodiscard]] std::optional<Found> At(const Node& node) const {
    if (!IsStandard(node, "Mul")) return std::nullopt;
    const Product product = Multiply(node);
    if (product.factors.size() != 2 || !Near(product.number, 0.5F)) {
      return std::nullopt;
    }
    for (const size_t at : {size_t{0}, size_t{1}}) {
      const std::optional<Found> found = Inner(product.factors[at]);
      if (found.has_value() && found->x == product.factors[1 - at]) {
        return found;
      }
    }
    return std::nullopt;
  }

 private:
  // Known numbers as one, and what else is multiplied.
  struct Product {
    float number = 1.0F;
    std::vector<ValueId> factors;
    int nodes = 0;  // that are part of it
  };

  static bool Near(float a, float b) { return std::fabs(a - b) < 1e-4F * b; }

  [[nodiscard]] const Node* Maker(ValueId value) const {
    if (value == kNoValue || uses_.producer(value) == Uses::kNoNode) {
      return nullptr;
    }
    return &graph_.nodes[uses_.producer(value)];
  }
  [[nodiscard]] const Node* Maker(ValueId value, const char* type) const {
    const Node* node = Maker(value);
    return node != nullptr && IsStandard(*node, type) ? node : nullptr;
  }
  [[nodiscard]] std::optional<float> Number(const Node& node, size_t i) const {
    const Constant* constant = ConstantOf(graph_, node, i);
    if (constant == nullptr || constant->type != DataType::kFloat32 ||
        constant->elements() != 1) {
      return std::nullopt;
    }
    return *constant->as<float>();
  }
  // The other input of a sum with `number`.
  [[nodiscard]] ValueId Plus(const Node& sum, float number) const {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const std::optional<float> known = Number(sum, i);
      if (known.has_value() && Near(*known, number)) return InputOf(sum, 1 - i);
    }
    return kNoValue;
  }

  // Products of products are one, where nobody else reads them.
  void Take(const Node& node, size_t i, Product& product) const {
    const ValueId value = InputOf(node, i);
    if (const std::optional<float> number = Number(node, i)) {
      product.number *= *number;
      return;
    }
    const Node* maker = value == kNoValue ? nullptr : Maker(value);
    const bool is_own = maker != nullptr && uses_.count(value) == 1 &&
                        product.nodes < kMostNodes;
    if (is_own) ++product.nodes;
    if (is_own && IsStandard(*maker, "Mul")) {
      Take(*maker, 0, product);
      Take(*maker, 1, product);
    } else if (is_own && IsStandard(*maker, "Div") &&
               Number(*maker, 1).value_or(0.0F) != 0.0F) {
      Take(*maker, 0, product);
      product.number /= *Number(*maker, 1);
    } else if (is_own && IsStandard(*maker, "Pow") &&
               Number(*maker, 1) == 3.0F) {
      product.factors.insert(product.factors.end(), 3, InputOf(*maker, 0));
    } else {
      product.factors.push_back(value);
    }
  }
  [[nodiscard]] Product Multiply(const Node& node) const {
    Product product;
    Take(node, 0, product);
    Take(node, 1, product);
    return product;
  }
  // Of a value that one node reads.
  [[nodiscard]] Product Multiply(const Node& reader, size_t i) const {
    Product product;
    Take(reader, i, product);
    return product;
  }

  // 1 + f(x)
  [[nodiscard]] std::optional<Found> Inner(ValueId value) const {
    const Node* sum = Maker(value, "Add");
    if (sum == nullptr) return std::nullopt;
    const ValueId function = Plus(*sum, 1.0F);
    if (const Node* erf = Maker(function, "Erf")) {
      const Product product = Multiply(*erf, 0);
      if (product.factors.size() == 1 && Near(product.number, 0.70710678F)) {
        return Found{product.factors[0], false};
      }
    }
    if (const Node* tanh = Maker(function, "Tanh")) {
      const Product product = Multiply(*tanh, 0);
      if (product.factors.size() == 1 && Near(product.number, 0.79788456F)) {
        return Cubic(product.factors[0]);
      }
    }
    return std::nullopt;
  }

  // x + 0.044715 * x^3
  [[nodiscard]] std::optional<Found> Cubic(ValueId value) const {
    const Node* sum = Maker(value, "Add");
    if (sum == nullptr) return std::nullopt;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const ValueId x = InputOf(*sum, i);
      const Product cube = Multiply(*sum, 1 - i);
      if (x != kNoValue && Near(cube.number, 0.044715F) &&
          cube.factors == std::vector<ValueId>(3, x)) {
        return Found{x, true};
      }
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const Uses& uses_;
};

}  // namespace

void FindGelu(Graph& graph, const OperatorTable& operators) {
  if (operators.Find("", "Gelu") == nullptr) return;
  const Uses uses(graph);
  const Gelus gelus(graph, uses);
  std::vector<std::pair<size_t, Gelus::Found>> all;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::optional<Gelus::Found> found = gelus.At(graph.nodes[n]);
    if (!found.has_value()) continue;
    const Value& x = graph.value(found->x);
    const Value& made = graph.value(graph.nodes[n].outputs[0]);
    if (x.type == DataType::kFloat32 && x.shape == made.shape) {
      all.emplace_back(n, *found);
    }
  }
  for (const auto& [n, found] : all) {
    Node& product = graph.nodes[n];
    Node made;
    made.name = product.name;
    made.type = made.layer_type = "Gelu";
    made.opset = 20;
    made.inputs = {found.x};
    made.outputs = product.outputs;
    if (found.by_tanh) made.attributes["approximate"] = std::string("tanh");
    product = std::move(made);
  }
  RemoveDeadNodes(graph);
}

}  // namespace rknnd::soft
