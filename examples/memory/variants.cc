// Makes of the demo's detector the networks that the programs of this folder
// run: the same one for a smaller picture, whole and without its weights, as a
// converter's remove_weight leaves it. Run once by the build.
//
//   memory_example_variants DETECTOR SMALL FOLLOWER

#include <onnx/onnx_pb.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace {

constexpr int kHeight = 96, kWidth = 160;
// Both sides are shrunk by so much on the way to the coarser grid.
constexpr int kCell = 16;
static_assert(kHeight % kCell == 0 && kWidth % kCell == 0);

bool Read(const char* path, onnx::ModelProto& model) {
  std::ifstream file(path, std::ios::binary);
  return file && model.ParseFromIstream(&file);
}

bool Write(const char* path, const onnx::ModelProto& model) {
  std::ofstream file(path, std::ios::binary);
  return model.SerializeToOstream(&file) && file.flush();
}

// The network has no layer but convolutions and what works point by point: its
// tensors' heights and widths follow the picture's.
void Resize(onnx::ValueInfoProto& port, int old_height, int old_width) {
  auto& shape = *port.mutable_type()->mutable_tensor_type()->mutable_shape();
  auto& height = *shape.mutable_dim(2);
  auto& width = *shape.mutable_dim(3);
  height.set_dim_value(height.dim_value() * kHeight / old_height);
  width.set_dim_value(width.dim_value() * kWidth / old_width);
}

void Shrink(onnx::GraphProto& graph) {
  const auto& shape = graph.input(0).type().tensor_type().shape();
  const auto height = static_cast<int>(shape.dim(2).dim_value());
  const auto width = static_cast<int>(shape.dim(3).dim_value());
  Resize(*graph.mutable_input(0), height, width);
  for (auto& output : *graph.mutable_output()) Resize(output, height, width);
}

bool EndsWith(const std::string& name, const std::string& end) {
  return name.size() >= end.size() &&
         name.compare(name.size() - end.size(), end.size(), end) == 0;
}

// Kernels and biases; scales and zero points stay.
void RemoveWeights(onnx::GraphProto& graph) {
  auto& constants = *graph.mutable_initializer();
  for (int i = constants.size() - 1; i >= 0; --i) {
    if (EndsWith(constants[i].name(), "_weight_quantized") ||
        EndsWith(constants[i].name(), "_bias_quantized")) {
      constants.DeleteSubrange(i, 1);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  onnx::ModelProto model;
  if (argc != 4 || !Read(argv[1], model)) {
    std::fprintf(stderr, "variants: cannot read the detector\n");
    return 1;
  }
  Shrink(*model.mutable_graph());
  bool written = Write(argv[2], model);
  RemoveWeights(*model.mutable_graph());
  written = Write(argv[3], model) && written;
  if (!written) std::fprintf(stderr, "variants: cannot write a network\n");
  return written ? 0 : 1;
}
