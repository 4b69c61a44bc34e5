#include "driver/rknpu/emulator/testing/both_engines.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/core_state.h"
#include "driver/rknpu/emulator/fast/fast_engine.h"
#include "driver/rknpu/emulator/plain/plain_engine.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu::testing {
namespace {

constexpr uint32_t kInput = Arena::kBase, kWeights = kInput + 0x2000,
                   kCoefficients = kInput + 0x4000, kOperand = kInput + 0x4800,
                   kOutput = kInput + 0x6000, kCommands = 0x08000000;

using Choose = std::function<uint32_t(uint32_t)>;

uint32_t Between(const Choose& choose, uint32_t low, uint32_t high) {
  return low + choose(high - low + 1);
}

// Stages with numbers from registers, or a convolution's from memory.
void ChooseStages(const Choose& choose, bool conv, RegisterValues& task) {
  if (choose(2) != 0 || !conv) {
    const uint32_t shift = choose(20);
    constexpr uint32_t kBs[] = {0x20050, 0x20040, 0x20090, 0x42, 0x53, 0x20010};
    task[0x4040] = kBs[choose(conv ? 4 : 6)];
    task[0x4044] = choose(4000) - 2000;
    task[0x4048] = choose(65536) << 16 | shift << 8;
    task[0x404c] = choose(100000);
    task[0x4010] = shift << 4;
    if (conv) {
      task[0x4050] &= ~1U;
      task[0x4054] = choose(300);
      task[0x501c] = 0;
    }
  }
  constexpr uint32_t kBn[] = {0x53, 0x12, 0x92, 0x20050, 0x42, 0x20010};
  task[0x4060] = kBn[choose(6)];
  const uint32_t shift = choose(16);
  task[0x4064] = choose(60000) - 30000;
  task[0x4068] = choose(65536) << 16 | shift << 8;
  task[0x406c] = choose(200000);
  task[0x4010] |= shift << 10;
  task[0x4080] = choose(256) - 128;
  task[0x4084] = choose(65536);
  task[0x4088] = Between(choose, 8, 30);
}

void ChooseOperand(const Choose& choose, bool flying, uint32_t surface,
                   RegisterValues& task) {
  const bool pixel = choose(3) != 0;
  constexpr uint32_t kOperations[] = {0x904202c0, 0x904200c0, 0x904002c4,
                                      0x904003c0, 0x904103c0, 0x904202c0};
  task[0x4070] = kOperations[choose(6)];
  if (!pixel) task[0x4070] &= ~(1U << 28);
  task[0x4074] = choose(512) - 256;
  task[0x4078] = choose(65536) | choose(16) << 16;
  task[0x5034] = pixel ? 0x40000004 : 4;
  task[0x5038] = kOperand;
  task[0x5040] = pixel ? surface : 16;
  if (!flying && pixel) {
    task[0x5018] = kOperand;
    task[0x5038] = kOperand + surface;
    task[0x5044] = 0x7d00;
    task[0x506c] = surface;
  }
  // Sometimes the operand lies where the result goes, or beside it.
  if (choose(4) == 0) {
    const uint32_t to = task[0x4020] + 16 * choose(3);
    task[0x5038] += to - kOperand;
    if (!flying && pixel) task[0x5018] = to;
  }
}

AnyTask ChooseConv(const Choose& choose) {
  ConvShape shape;
  shape.depthwise = choose(3) == 0;
  const bool image = !shape.depthwise && choose(5) == 0;
  shape.interleaved = image ? Between(choose, 1, 4) : 0;
  shape.channels = image ? 16 : 16 * Between(choose, 1, 5);
  shape.width = Between(choose, 1, 12);
  shape.height = Between(choose, 1, 6);
  shape.grouped_lines = choose(2) != 0;
  shape.kernel_width = Between(choose, 1, 3);
  shape.kernel_height = Between(choose, 1, 3);
  if (!shape.depthwise && !image && choose(4) == 0) {
    shape.spread_x = Between(choose, 1, 3);
    shape.spread_y = Between(choose, 2, 3);
  } else {
    shape.stride_x = Between(choose, 1, 3);
    shape.stride_y = Between(choose, 1, 2);
  }
  shape.pad_left = choose(3);
  shape.pad_top = choose(3);
  shape.pad = choose(65536);
  shape.out_width = Between(choose, 1, 9);
  shape.out_height = Between(choose, 1, 5);
  shape.kernels = Between(choose, 1, 48);
  shape.out_channels = shape.depthwise ? (shape.channels + 63) / 64 * 64
                                       : (shape.kernels + 31) / 32 * 32;
  shape.input = kInput;
  shape.weights = kWeights;
  shape.coefficients = kCoefficients;
  shape.output = kOutput;
  AnyTask task;
  task.mask = kConvMask;
  task.registers = ConvTask(shape);
  ChooseStages(choose, true, task.registers);
  if (!shape.depthwise && choose(4) == 0) {
    ChooseOperand(choose, false, task.registers[0x4024], task.registers);
  } else if (choose(4) == 0) {
    UseTable(task.registers);
    task.loads_tables = true;
  }
  return task;
}

AnyTask ChooseFlight(const Choose& choose) {
  const uint32_t width = Between(choose, 1, 20), height = Between(choose, 1, 5),
                 channels = 16 * Between(choose, 1, 4);
  AnyTask task;
  // Sometimes in place, or a little beside.
  const uint32_t to = choose(4) == 0 ? kInput + 16 * choose(3) : kOutput;
  task.registers = FlightTask(width, height, channels, kInput, to);
  if (choose(4) != 0) ChooseStages(choose, false, task.registers);
  if (choose(3) == 0) {
    ChooseOperand(choose, true, task.registers[0x4024], task.registers);
  } else if (choose(3) == 0) {
    UseTable(task.registers);
    task.registers[0x4120] = choose(65536);
    task.registers[0x4124] = choose(32);
    task.registers[0x4128] = choose(65536) << 16;
    task.registers[0x412c] = choose(32) << 5;
    task.loads_tables = true;
  }
  if (choose(3) == 0) {
    task.registers[0x5048] = choose(3) << 19;
    const uint32_t notch = choose(3);
    task.registers[0x4038] = notch << 16 | notch;
  }
  return task;
}

AnyTask ChoosePool(const Choose& choose) {
  AnyTask task;
  task.mask = kPoolMask;
  task.registers = PoolTask(Between(choose, 1, 9), Between(choose, 1, 7), 32,
                            kInput, kOutput);
  task.registers[0x6034] =
      choose(4) | choose(4) << 8 | choose(3) << 16 | choose(3) << 20;
  task.registers[0x6040] = choose(8) | choose(8) << 4;
  if (choose(2) == 0) {
    task.registers[0x6024] = 0x10;
    task.registers[0x6038] = choose(0x20000);
    task.registers[0x603c] = choose(0x20000);
  }
  return task;
}

// Commands that load tables of the shape that real ones have.
std::vector<uint64_t> SomeTables() {
  std::vector<int16_t> le, lo;
  for (int i = 0; i <= 512; ++i) {
    le.push_back(static_cast<int16_t>(-i * (512 - i) / 16));
    lo.push_back(static_cast<int16_t>(60 * i + i % 7));
  }
  return TableCommands(le, lo);
}

// One engine's end: how, and what it left.
struct End {
  absl::Status status;
  bool fast = false;
  std::vector<std::byte> bytes;
};

End RunOne(const AnyTask& task, const std::vector<uint8_t>& fill,
           const fast::Kernels* kernels, const RunOptions& options) {
  Arena arena(kArenaBytes);
  for (size_t i = 0; i < arena.bytes().size() && !fill.empty(); ++i) {
    arena.bytes()[i] = std::byte{fill[i % fill.size()]};
  }
  TaskProgram program(kCommands);
  program.Add(task.mask, task.registers, 1,
              task.loads_tables && (task.mask & kFlightMask) != 0
                  ? SomeTables()
                  : std::vector<uint64_t>());
  program.Finish(arena.memory());
  CoreState state;
  state.Reset();
  const Task& entry = program.tasks()[0];
  End end;
  end.status = state.Load(entry, nullptr, 0, arena.memory());
  if (!end.status.ok()) return end;
  TaskRegisters registers = state.Registers(entry);
  Access access(arena.memory(), options);
  const auto finish = [&] {
    end.status = access.status();
    end.bytes = arena.bytes();
  };
  std::optional<fast::FastEngine> engine;
  if (kernels != nullptr) engine.emplace(*kernels);
  if (task.mask == kPoolMask) {
    const PoolSpec pool = ReadPool(registers);
    if (!registers.status().ok()) return {registers.status(), false, {}};
    RunPlainPool(pool, access);
  } else if (task.mask == kFlightMask) {
    const FlightSpec flight = ReadFlight(registers);
    if (!registers.status().ok()) return {registers.status(), false, {}};
    end.fast = engine && engine->RunFlight(flight, state.tables(), access);
    if (!end.fast) RunPlainFlight(flight, state.tables(), access);
  } else {
    const ConvSpec conv = ReadConv(registers);
    const OutputSpec output = ReadConvOutput(registers, conv);
    if (!registers.status().ok()) return {registers.status(), false, {}};
    end.fast = engine && engine->RunConv(conv, output, state.tables(), access);
    if (!end.fast) RunPlainConv(conv, output, state.tables(), access);
  }
  finish();
  return end;
}

}  // namespace

AnyTask ChooseTask(const Choose& choose) {
  const uint32_t kind = choose(8);
  return kind < 4   ? ChooseConv(choose)
         : kind < 7 ? ChooseFlight(choose)
                    : ChoosePool(choose);
}

Comparison RunBoth(const AnyTask& task, const std::vector<uint8_t>& fill,
                   const fast::Kernels& kernels) {
  const End plain = RunOne(task, fill, nullptr, {});
  const End fast = RunOne(task, fill, &kernels, {});
  Comparison result;
  result.ran = plain.status.ok();
  result.fast = fast.fast;
  result.refusal = std::string(plain.status.message());
  if (plain.status.code() != fast.status.code()) {
    result.difference = absl::StrCat("plain: ", plain.status.ToString(),
                                     ", fast: ", fast.status.ToString());
  } else if (plain.status.ok() && plain.bytes != fast.bytes) {
    const auto at = std::mismatch(plain.bytes.begin(), plain.bytes.end(),
                                  fast.bytes.begin());
    result.difference = absl::StrCat(
        "byte 0x", absl::Hex(at.first - plain.bytes.begin()), " is ",
        static_cast<int>(static_cast<int8_t>(*at.first)), ", fast ",
        static_cast<int>(static_cast<int8_t>(*at.second)));
  }
  return result;
}

bool EndsWhenStopped(const AnyTask& task, const fast::Kernels* kernels) {
  const std::atomic<bool> stopped = true;
  RunOptions options;
  options.stop = &stopped;
  return RunOne(task, {}, kernels, options).status.code() ==
         absl::StatusCode::kCancelled;
}

}  // namespace rknnd::rknpu::testing
