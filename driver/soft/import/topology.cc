#include "driver/soft/import/topology.h"

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rknnd::soft {

absl::Status SortNodes(Graph& graph) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<size_t> producer(graph.values.size(), kNone);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId out : graph.nodes[n].outputs) {
      if (out != kNoValue) producer[static_cast<size_t>(out)] = n;
    }
  }
  std::vector<std::vector<size_t>> followers(graph.nodes.size());
  std::vector<size_t> missing(graph.nodes.size(), 0);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId in : graph.nodes[n].inputs) {
      if (in == kNoValue) continue;
      size_t from = producer[static_cast<size_t>(in)];
      if (from == kNone) continue;
      followers[from].push_back(n);
      ++missing[n];
    }
  }
  // The earliest of the file that is ready goes first.
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t n = 0; n < missing.size(); ++n) {
    if (missing[n] == 0) ready.push(n);
  }
  std::vector<Node> sorted;
  sorted.reserve(graph.nodes.size());
  while (!ready.empty()) {
    size_t n = ready.top();
    ready.pop();
    for (size_t follower : followers[n]) {
      if (--missing[follower] == 0) ready.push(follower);
    }
    sorted.push_back(std::move(graph.nodes[n]));
  }
  for (size_t n = 0; n < missing.size(); ++n) {
    if (missing[n] == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("node '", graph.nodes[n].name, "' (", graph.nodes[n].type,
                     ") depends on its own output"));
  }
  graph.nodes = std::move(sorted);
  return absl::OkStatus();
}

}  // namespace rknnd::soft
