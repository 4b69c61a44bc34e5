// See networks.h.

#include "bench/peers/networks/networks.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <stdexcept>

namespace rknnd::bench {
namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* name;
  std::vector<uint32_t> input;
  Precision precision;
  const char* words;
  void (*build)(NetworkBuilder& builder);
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kKinds = {
      {"vit_b_16", {1, 3, 224, 224}, Precision::kFloat, "fp32", BuildVitB16},
      {"convnext_tiny",
       {1, 3, 224, 224},
       Precision::kFloat,
       "fp32",
       BuildConvNextTiny},
      {"unet_32", {1, 3, 256, 256}, Precision::kFloat, "fp32", BuildUNet},
      {"basic_pitch",
       {1, 1, 172, 264},
       Precision::kFloat,
       "fp32",
       BuildBasicPitch},
      {"efficientnet_b0",
       {1, 3, 224, 224},
       Precision::kFloat,
       "fp32",
       BuildEfficientNetB0},
      {"resnet18", {1, 3, 224, 224}, Precision::kFloat, "fp32", BuildResNet18},
      {"mobilenet_v2",
       {1, 3, 224, 224},
       Precision::kFloat,
       "fp32",
       BuildMobileNetV2},
      {"mobilenet_v3",
       {1, 3, 224, 224},
       Precision::kFloat,
       "fp32",
       BuildMobileNetV3},
      {"yolov8n", {1, 3, 640, 640}, Precision::kFloat, "fp32", BuildYoloV8n},
      {"bert_blocks",
       {1, 128, 768},
       Precision::kFloat,
       "fp32",
       BuildBertBlocks},
      {"swin_stages",
       {1, 3, 224, 224},
       Precision::kFloat,
       "fp32",
       BuildSwinStages},
      {"lstm", {100, 1, 80}, Precision::kFloat, "fp32", BuildLstm},
      {"gru", {100, 1, 80}, Precision::kFloat, "fp32", BuildGru},
      {"tcn", {1, 80, 1, 400}, Precision::kFloat, "fp32", BuildTcn},
      {"mobilenet_v2_int8",
       {1, 3, 224, 224},
       Precision::kInt8,
       "int8 (QDQ)",
       BuildMobileNetV2},
      {"resnet18_int8",
       {1, 3, 224, 224},
       Precision::kInt8,
       "int8 (QDQ)",
       BuildResNet18},
      {"yolov8n_int8",
       {1, 3, 640, 640},
       Precision::kUint8,
       "int8 (QDQ, uint8 activations)",
       BuildYoloV8n},
  };
  return kKinds;
}

void WriteNoise(const std::string& path, const std::vector<uint32_t>& shape) {
  size_t count = 1;
  for (const uint32_t side : shape) count *= side;
  const std::vector<float> values = Random(count).Values(count, 1);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(count * sizeof(float)));
  if (!file.flush()) throw std::runtime_error("cannot write '" + path + "'");
}

// Under another name first: a file that is there is a whole one.
template <class Writer>
void WriteIfAbsent(const std::string& path, Writer write) {
  if (fs::exists(path)) return;
  write(path + ".part");
  fs::rename(path + ".part", path);
}

}  // namespace

std::vector<ModelSet> MakeNetworks(const std::string& folder,
                                   const std::string& names) {
  // Of what is written. Files of other versions are other networks.
  const std::string place = folder + "/2/";
  const std::regex wanted(names);
  std::vector<ModelSet> models;
  for (const Kind& kind : Kinds()) {
    if (!std::regex_search(kind.name, wanted)) continue;
    fs::create_directories(place);
    const std::string file = place + kind.name + ".onnx";
    const std::string input = place + kind.name + ".bin";
    WriteIfAbsent(file, [&](const std::string& path) {
      NetworkBuilder builder(1, kind.precision);
      kind.build(builder);
      builder.Write(path);
    });
    WriteIfAbsent(
        input, [&](const std::string& path) { WriteNoise(path, kind.input); });
    models.push_back({kind.name,
                      kind.words,
                      file,
                      {{"input", "float32", kind.input, input}}});
  }
  return models;
}

}  // namespace rknnd::bench
