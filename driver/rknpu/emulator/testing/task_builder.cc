#include "driver/rknpu/emulator/testing/task_builder.h"

#include <cstdlib>

#include "driver/rknpu/registers/registers.h"

namespace rknnd::rknpu::testing {
namespace {

uint64_t CommandOf(uint16_t reg, uint32_t value) {
  for (const BlockInfo& block : Blocks()) {
    if (block.page == reg >> 12) return Encode({block.target, value, reg});
  }
  std::abort();
}

uint32_t SurfaceBytes(uint32_t width, uint32_t height) {
  const uint32_t pixels = width * height;
  return (pixels == 1 ? 1 : (pixels + 3) / 4 * 4) * 16;
}

// DPU and its reader, for maps of this size; all stages off.
void AddOutput(uint32_t width, uint32_t height, uint32_t channels,
               uint32_t group, uint32_t output, RegisterValues& registers) {
  for (uint16_t reg = 0x4014; reg <= 0x40c4; reg += 4) {
    if (FindRegister(reg) != nullptr) registers[reg] = 0;
  }
  for (uint16_t reg = 0x4108; reg <= 0x412c; reg += 4) registers[reg] = 0;
  registers[0x4004] = 0xe;
  registers[0x4010] = 0;
  registers[0x4020] = output;
  registers[0x4024] = SurfaceBytes(width, height);
  registers[0x4030] = width - 1;
  registers[0x4034] = height - 1;
  registers[0x403c] = (channels - 1) << 16 | (channels - 1);
  registers[0x4040] = registers[0x4060] = 0x53;
  registers[0x4050] = (group - 1) * 0x124 | 2;
  registers[0x4058] = channels - 1;
  registers[0x405c] = (height - 1) << 16 | (width - 1);
  registers[0x4070] = 0x383;
  registers[0x4078] = 1;
  registers[0x4084] = 1;
  registers[0x40c0] = group * SurfaceBytes(width, height);
  for (uint16_t reg = 0x500c; reg <= 0x506c; reg += 4) {
    if (FindRegister(reg) != nullptr) registers[reg] = 0;
  }
  registers[0x5004] = 0xe;
  registers[0x500c] = width - 1;
  registers[0x5010] = height - 1;
  registers[0x5014] = channels - 1;
  registers[0x5034] = 1;
  registers[0x5068] = 0x01010101;
}

}  // namespace

RegisterValues ConvTask(const ConvShape& shape) {
  RegisterValues registers;
  AddOutput(shape.out_width, shape.out_height, shape.out_channels,
            shape.depthwise ? 4 : 2, shape.output, registers);
  registers[0x400c] = shape.depthwise ? 0x1fc : 0x1e4;
  registers[0x4010] = 14 << 4;
  registers[0x4040] = 0x20140;
  registers[0x4048] = 0xe01;
  registers[0x4050] = shape.depthwise ? 0x36d : 0x125;
  registers[0x501c] = 0xe;
  registers[0x5020] = shape.coefficients;
  registers[0x5044] = shape.depthwise ? 0x7816 : 0x7810;

  for (const RegisterInfo& info : Registers()) {
    if (info.reg >> 12 == 1 && info.reg != 0x1004) registers[info.reg] = 0;
  }
  const bool image = shape.interleaved != 0;
  const bool spread = shape.spread_x != 1 || shape.spread_y != 1;
  registers[0x100c] = (shape.depthwise ? 3U : 0U) |
                      (image ? (shape.interleaved + 7) << 12 | 3U << 29 : 0U) |
                      (spread ? 1U << 16 : 0U) |
                      (image || shape.grouped_lines ? 0U : 1U << 29);
  registers[0x1014] = shape.stride_x | shape.stride_y << 3 |
                      (shape.spread_x - 1) << 8 | (shape.spread_y - 1) << 11;
  registers[0x1020] = shape.width << 16 | shape.height;
  registers[0x1024] = shape.channels;
  registers[0x1038] = shape.kernel_width << 24 | shape.kernel_height << 16 |
                      (shape.depthwise ? 1 : shape.kernels);
  registers[0x104c] = 0xb;
  registers[0x1068] = shape.pad_left << 4 | shape.pad_top;
  registers[0x1070] = shape.input;
  const int32_t surface =
      static_cast<int32_t>(SurfaceBytes(shape.width, shape.height) / 16);
  const auto width = static_cast<int32_t>(shape.width);
  if (image) {
    registers[0x107c] = shape.width;
  } else if (shape.grouped_lines) {
    registers[0x107c] = shape.width * 4;
    registers[0x1080] = static_cast<uint32_t>(surface - 4 * width) & 0x0fffffff;
  } else {
    registers[0x107c] = shape.width;
    registers[0x1080] = static_cast<uint32_t>(surface - width) & 0x0fffffff;
  }
  registers[0x1110] = shape.weights;
  registers[0x1184] = shape.pad;
  registers[0x3010] = shape.depthwise ? 3 : 1;
  registers[0x3014] = (shape.out_height - 1) << 16 | (shape.out_width - 1);
  registers[0x3018] = shape.out_channels - 1;
  registers[0x301c] = registers[0x3030] = 0;
  return registers;
}

RegisterValues FlightTask(uint32_t width, uint32_t height, uint32_t channels,
                          uint32_t input, uint32_t output) {
  RegisterValues registers;
  AddOutput(width, height, channels, 1, output, registers);
  registers[0x400c] = 0x1e5;
  registers[0x5018] = input;
  registers[0x5044] = 0x7801;
  // From the end of a surface's last line to the next surface.
  registers[0x504c] = SurfaceBytes(width, height) - width * height * 16;
  return registers;
}

RegisterValues PoolTask(uint32_t width, uint32_t height, uint32_t channels,
                        uint32_t input, uint32_t output) {
  RegisterValues registers;
  for (const RegisterInfo& info : Registers()) {
    if (info.reg >> 12 == 6 || info.reg >> 12 == 7) registers[info.reg] = 0;
  }
  registers[0x6004] = registers[0x7004] = 0xe;
  for (uint16_t reg : {0x600c, 0x6018, 0x700c}) registers[reg] = width - 1;
  for (uint16_t reg : {0x6010, 0x601c, 0x7010}) registers[reg] = height - 1;
  for (uint16_t reg : {0x6014, 0x6020, 0x7014}) registers[reg] = channels - 1;
  registers[0x6024] = 0x11;
  registers[0x6070] = output;
  registers[0x607c] = registers[0x6084] = registers[0x7028] =
      SurfaceBytes(width, height);
  registers[0x60dc] = 3;
  registers[0x701c] = input;
  registers[0x7024] = width * 16;
  registers[0x7030] = 1;
  return registers;
}

void TaskProgram::Add(uint32_t enable_mask, const RegisterValues& registers,
                      uint32_t node, const std::vector<uint64_t>& extra) {
  Task task;
  task.node = node;
  task.enable_mask = enable_mask;
  task.interrupt_mask = enable_mask == kPoolMask ? 0xc00 : 0x300;
  task.words = static_cast<uint32_t>(registers.size() + extra.size());
  task.commands = address_ + words_.size() * sizeof(uint64_t);
  for (const auto& [reg, value] : registers) {
    words_.push_back(CommandOf(reg, value));
  }
  words_.insert(words_.end(), extra.begin(), extra.end());
  // Room for the chain, and to the next multiple of 64 bytes.
  words_.resize((words_.size() + 4 + 7) / 8 * 8, 0);
  tasks_.push_back(task);
}

void TaskProgram::Finish(Memory& memory) {
  const uint16_t pc = InfoOf(Block::kPc).target;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i];
    uint64_t* const chain =
        &words_[(task.commands - address_) / sizeof(uint64_t) + task.words];
    if (i + 1 < tasks_.size()) {
      const Task& next = tasks_[i + 1];
      chain[0] = Encode({pc, static_cast<uint32_t>(next.commands), 0x0010});
      chain[1] = Encode({pc, (next.words + 4 + 1) / 2 - 1, 0x0014});
    } else {
      chain[1] = Encode({pc, 0, 0x0014});
    }
    chain[2] = Encode({kSyncTarget, 0, 0});
    chain[3] = Encode({kEnableTarget, task.enable_mask, 0x0008});
  }
  const auto bytes = std::as_writable_bytes(std::span(words_));
  if (!memory.Attach({address_, bytes, false}).ok()) std::abort();
}

std::vector<uint64_t> TableCommands(std::span<const int16_t> le,
                                    std::span<const int16_t> lo) {
  std::vector<uint64_t> commands;
  uint32_t table = 0;
  for (const std::span<const int16_t> entries : {le, lo}) {
    commands.push_back(CommandOf(0x4100, 0x20000 | table << 16));
    for (const int16_t entry : entries) {
      commands.push_back(CommandOf(0x4104, static_cast<uint32_t>(entry)));
    }
    ++table;
  }
  return commands;
}

void UseTable(RegisterValues& registers) {
  registers[0x4004] = registers[0x5004] = 0x30;
  registers[0x4070] = 0x302;
  registers[0x4108] = 0x68;
  registers[0x410c] = 0x50500;
  registers[0x4110] = 0xffffc000;
  registers[0x411c] = 0x4000;
}

}  // namespace rknnd::rknpu::testing
