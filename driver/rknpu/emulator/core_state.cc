// See core_state.h.

#include "driver/rknpu/emulator/core_state.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::rknpu {
namespace {

// Values of a block's pointer register.
constexpr uint32_t kPingPong = 0xe;    // the banks take turns
constexpr uint32_t kFirstBank = 0x30;  // bank 0, and no turns
constexpr uint16_t kTableConfig = 0x4100, kTableData = 0x4104;
constexpr size_t kChainWords = 4;

uint64_t WordAt(const std::byte* words, size_t i) {
  uint64_t word;
  std::memcpy(&word, words + i * sizeof(word), sizeof(word));
  return word;
}

// What the second word of a chain says of a task with so many words.
uint32_t LengthOf(uint32_t words) {
  return static_cast<uint32_t>((uint64_t{words} + kChainWords + 1) / 2 - 1);
}

}  // namespace

void CoreState::Reset() {
  for (auto& banks : banks_) {
    for (Bank& bank : banks) bank.Clear();
  }
  pointers_ = {};
  stays_ = {};
  table_writes_ = false;
  for (auto& loaded : tables_.loaded) loaded.reset();
  ++tables_.version;
}

absl::Status CoreState::Load(const Task& task, const Task* next, size_t others,
                             const Memory& memory) {
  if (task.commands % sizeof(uint64_t) != 0 || task.words == 0) {
    return absl::InvalidArgumentError(absl::StrCat("its commands are ",
                                                   task.words, " words at 0x",
                                                   absl::Hex(task.commands)));
  }
  const uint64_t bytes =
      (uint64_t{task.words} + kChainWords) * sizeof(uint64_t);
  const std::byte* const words = memory.Readable(task.commands, bytes);
  if (words == nullptr) {
    return absl::OutOfRangeError(absl::StrCat(
        "its ", task.words, " commands and the chain at 0x",
        absl::Hex(task.commands), " are not inside the job's memory"));
  }
  RKNND_RETURN_IF_ERROR(CheckChain(task, next, others, words));
  RKNND_RETURN_IF_ERROR(Points(task, words));
  for (size_t i = 0; i < task.words; ++i) {
    const absl::Status status = Write(task, WordAt(words, i));
    if (!status.ok()) {
      return base::Annotate(status, absl::StrCat("command ", i));
    }
  }
  return absl::OkStatus();
}

// Pointers count for all words of the task, wherever they stand in it.
absl::Status CoreState::Points(const Task& task, const std::byte* words) {
  std::array<uint32_t, kBankedBlocks> values = {};
  for (size_t i = 0; i < task.words; ++i) {
    const Command command = Decode(WordAt(words, i));
    for (const BlockInfo& block : Blocks()) {
      if (block.pointer == 0 || command.reg != block.pointer) continue;
      uint32_t& value = values[static_cast<size_t>(block.block)];
      if ((command.value != kPingPong && command.value != kFirstBank) ||
          (value != 0 && value != command.value)) {
        return absl::UnimplementedError(absl::StrCat(
            NameOf(command.reg), " is 0x", absl::Hex(command.value),
            ": 0xe or 0x30 is known, one of them in a task"));
      }
      value = command.value;
    }
  }
  for (size_t i = 0; i < kBankedBlocks; ++i) {
    const BlockInfo& block = Blocks()[i];
    stays_[i] = values[i] == kFirstBank;
    if (stays_[i]) pointers_[i] = 0;
    // The kernel sets those of CNA and CORE before a job.
    const bool by_kernel =
        block.block == Block::kCna || block.block == Block::kCore;
    if ((task.enable_mask & block.enable) != 0 && values[i] == 0 &&
        !by_kernel) {
      return absl::UnimplementedError(
          absl::StrCat("the task enables the ", block.name,
                       " and does not write ", NameOf(block.pointer)));
    }
  }
  return absl::OkStatus();
}

absl::Status CoreState::Write(const Task& task, uint64_t word) {
  const Command command = Decode(word);
  const BlockInfo* const block = BlockOfTarget(command.target);
  if (block == nullptr || block->enable == 0 ||
      command.reg >> 12 != block->page ||
      FindRegister(command.reg) == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(NameOf(command.reg), " of target 0x",
                     absl::Hex(command.target, absl::kZeroPad4), ", value 0x",
                     absl::Hex(command.value, absl::kZeroPad8),
                     ": no such register is known"));
  }
  if ((task.enable_mask & block->enable) == 0) {
    return absl::UnimplementedError(
        absl::StrCat(NameOf(command.reg), " is 0x", absl::Hex(command.value),
                     ": the task does not enable the ", block->name));
  }
  if (command.reg == block->pointer) return absl::OkStatus();
  if (command.reg == kTableConfig || command.reg == kTableData) {
    return WriteTable(command.reg, command.value);
  }
  const auto i = static_cast<size_t>(block->block);
  banks_[i][pointers_[i]].Write(command.reg, command.value);
  return absl::OkStatus();
}

absl::Status CoreState::WriteTable(uint16_t reg, uint32_t value) {
  if (reg == kTableConfig) {
    if ((value & ~0x303ffU) != 0) {
      return absl::UnimplementedError(
          absl::StrCat(NameOf(reg), " is 0x", absl::Hex(value),
                       ": only the bits 0x303ff are known"));
    }
    table_writes_ = (value & 0x20000) != 0;
    table_ = (value >> 16) & 1;
    entry_ = value & 0x3ff;
    return absl::OkStatus();
  }
  if (!table_writes_) return absl::OkStatus();
  if (entry_ >= Tables::kEntries) {
    return absl::UnimplementedError(
        absl::StrCat(NameOf(reg), " is 0x", absl::Hex(value), ": entry ",
                     entry_, " is beyond the table's end"));
  }
  tables_.entries[table_][entry_] = static_cast<int16_t>(value);
  tables_.loaded[table_].set(entry_);
  ++tables_.version;
  ++entry_;
  return absl::OkStatus();
}

absl::Status CoreState::CheckChain(const Task& task, const Task* next,
                                   size_t others,
                                   const std::byte* words) const {
  const auto at = [&](size_t i) {
    return Decode(WordAt(words, task.words + i));
  };
  const Command address = at(0), length = at(1), enable = at(3);
  const uint16_t pc = InfoOf(Block::kPc).target;
  if (enable.target != kEnableTarget || enable.value != task.enable_mask) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its last word enables 0x", absl::Hex(enable.value), " (target 0x",
        absl::Hex(enable.target), "), its entry of the task table 0x",
        absl::Hex(task.enable_mask)));
  }
  if (next == nullptr) return absl::OkStatus();
  const bool leads = address.target == pc && address.reg == 0x0010 &&
                     address.value == next->commands && length.target == pc &&
                     length.reg == 0x0014 &&
                     (length.value & 0xffff) == LengthOf(next->words);
  if (!leads) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its chain leads to 0x", absl::Hex(address.value), ", length ",
        length.value & 0xffff, "; the job's next task is at 0x",
        absl::Hex(next->commands), ", length ", LengthOf(next->words)));
  }
  const uint32_t waits_for = (length.value >> 16) & 3;
  if (waits_for != 0 && waits_for != others) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it waits for ", waits_for, " other cores, the job has ", others));
  }
  return absl::OkStatus();
}

TaskRegisters CoreState::Registers(const Task& task) const {
  std::array<const Bank*, kBankedBlocks> banks = {};
  for (size_t i = 0; i < kBankedBlocks; ++i) {
    if ((task.enable_mask & Blocks()[i].enable) != 0) {
      banks[i] = &banks_[i][pointers_[i]];
    }
  }
  return TaskRegisters(banks);
}

void CoreState::Finish(const Task& task) {
  for (size_t i = 0; i < kBankedBlocks; ++i) {
    if ((task.enable_mask & Blocks()[i].enable) != 0 && !stays_[i]) {
      pointers_[i] ^= 1;
    }
  }
}

}  // namespace rknnd::rknpu
