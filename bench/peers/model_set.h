// Models of the shared folder with inputs for them, as meta.json beside each
// describes them.

#ifndef BENCH_PEERS_MODEL_SET_H_
#define BENCH_PEERS_MODEL_SET_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rknnd::bench {

struct ModelInput {
  std::string name;
  std::string type;  // "float32"
  std::vector<uint32_t> shape;
  std::string file;  // row-major in the model's axis order
};

struct ModelSet {
  std::string name;
  std::string precision;
  std::string file;
  std::vector<ModelInput> inputs;

  // Or of floats.
  [[nodiscard]] bool is_int8() const { return precision.starts_with("int8"); }
};

// By name, those whose names match the regular expression `names`; empty when
// the folder is not there.
std::vector<ModelSet> FindModelSets(const std::string& names);

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_MODEL_SET_H_
