// As a flow: `bytes` of SRAM go through the steps of a run, each of them past a
// step unused or, as a byte of a tensor, from its first step to behind its
// last, for what that byte saves. The dearest flow is the bound; it is found by
// sending along the dearest path until none pays.

#include "bench/sram/bound.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

namespace rknnd::bench {
namespace {

struct Edge {
  uint32_t to = 0;
  uint64_t room = 0;
  double gain = 0;  // of a byte
  size_t back = 0;  // the edge against it, in to's list
};

class Flow {
 public:
  explicit Flow(uint32_t nodes) : edges_(nodes) {}

  void Add(uint32_t from, uint32_t to, uint64_t room, double gain) {
    edges_[from].push_back({to, room, gain, edges_[to].size()});
    edges_[to].push_back({from, 0, -gain, edges_[from].size() - 1});
  }

  // Sends `bytes` from the first node to the last; what that gains.
  double Send(uint64_t bytes) {
    double gained = 0;
    while (bytes > 0) {
      const uint64_t sent = SendOnce(bytes, &gained);
      if (sent == 0) break;
      bytes -= sent;
    }
    return gained;
  }

 private:
  uint64_t SendOnce(uint64_t bytes, double* gained) {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    constexpr double kNothing = 1e-9;
    std::vector<double> best(edges_.size(), kNever);
    std::vector<std::pair<uint32_t, size_t>> came(edges_.size());
    best[0] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t node = 0; node < edges_.size(); ++node) {
        if (best[node] == kNever) continue;
        for (size_t e = 0; e < edges_[node].size(); ++e) {
          const Edge& edge = edges_[node][e];
          const double gain = best[node] + edge.gain;
          if (edge.room == 0 || gain <= best[edge.to] + kNothing) continue;
          best[edge.to] = gain;
          came[edge.to] = {node, e};
          changed = true;
        }
      }
    }
    const auto last = static_cast<uint32_t>(edges_.size() - 1);
    if (best[last] <= kNothing) return 0;
    for (uint32_t node = last; node != 0; node = came[node].first) {
      bytes = std::min(bytes, edges_[came[node].first][came[node].second].room);
    }
    for (uint32_t node = last; node != 0; node = came[node].first) {
      Edge& edge = edges_[came[node].first][came[node].second];
      edge.room -= bytes;
      edges_[edge.to][edge.back].room += bytes;
      *gained += edge.gain * static_cast<double>(bytes);
    }
    return bytes;
  }

  std::vector<std::vector<Edge>> edges_;
};

}  // namespace

double MostSaved(const std::vector<driver::TensorPlace>& tensors,
                 uint64_t bytes) {
  // Bytes of tensors that share them have the traffic of all of these.
  struct Storage {
    uint32_t first = UINT32_MAX, last = 0;
    std::map<uint64_t, double> changes;  // of the traffic of a byte
  };
  std::vector<Storage> storages;
  uint32_t steps = 0;
  for (const driver::TensorPlace& tensor : tensors) {
    if (tensor.storage >= storages.size()) storages.resize(tensor.storage + 1);
    Storage& storage = storages[tensor.storage];
    storage.first = std::min(storage.first, tensor.first);
    storage.last = std::max(storage.last, tensor.last);
    steps = std::max(steps, tensor.last + 1);
    if (tensor.size == 0) continue;
    const double of_a_byte = static_cast<double>(tensor.traffic()) /
                             static_cast<double>(tensor.size);
    storage.changes[tensor.offset] += of_a_byte;
    storage.changes[tensor.offset + tensor.size] -= of_a_byte;
  }
  Flow flow(steps + 1);
  for (uint32_t step = 0; step < steps; ++step) {
    flow.Add(step, step + 1, bytes, 0);
  }
  for (const Storage& storage : storages) {
    double of_a_byte = 0;
    for (auto at = storage.changes.begin(); at != storage.changes.end(); ++at) {
      of_a_byte += at->second;
      const auto next = std::next(at);
      if (next == storage.changes.end() || of_a_byte <= 0) continue;
      flow.Add(storage.first, storage.last + 1, next->first - at->first,
               of_a_byte);
    }
  }
  return flow.Send(bytes);
}

}  // namespace rknnd::bench
