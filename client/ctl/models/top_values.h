// The entries of a tensor that a person asks for first.

#ifndef CLIENT_CTL_MODELS_TOP_VALUES_H_
#define CLIENT_CTL_MODELS_TOP_VALUES_H_

#include <cstddef>
#include <vector>

namespace rknnd::client {

struct TopValue {
  size_t index;
  double value;
};

// The `count` largest values, largest first, the lower index first among
// equals; what is not a number comes last. Thread: any.
std::vector<TopValue> TopValues(const std::vector<double>& values,
                                size_t count);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_TOP_VALUES_H_
