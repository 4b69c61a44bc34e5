#include "client/ctl/models/top_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rknnd::client {

std::vector<TopValue> TopValues(const std::vector<double>& values,
                                size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t top = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<long>(top),
                    order.end(), [&values](size_t a, size_t b) {
                      const bool a_nan = std::isnan(values[a]);
                      const bool b_nan = std::isnan(values[b]);
                      if (a_nan != b_nan) return b_nan;
                      if (!a_nan && values[a] != values[b]) {
                        return values[a] > values[b];
                      }
                      return a < b;
                    });
  std::vector<TopValue> result;
  for (size_t i = 0; i < top; ++i) {
    result.push_back({order[i], values[order[i]]});
  }
  return result;
}

}  // namespace rknnd::client
