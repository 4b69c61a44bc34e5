// Writes what fuzzers start from: fuzz_seeds FOLDER makes
// FOLDER/<fuzzer>/<name> for the fuzzers of model files. The corpora in this
// tree were made so; a new operator or field gets a seed here.

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/rknn_file/testing/rknn_builder.h"
#include "driver/rknpu/testing/task_writer.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"

namespace {

using rknnd::soft::testing::OnnxBuilder;

void Write(const std::filesystem::path& folder, const std::string& name,
           const std::string& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << bytes;
  std::printf("%s: %zu bytes\n", (folder / name).c_str(), bytes.size());
}

void Write(const std::filesystem::path& folder, const std::string& name,
           const OnnxBuilder& model) {
  const std::vector<std::byte> bytes = model.Bytes();
  Write(folder, name,
        std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::vector<float> Ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(i % 7) / 8.0F;
  }
  return values;
}

void WriteOnnx(const std::filesystem::path& folder) {
  Write(folder, "convolution",
        OnnxBuilder()
            .Input("x", {1, 3, 8, 8})
            .Floats("w", {4, 3, 3, 3}, Ramp(108))
            .Floats("b", {4}, Ramp(4))
            .Node("Conv", {"x", "w", "b"}, {"c"}, "conv")
            .Ints("pads", {1, 1, 1, 1})
            .Node("Relu", {"c"}, {"y"}, "relu")
            .Output("y", {1, 4, 8, 8}));
  Write(folder, "residual",
        OnnxBuilder()
            .Input("x", {1, 4, 4, 4})
            .Floats("w", {4, 4, 1, 1}, Ramp(16))
            .Node("Conv", {"x", "w"}, {"c"}, "conv")
            .Node("Add", {"c", "x"}, {"s"}, "sum")
            .Node("Sigmoid", {"s"}, {"g"}, "gate")
            .Node("Mul", {"s", "g"}, {"y"}, "swish")
            .Output("y", {1, 4, 4, 4}));
  Write(folder, "concat_and_split",
        OnnxBuilder()
            .Input("x", {1, 4, 4, 4})
            .Node("Relu", {"x"}, {"a"}, "a")
            .Node("Concat", {"a", "x"}, {"c"}, "concat")
            .Int("axis", 1)
            .Node("MaxPool", {"c"}, {"p"}, "pool")
            .Ints("kernel_shape", {2, 2})
            .Ints("strides", {2, 2})
            .Node("Flatten", {"p"}, {"y"}, "flatten")
            .Output("y", {1, 32}));
  Write(folder, "shapes_of_a_size",
        OnnxBuilder()
            .Input("x", {1, 16})
            .Int64s("shape", {2}, {4, 4})
            .Node("Reshape", {"x", "shape"}, {"r"}, "reshape")
            .Node("Transpose", {"r"}, {"t"}, "transpose")
            .Ints("perm", {1, 0})
            .Node("MatMul", {"r", "t"}, {"m"}, "matmul")
            .Node("Softmax", {"m"}, {"y"}, "softmax")
            .Int("axis", 1)
            .Output("y", {4, 4}));
  Write(folder, "cycle",
        OnnxBuilder()
            .Input("x", {1, 4})
            .Node("Add", {"x", "b"}, {"a"}, "first")
            .Node("Relu", {"a"}, {"b"}, "second")
            .Output("b", {1, 4}));
  Write(folder, "huge_shape",
        OnnxBuilder()
            .Input("x", {int64_t{1} << 40, int64_t{1} << 40})
            .Node("Relu", {"x"}, {"y"}, "relu")
            .Output("y", {int64_t{1} << 40, int64_t{1} << 40}));
  Write(folder, "listed_shapes",
        OnnxBuilder()
            .Input("x", {-1, 4})
            .Metadata("rknn.dynamic_input", "[[[1,4]],[[2,4]]]")
            .Node("Relu", {"x"}, {"y"}, "relu")
            .Output("y", {-1, 4}));
  for (const char* which : {"golden", "single"}) {
    Write(folder, std::string("accuracy_") + which,
          OnnxBuilder()
              .Input("x", {1, 4, 4, 4})
              .Floats("s", {}, {0.5F})
              .Node("QuantizeLinear", {"x", "s"}, {"q"}, "quantize")
              .Node("DequantizeLinear", {"q", "s"}, {"d"}, "dequantize")
              .Node("Relu", {"d"}, {"y"}, "relu")
              .Output("y", {1, 4, 4, 4})
              .Metadata("rknn.accuracy", which));
  }
  Write(folder, "without_weights",
        OnnxBuilder()
            .Input("x", {1, 3, 8, 8})
            .Floats("w", {4, 3, 3, 3}, {})
            .Node("Conv", {"x", "w", "b"}, {"y"}, "conv")
            .Ints("pads", {1, 1, 1, 1})
            .Output("y", {1, 4, 8, 8}));
  Write(folder, "scale_zero",
        OnnxBuilder()
            .Input("x", {1, 4, 4, 4})
            .Floats("s", {}, {0.0F})
            .Node("QuantizeLinear", {"x", "s"}, {"q"}, "quantize")
            .Node("DequantizeLinear", {"q", "s"}, {"y"}, "dequantize")
            .Output("y", {1, 4, 4, 4}));
}

void WriteRknn(const std::filesystem::path& folder) {
  using rknnd::rknn_file::testing::Build;
  using rknnd::rknn_file::testing::FileSpec;
  using rknnd::rknn_file::testing::SmallModel;
  const std::string whole = Build(SmallModel());
  Write(folder, "small", whole);
  FileSpec spec = SmallModel();
  spec.sizes = {580928, 509184, 277440};
  Write(folder, "stored_sizes", Build(spec));
  spec = SmallModel();
  spec.container_version = 1;
  Write(folder, "old_container", Build(spec));
  spec = SmallModel();
  spec.inputs = {0, 7};
  Write(folder, "input_out_of_range", Build(spec));
  spec = SmallModel();
  spec.tensors[0].shape = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
  Write(folder, "huge_shape", Build(spec));
  Write(folder, "cut_off", whole.substr(0, whole.size() / 2));
  std::string far = whole;
  far[64] = far[65] = far[66] = '\x7f';
  Write(folder, "root_outside", far);
  Write(folder, "encrypted", "CYPTRKNN" + std::string(56, 'x'));
}

// A convolution, once as it is and once reaching too far; short tasks.
void WriteProgram(const std::filesystem::path& folder) {
  using rknnd::rknpu::testing::Build;
  using rknnd::rknpu::testing::SmallConvolution;
  using rknnd::rknpu::testing::TaskWriter;
  const std::map<uint16_t, std::string> addresses = {
      {0x1070, "x"}, {0x1110, "w"}, {0x4020, "y"}};
  Write(folder, "three_words", Build(rknnd::rknpu::testing::SmallProgram()));
  TaskWriter convolution;
  convolution.Node("c").Add(0xd, SmallConvolution(), addresses);
  Write(folder, "convolution", Build(convolution.spec()));
  auto registers = SmallConvolution();
  registers[0x4020] = 16;
  TaskWriter outside;
  outside.Node("c").Add(0xd, registers, addresses);
  Write(folder, "outside", Build(outside.spec()));
  TaskWriter tasks;
  tasks.Node("c")
      .Add(0xd, SmallConvolution(), addresses)
      .Add(0xd, SmallConvolution(), addresses)
      .Add(0xd, {{0x4038, 0}}, {});
  Write(folder, "short_task", Build(tasks.spec()));
}

// Forms of the networks that onnx_import_fuzzer starts from, as this machine
// compiles them.
void WriteCompiled(const std::filesystem::path& networks,
                   const std::filesystem::path& folder) {
  auto device = *rknnd::soft::OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
  for (const auto& file : std::filesystem::directory_iterator(networks)) {
    const std::vector<std::byte> bytes =
        rknnd::soft::testing::ReadFile(file.path().string());
    auto model = device->Load({bytes, "", "seed"});
    if (!model.ok()) continue;
    std::string form;
    const absl::Status written =
        (*model)->WriteCompiled([&](std::span<const std::byte> piece) {
          form.append(reinterpret_cast<const char*>(piece.data()),
                      piece.size());
          return absl::OkStatus();
        });
    if (written.ok()) Write(folder, file.path().filename().string(), form);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder(argv[1]);
  WriteOnnx(folder / "onnx_import_fuzzer");
  WriteRknn(folder / "rknn_file_fuzzer");
  WriteProgram(folder / "rknn_program_fuzzer");
  WriteCompiled(folder / "onnx_import_fuzzer",
                folder / "compiled_model_fuzzer");
  return 0;
}
