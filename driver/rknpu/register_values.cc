#include "driver/rknpu/register_values.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/rknpu/registers/registers.h"

namespace rknnd::rknpu {
namespace {

constexpr uint32_t kNoNode = UINT32_MAX;
// What a block's pointer says: banks take turns, or it is always the first one.
constexpr uint32_t kTurns = 0xe;
constexpr uint32_t kStays = 0x30;

// Of its banks; of those without banks kBankedBlocks.
size_t PlaceOf(const BlockInfo* block) {
  return block == nullptr
             ? kBankedBlocks
             : std::min(static_cast<size_t>(block->block), kBankedBlocks);
}

}  // namespace

RegisterValues::RegisterValues(const ProgramFile& file)
    : file_(file), addresses_(file.commands.size()), blocks_(kBankedBlocks) {
  for (const Relocation& relocation : file.relocations) {
    addresses_[relocation.word] = &relocation;
  }
  BeginJob();
}

void RegisterValues::BeginJob() {
  node_ = kNoNode;
  for (BlockState& block : blocks_) block.current = 0;
}

absl::Status RegisterValues::FindModes(const TaskEntry& task) {
  const uint64_t first = task.commands / sizeof(uint64_t);
  for (size_t b = 0; b < kBankedBlocks; ++b) {
    blocks_[b].is_used = (task.enable_mask & Blocks()[b].enable) != 0;
    blocks_[b].stays = false;
  }
  for (uint64_t at = first; at < first + task.words; ++at) {
    const Command command = Decode(WordAt(at));
    const BlockInfo* block = BlockOfTarget(command.target);
    const size_t place = PlaceOf(block);
    if (place == kBankedBlocks || !blocks_[place].is_used ||
        command.reg >> 12 != block->page) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its word ", at, " writes ", NameOf(command.reg), " by the target 0x",
          absl::Hex(command.target), ", which the task does not use"));
    }
    if (block->pointer == 0 || command.reg != block->pointer) continue;
    if (command.value != kTurns && command.value != kStays) {
      return absl::InvalidArgumentError(
          absl::StrCat("its word ", at, " sets ", NameOf(command.reg), " to 0x",
                       absl::Hex(command.value), ", which is not known"));
    }
    blocks_[place].stays = command.value == kStays;
  }
  return absl::OkStatus();
}

absl::Status RegisterValues::BeginTask(const TaskEntry& task) {
  RKNND_RETURN_IF_ERROR(FindModes(task));
  if (task.node != node_) {
    node_ = task.node;
    ++epoch_;
  }
  for (BlockState& block : blocks_) {
    if (block.stays) block.current = 0;
  }
  const uint64_t first = task.commands / sizeof(uint64_t);
  for (uint64_t at = first; at < first + task.words; ++at) {
    const Command command = Decode(WordAt(at));
    BlockState& block = blocks_[PlaceOf(BlockOfTarget(command.target))];
    Entry& entry = block.banks[block.current][(command.reg & 0xfffU) >> 2];
    const Relocation* address = addresses_[static_cast<size_t>(at)];
    // What the file has in place of an address is not what will stand there.
    entry.value = address == nullptr
                      ? Value{command.value, true, -1}
                      : Value{address->addend, true,
                              static_cast<int32_t>(address->tensor)};
    entry.epoch = epoch_;
  }
  return absl::OkStatus();
}

void RegisterValues::EndTask() {
  for (BlockState& block : blocks_) {
    if (block.is_used && !block.stays) block.current ^= 1;
  }
}

RegisterValues::Value RegisterValues::At(uint16_t number) const {
  for (size_t b = 0; b < kBankedBlocks; ++b) {
    if (number >> 12 != Blocks()[b].page) continue;
    const BlockState& block = blocks_[b];
    const Entry& entry = block.banks[block.current][(number & 0xfffU) >> 2];
    if (block.is_used && entry.epoch == epoch_) return entry.value;
  }
  return {};
}

}  // namespace rknnd::rknpu
