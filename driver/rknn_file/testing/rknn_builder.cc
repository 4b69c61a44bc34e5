#include "driver/rknn_file/testing/rknn_builder.h"

#include "driver/rknn_file/testing/flatbuffer_writer.h"

namespace rknnd::rknn_file::testing {
namespace {

Writer::Fields TensorFields(const TensorSpec& tensor) {
  return {{0, Writer::Number(tensor.type)},
          {1, Writer::Number(uint8_t{0x40})},
          {2, Writer::Number(tensor.tensor_class)},
          {3, Writer::Numbers(tensor.native_shape)},
          {4, Writer::Numbers(tensor.shape)},
          {5, Writer::Text(tensor.name)},
          {10, Writer::Numbers(tensor.scale)},
          {11, Writer::Numbers(tensor.zero_point)},
          {12, Writer::Number(tensor.bytes)},
          {13, Writer::Number(tensor.offset)}};
}

}  // namespace

FileSpec SmallModel() {
  FileSpec spec;
  TensorSpec x;
  x.name = "x";
  TensorSpec y;
  y.name = "y";
  y.tensor_class = 2;
  y.shape = {1, 4};
  y.native_shape = {1, 1, 1, 1, 16};
  y.bytes = 64;
  y.offset = 1024;
  TensorSpec weight;
  weight.name = "w";
  weight.tensor_class = 4;
  weight.bytes = 100;
  spec.tensors = {x, y, weight};
  spec.nodes = {{"InputOperator", "InputOperator:x", 0},
                {"ConvRelu", "Conv:c", 2},
                {"OutputOperator", "OutputOperator:y", 0}};
  return spec;
}

std::string Build(const FileSpec& spec) {
  std::vector<Writer::Fields> tensors;
  for (const TensorSpec& tensor : spec.tensors) {
    tensors.push_back(TensorFields(tensor));
  }
  std::vector<Writer::Fields> nodes;
  for (const NodeSpec& node : spec.nodes) {
    nodes.push_back({{1, Writer::Text(node.type)},
                     {2, Writer::Text(node.name)},
                     {3, Writer::Number(node.device)}});
  }
  const Writer::Fields graph = {{0, Writer::Tables(tensors)},
                                {1, Writer::Tables(nodes)},
                                {2, Writer::Numbers(spec.inputs)},
                                {3, Writer::Numbers(spec.outputs)}};
  Writer::Fields root = {{0, Writer::Number(uint32_t{1})},
                         {1, Writer::Text("RKNPU v2")},
                         {2, Writer::Tables({graph})},
                         {7, Writer::Text(spec.versions)},
                         {8, Writer::Text(spec.platform)},
                         {9, Writer::Text(spec.framework)},
                         {12, Writer::Text(spec.input_json)},
                         {13, Writer::Text(spec.output_json)},
                         {14, Writer::Text("1")},
                         {16, Writer::Text("static_shape")}};
  if (spec.sizes.size() == 3) {
    root[19] = Writer::Table({{0, Writer::Number(spec.sizes[0])},
                              {1, Writer::Number(spec.sizes[1])},
                              {2, Writer::Number(spec.sizes[2])}});
  }
  const std::string section = Writer().Finish(root);
  std::string file("RKNN\0\0\0\0", 8);
  const auto put = [&file](uint64_t value) {
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(spec.container_version);
  put(section.size());
  if (spec.container_version != 1) file.append(40, '\0');
  file += section;
  put(spec.json.size());
  return file + spec.json;
}

}  // namespace rknnd::rknn_file::testing
