// A node written as other nodes: what an operator gives that needs no kernel of
// its own (Operator::expand). Inference takes these nodes in the node's place,
// in their order, and looks at each as if it came from the file, so that they
// may be written out in turn.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_KERNELS_EXPANSION_H_
#define DRIVER_SOFT_KERNELS_EXPANSION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// How many nodes these are counted as: one of many inputs is several.
size_t CountOf(const std::vector<Node>& nodes);

class Expansion {
 public:
  using Attributes = std::map<std::string, Attribute>;

  // `node` is no part of `graph` any more and outlives this; at most `room`
  // nodes may be written.
  Expansion(Graph& graph, const Node& node, size_t room)
      : graph_(graph), node_(node), room_(room) {}

  // Known values. Several numbers are a tensor of one axis.
  ValueId Ints(const std::vector<int64_t>& values);
  ValueId Int(int64_t value);
  ValueId Floats(const Shape& shape, const std::vector<float>& values);
  ValueId Float(float value) { return Floats({}, {value}); }
  ValueId Known(Constant constant);

  // A node of ONNX's operators, as of kOpset, with one output or several.
  ValueId Add(std::string_view type, std::vector<ValueId> inputs,
              Attributes attributes = {});
  // The one that the node is: it has its name, and makes its outputs.
  Node& Be(std::string_view type, std::vector<ValueId> inputs,
           Attributes attributes = {});
  // Output `i` is this value.
  void Finish(size_t i, ValueId value);

  // All of a body, whose inputs are these; what its outputs are then. The names
  // of its nodes begin with `prefix`.
  std::vector<ValueId> Inline(const Graph& body,
                              const std::vector<ValueId>& inputs,
                              const std::string& prefix);

  [[nodiscard]] size_t room() const { return room_; }
  [[nodiscard]] std::vector<Node>& nodes() { return nodes_; }

  static constexpr int kOpset = 17;

 private:
  ValueId NewValue(std::string name);

  Graph& graph_;
  const Node& node_;
  const size_t room_;
  std::vector<Node> nodes_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_EXPANSION_H_
