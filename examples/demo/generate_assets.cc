// Makes what the demo needs where no trained model and no photo is at hand: a
// picture of three drawn faces, and a detector whose weights are computed
// rather than trained. Run by the build; writes into the folder it is given.
//
// The detector answers like an SSD head: "scores" 1xNx2 (background, face) and
// "boxes" 1xNx4 (left, top, right, bottom in 0..1). Its one convolution is a
// matched filter: skin colour inside a disc against the ring around it.

#include <onnx/onnx_pb.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr int kInputWidth = 320, kInputHeight = 240;
constexpr int kStride = 8;   // a box candidate every so many pixels
constexpr int kRadius = 26;  // of a face, in input pixels
constexpr int kKernel = 2 * 34 + 1;
constexpr int kCellsX = kInputWidth / kStride, kCellsY = kInputHeight / kStride;
constexpr int kCells = kCellsX * kCellsY;

// Skin against the rest: red minus blue.
constexpr float kColour[3] = {0.6F, 0.0F, -0.6F};

std::vector<float> MatchedFilter() {
  constexpr int kHalf = kKernel / 2;
  std::vector<float> plane(kKernel * kKernel);
  int inside = 0, around = 0;
  for (int y = -kHalf; y <= kHalf; ++y) {
    for (int x = -kHalf; x <= kHalf; ++x) {
      const float r = std::hypot(static_cast<float>(x), static_cast<float>(y));
      float& weight =
          plane[static_cast<size_t>((y + kHalf) * kKernel + x + kHalf)];
      if (r <= kRadius) {
        weight = 1;
        ++inside;
      } else if (r <= kHalf) {
        weight = -1;
        ++around;
      }
    }
  }
  for (float& weight : plane) {
    weight = weight > 0 ? weight / static_cast<float>(inside)
                        : weight / static_cast<float>(around);
  }
  std::vector<float> filter;
  for (const float colour : kColour) {
    for (const float weight : plane) filter.push_back(colour * weight);
  }
  return filter;
}

std::vector<float> CandidateBoxes() {
  std::vector<float> boxes;
  for (int y = 0; y < kCellsY; ++y) {
    for (int x = 0; x < kCellsX; ++x) {
      const auto cx = static_cast<float>(x * kStride);
      const auto cy = static_cast<float>(y * kStride);
      boxes.push_back((cx - kRadius) / kInputWidth);
      boxes.push_back((cy - kRadius) / kInputHeight);
      boxes.push_back((cx + kRadius) / kInputWidth);
      boxes.push_back((cy + kRadius) / kInputHeight);
    }
  }
  return boxes;
}

class GraphWriter {
 public:
  explicit GraphWriter(onnx::GraphProto* graph) : graph_(*graph) {}

  void Floats(const std::string& name, const std::vector<int64_t>& dims,
              const std::vector<float>& values) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) tensor.add_dims(dim);
    for (const float value : values) tensor.add_float_data(value);
  }

  void Ints(const std::string& name, const std::vector<int64_t>& values) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) tensor.add_int64_data(value);
  }

  onnx::NodeProto& Node(const std::string& type,
                        const std::vector<std::string>& inputs,
                        const std::string& output) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(type);
    node.set_name(type + "_" + output);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }

  static void Port(onnx::ValueInfoProto* port, const std::string& name,
                   const std::vector<int64_t>& dims) {
    port->set_name(name);
    auto& type = *port->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) {
      type.mutable_shape()->add_dim()->set_dim_value(dim);
    }
  }

 private:
  onnx::GraphProto& graph_;
};

void SetInts(onnx::NodeProto& node, const std::string& name,
             const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

onnx::ModelProto Detector() {
  onnx::ModelProto model;
  model.set_ir_version(onnx::IR_VERSION_2019_9_19);
  model.set_producer_name("rknnd demo");
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(11);

  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("drawn_faces");
  GraphWriter writer(&graph);
  GraphWriter::Port(graph.add_input(), "input",
                    {1, 3, kInputHeight, kInputWidth});
  GraphWriter::Port(graph.add_output(), "scores", {1, kCells, 2});
  GraphWriter::Port(graph.add_output(), "boxes", {1, kCells, 4});

  writer.Floats("filter", {1, 3, kKernel, kKernel}, MatchedFilter());
  // A drawn face answers about 0.8 where it is centred and less with each cell
  // away from it; a flat background answers 0.
  writer.Floats("bias", {1}, {-0.4F});
  writer.Floats("steepness", {1}, {8.0F});
  writer.Floats("one", {1}, {1.0F});
  writer.Floats("zero", {1}, {0.0F});
  writer.Floats("candidates", {1, kCells, 4}, CandidateBoxes());
  writer.Ints("column", {1, kCells, 1});

  onnx::NodeProto& conv =
      writer.Node("Conv", {"input", "filter", "bias"}, "response");
  SetInts(conv, "kernel_shape", {kKernel, kKernel});
  SetInts(conv, "strides", {kStride, kStride});
  const int64_t pad = kKernel / 2;
  SetInts(conv, "pads", {pad, pad, pad - (kStride - 1), pad - (kStride - 1)});
  writer.Node("Mul", {"response", "steepness"}, "logit");
  writer.Node("Sigmoid", {"logit"}, "map");
  writer.Node("Reshape", {"map", "column"}, "face");
  writer.Node("Sub", {"one", "face"}, "background");
  onnx::NodeProto& concat =
      writer.Node("Concat", {"background", "face"}, "scores");
  onnx::AttributeProto& axis = *concat.add_attribute();
  axis.set_name("axis");
  axis.set_type(onnx::AttributeProto::INT);
  axis.set_i(2);
  // The candidates do not depend on the picture; the sum keeps the output one
  // of the network.
  writer.Node("Mul", {"face", "zero"}, "nothing");
  writer.Node("Add", {"candidates", "nothing"}, "boxes");
  return model;
}

struct Colour {
  uint8_t r, g, b;
};

class Picture {
 public:
  static constexpr int kWidth = 960, kHeight = 720;

  Picture() : pixels_(static_cast<size_t>(kWidth) * kHeight) {
    uint32_t noise = 1;
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        noise = noise * 1664525U + 1013904223U;
        const int grain = static_cast<int>(noise >> 28);
        at(x, y) = {static_cast<uint8_t>(40 + 50 * y / kHeight + grain),
                    static_cast<uint8_t>(80 + 60 * x / kWidth + grain),
                    static_cast<uint8_t>(120 + 60 * y / kHeight + grain)};
      }
    }
  }

  void Face(int cx, int cy) {
    constexpr int kFace = kRadius * kWidth / kInputWidth;
    Disc(cx, cy, kFace, {228, 176, 140});
    Disc(cx - kFace / 3, cy - kFace / 4, kFace / 9, {50, 40, 40});
    Disc(cx + kFace / 3, cy - kFace / 4, kFace / 9, {50, 40, 40});
    for (int x = -kFace / 3; x <= kFace / 3; ++x) {
      const int y = kFace / 2 - (x * x) / (2 * kFace);
      Disc(cx + x, cy + y, 3, {150, 60, 60});
    }
  }

  [[nodiscard]] bool Write(const std::string& path) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = kWidth;
    image.height = kHeight;
    image.format = PNG_FORMAT_RGB;
    return png_image_write_to_file(&image, path.c_str(), 0, pixels_.data(), 0,
                                   nullptr) != 0;
  }

 private:
  Colour& at(int x, int y) {
    return pixels_[static_cast<size_t>(y) * kWidth + static_cast<size_t>(x)];
  }

  void Disc(int cx, int cy, int radius, Colour colour) {
    for (int y = std::max(0, cy - radius);
         y <= std::min(kHeight - 1, cy + radius); ++y) {
      for (int x = std::max(0, cx - radius);
           x <= std::min(kWidth - 1, cx + radius); ++x) {
        if ((x - cx) * (x - cx) + (y - cy) * (y - cy) <= radius * radius) {
          at(x, y) = colour;
        }
      }
    }
  }

  std::vector<Colour> pixels_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];
  std::ofstream file(folder + "/drawn_faces.onnx", std::ios::binary);
  if (!Detector().SerializeToOstream(&file) || !file.flush()) {
    std::fprintf(stderr, "cannot write '%s/drawn_faces.onnx'\n",
                 folder.c_str());
    return 1;
  }
  Picture picture;
  picture.Face(230, 250);
  picture.Face(520, 420);
  picture.Face(760, 210);
  if (!picture.Write(folder + "/drawn_faces.png")) {
    std::fprintf(stderr, "cannot write '%s/drawn_faces.png'\n", folder.c_str());
    return 1;
  }
  return 0;
}
