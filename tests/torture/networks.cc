// See networks.h.

#include "tests/torture/networks.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace rknnd::torture {
namespace {

// Inputs and the sums of all constants stay far from where int32 ends.
constexpr uint32_t kInputMask = 0xfffff;
constexpr uint32_t kConstants = 1000;
constexpr int32_t kPoison = std::numeric_limits<int32_t>::min();

}  // namespace

int32_t ConstantOf(const Network& network, uint32_t layer, uint32_t i) {
  return static_cast<int32_t>(
      (network.salt * 2654435761U + layer * 97U + i * 31U) % kConstants);
}

std::string ToArgument(const NetworkFile& file) {
  return file.path + "," + std::to_string(file.network.salt) + "," +
         std::to_string(file.network.elements) + "," +
         std::to_string(file.network.layers);
}

NetworkFile FromArgument(const std::string& text) {
  NetworkFile file;
  const size_t comma = text.find(',');
  Network& network = file.network;
  if (comma == std::string::npos ||
      std::sscanf(text.c_str() + comma, ",%u,%u,%u", &network.salt,
                  &network.elements, &network.layers) != 3) {
    throw std::runtime_error("'" + text +
                             "' is no network: PATH,SALT,ELEMENTS,LAYERS");
  }
  file.path = text.substr(0, comma);
  return file;
}

Arithmetic::Arithmetic(const Network& network)
    : network_(network), offsets_(network.elements) {
  for (uint32_t layer = 0; layer < network.layers; ++layer) {
    for (uint32_t i = 0; i < network.elements; ++i) {
      offsets_[i] += ConstantOf(network, layer, i);
    }
  }
}

int32_t Arithmetic::InputAt(uint64_t frame, size_t i) const {
  return static_cast<int32_t>((frame + i * 13 + network_.salt) & kInputMask);
}

void Arithmetic::FillInput(uint64_t frame, int32_t* input) const {
  for (size_t i = 0; i < offsets_.size(); ++i) input[i] = InputAt(frame, i);
}

void Arithmetic::Poison(int32_t* output) const {
  std::fill_n(output, offsets_.size(), kPoison);
}

std::string Arithmetic::Differs(uint64_t frame, const int32_t* output) const {
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const int32_t right = InputAt(frame, i) + offsets_[i];
    if (output[i] == right) continue;
    std::string text = "element " + std::to_string(i) + " is ";
    if (output[i] == kPoison) return text + "not written";
    text += std::to_string(output[i]) + ", not " + std::to_string(right);
    // Frames differ by one in every element.
    const int64_t apart = int64_t{output[i]} - right;
    return text + " (as frame " +
           std::to_string(static_cast<int64_t>(frame) + apart) + " would)";
  }
  return "";
}

}  // namespace rknnd::torture
