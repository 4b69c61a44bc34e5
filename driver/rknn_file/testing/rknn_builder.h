// Makes .rknn files as far as they are known, for tests and as seeds of the
// fuzzer: a container around a small FlatBuffer, with what a caller asks for.

#ifndef DRIVER_RKNN_FILE_TESTING_RKNN_BUILDER_H_
#define DRIVER_RKNN_FILE_TESTING_RKNN_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rknnd::rknn_file::testing {

struct TensorSpec {
  std::string name;
  uint8_t type = 3;          // the file's number: int8
  uint8_t tensor_class = 1;  // 1 input, 2 output, 3 internal, 4 constant
  std::vector<uint32_t> shape = {1, 3, 8, 8};
  std::vector<uint32_t> native_shape = {1, 1, 8, 8, 16};
  std::vector<float> scale = {0.5F};
  std::vector<int32_t> zero_point = {-3};
  uint32_t bytes = 1024;
  uint32_t offset = 0;
};

struct NodeSpec {
  std::string type, name;
  uint8_t device = 2;
};

struct FileSpec {
  uint64_t container_version = 6;
  std::string versions = "2.3.2(compiler version: 2.3.2 (abc@2025-04-01))";
  std::string platform = "rk3588";
  std::string framework = "ONNX";
  std::string input_json = R"({"x": {"dtype": "int8", "layout": "NHWC"}})";
  std::string output_json = R"({"y": {"dtype": "int8", "layout": "NCHW"}})";
  std::vector<TensorSpec> tensors;
  std::vector<NodeSpec> nodes;
  std::vector<uint32_t> inputs = {0}, outputs = {1};
  // Weight, internal, third: stored when there are three.
  std::vector<uint64_t> sizes;
  std::string json = "{}";
};

// One input 'x', one output 'y', one weight, three nodes.
FileSpec SmallModel();

std::string Build(const FileSpec& spec);

}  // namespace rknnd::rknn_file::testing

#endif  // DRIVER_RKNN_FILE_TESTING_RKNN_BUILDER_H_
