// One case of the ONNX project's operator tests: a model, its inputs and the
// outputs it must have. Read from a folder in that project's layout
// (model.onnx, test_data_set_<n>/{input,output}_<k>.pb).

#ifndef TESTS_CONFORMANCE_ONNX_OPERATORS_ONNX_CASE_H_
#define TESTS_CONFORMANCE_ONNX_OPERATORS_ONNX_CASE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"

namespace rknnd::soft {

using TensorPtr = std::shared_ptr<const Constant>;

struct OnnxCase {
  std::string name;
  std::string model;               // bytes of the file
  std::vector<std::string> types;  // of the nodes, each once, sorted
  // Whether all inputs and outputs are tensors of numbers.
  bool only_numbers = true;
  struct DataSet {
    std::vector<TensorPtr> inputs, outputs;
    // The model with its inputs but the first as constants.
    std::string fixed;
  };
  std::vector<DataSet> sets;
};

absl::StatusOr<OnnxCase> ReadCase(const std::filesystem::path& folder);

}  // namespace rknnd::soft

#endif  // TESTS_CONFORMANCE_ONNX_OPERATORS_ONNX_CASE_H_
