// See network.h.

#include "bench/cores/network.h"

#include <chrono>
#include <cstdint>
#include <cstring>

#include "bench/common/model_files.h"

namespace rknnd::bench {
namespace {

// Between a quarter and one in half precision; any number of eight bits.
void FillWithNoise(const Memory& memory, rknn_tensor_type type) {
  uint32_t noise = 1;
  const auto next = [&noise] {
    noise = noise * 1664525U + 1013904223U;
    return noise >> 16;
  };
  if (type == RKNN_TENSOR_FLOAT16) {
    auto* halves = memory.as<uint16_t>();
    for (uint32_t i = 0; i < memory.size() / 2; ++i) {
      halves[i] = static_cast<uint16_t>(0x3400 + (next() & 0x7ff));
    }
    return;
  }
  auto* bytes = memory.as<uint8_t>();
  for (uint32_t i = 0; i < memory.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(next());
  }
}

}  // namespace

std::vector<NetworkFile> FindNetworks() {
  std::vector<NetworkFile> networks;
  for (const char* name : {"yolox_nano", "squeezenet_fp16",
                           "retinaface_int8_qdq", "shufflenet_v2_int8"}) {
    const std::string path = FindSharedModel(name);
    if (!path.empty()) {
      networks.push_back({name, path, networks.empty()});
    } else if (networks.empty()) {
      networks.push_back({"detector",
                          RKNND_SOURCE_ROOT "/examples/detector/detector.onnx",
                          true});
    }
  }
  return networks;
}

Network::Network(const NetworkFile& file)
    : context_(Context::FromFile(file.path)) {
  for (const Tensor& input : context_.inputs()) {
    inputs_.push_back(context_.Allocate(input));
    FillWithNoise(inputs_.back(), input.type());
    context_.Bind(input, inputs_.back());
  }
  for (const Tensor& output : context_.outputs()) {
    outputs_.push_back(context_.Allocate(output));
    context_.Bind(output, outputs_.back());
  }
}

std::vector<double> Network::Run(int count) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    context_.Run();
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin)
            .count());
  }
  return times;
}

std::vector<char> Network::TakeAnswer() {
  std::vector<char> answer;
  for (const Memory& output : outputs_) {
    const auto* bytes = output.as<char>();
    answer.insert(answer.end(), bytes, bytes + output.size());
    std::memset(output.data(), 0x55, output.size());
  }
  return answer;
}

}  // namespace rknnd::bench
