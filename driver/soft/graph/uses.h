// Who makes and who reads each value of a graph: what every pass asks before
// it moves anything.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_GRAPH_USES_H_
#define DRIVER_SOFT_GRAPH_USES_H_

#include <cstddef>
#include <vector>

#include "driver/soft/graph/graph.h"

namespace rknnd::soft {

// A snapshot: a pass that changes the graph keeps to what it knows or takes a
// new one.
class Uses {
 public:
  static constexpr size_t kNoNode = static_cast<size_t>(-1);

  explicit Uses(const Graph& graph);

  // Index of the node that makes `value`; kNoNode for inputs and constants.
  [[nodiscard]] size_t producer(ValueId value) const {
    return producer_[static_cast<size_t>(value)];
  }
  // Reads by nodes (a node that reads it twice counts twice) and outputs.
  [[nodiscard]] size_t count(ValueId value) const {
    return count_[static_cast<size_t>(value)];
  }
  [[nodiscard]] bool is_output(ValueId value) const {
    return is_output_[static_cast<size_t>(value)];
  }

 private:
  std::vector<size_t> producer_;
  std::vector<size_t> count_;
  std::vector<bool> is_output_;
};

// Takes out the nodes marked in `removed`; the others keep their order.
void RemoveNodes(Graph& graph, const std::vector<bool>& removed);

// A new constant value; the name is for reports only.
ValueId AddConstant(Graph& graph, std::string name, Constant constant);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_GRAPH_USES_H_
