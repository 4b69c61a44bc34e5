#include "driver/rknpu/testing/small_network.h"

#include "driver/rknpu/emulator/testing/task_builder.h"
#include "driver/rknpu/testing/task_writer.h"

namespace rknnd::rknpu::testing {
namespace {

constexpr uint32_t kHeight = 4, kWidth = 5, kChannels = 3, kOut = 32;
// A line of pixels is 16 of them long, a map comes in two surfaces.
constexpr uint32_t kInputBytes = kHeight * 16 * kChannels;
constexpr uint32_t kMapBytes = 2 * kHeight * kWidth * 16;

// Every channel to itself; the output stages do the rest.
Registers Pass() {
  Registers registers = ConvTask({.width = kWidth,
                                  .height = kHeight,
                                  .interleaved = kChannels,
                                  .kernels = kChannels,
                                  .out_width = kWidth,
                                  .out_height = kHeight,
                                  .out_channels = kOut});
  registers[0x4010] = 0;
  registers[0x4048] = 0;
  registers[0x4050] = 0x126;  // no ow, two surfaces a group
  registers[0x501c] = 0;
  return registers;
}

TensorSpec Map(const std::string& name, uint8_t kind, uint32_t offset) {
  return {.name = name,
          .kind = kind,
          .native_shape = {1, 1, kHeight, kWidth, 16},
          .shape = {1, kChannels, kHeight, kWidth},
          .scales = {1.0F},
          .zero_points = {0},
          .bytes = kMapBytes,
          .offset = offset};
}

}  // namespace

ProgramSpec SmallNetwork(int8_t added, uint32_t slices) {
  constexpr uint32_t kElements = kChannels * kHeight * kWidth;
  TaskWriter writer;
  ProgramSpec& spec = writer.spec();
  // Three kernels of 16 channels.
  std::string weights(kChannels * 16, '\0');
  for (uint32_t c = 0; c < kChannels; ++c) weights[c * 16 + c] = 1;
  spec.tensors = {{.layout = 0, .kind = 0},
                  {.name = "w",
                   .layout = 65,
                   .kind = 4,
                   .native_shape = {1, 1, 1, 1, kChannels, 16},
                   .shape = {kChannels, kChannels, 1, 1},
                   .bytes = static_cast<uint32_t>(weights.size()),
                   .data = weights},
                  {.name = "x",
                   .kind = 1,
                   .native_shape = {1, 1, kHeight, kWidth, kChannels},
                   .shape = {1, kChannels, kHeight, kWidth},
                   .scales = {1.0F},
                   .zero_points = {0},
                   .bytes = kInputBytes},
                  Map("y", 2, kInputBytes),
                  Map("s", 3, kInputBytes + kMapBytes),
                  {.name = "sum",
                   .layout = 0,
                   .kind = 2,
                   .native_shape = {1, kElements},
                   .shape = {1, kElements},
                   .scales = {1.0F},
                   .zero_points = {0},
                   .bytes = 64,
                   .offset = kInputBytes + 2 * kMapBytes}};
  spec.weight_bytes = 64;
  spec.internal_bytes = kInputBytes + 2 * kMapBytes + 64;
  spec.inputs = {2};
  spec.outputs = {3, 5};
  spec.batch = slices > 1 ? std::to_string(slices) : "0";

  Registers relu = Pass();
  relu[0x4040] = 0x12;
  writer.Node("relu").Add(0x1d, relu,
                          {{0x1070, "x"}, {0x1110, "w"}, {0x4020, "y"}});
  spec.nodes.back().type = "ConvRelu";
  spec.nodes.back().inputs = {2, 1};
  spec.nodes.back().outputs = {3};
  Registers add = Pass();
  add[0x4040] = 0x20050;
  add[0x4044] = static_cast<uint32_t>(int32_t{added});
  writer.Node("add").Add(0x1d, add,
                         {{0x1070, "x"}, {0x1110, "w"}, {0x4020, "s"}});
  spec.nodes.back().inputs = {2, 1};
  spec.nodes.back().outputs = {4};
  spec.nodes.push_back({.type = "Reshape",
                        .name = "flat",
                        .device = 0,
                        .inputs = {4},
                        .outputs = {5},
                        .tasks = {0}});
  spec.nodes.push_back({.type = "OutputOperator",
                        .name = "OutputOperator:y",
                        .device = 0,
                        .inputs = {3},
                        .tasks = {0}});
  return spec;
}

}  // namespace rknnd::rknpu::testing
