// See task_registers.h.

#include "driver/rknpu/emulator/task_registers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rknnd::rknpu {
namespace {

// The bank's place of a register's number; kBankedBlocks: none.
size_t PlaceOf(uint16_t reg) {
  for (size_t i = 0; i < kBankedBlocks; ++i) {
    if (Blocks()[i].page == reg >> 12) return i;
  }
  return kBankedBlocks;
}

}  // namespace

uint32_t TaskRegisters::Value(uint16_t reg) {
  const Bank* const bank = banks_[PlaceOf(reg)];
  if (bank != nullptr && bank->Has(reg)) {
    return status_.ok() ? bank->Value(reg) : 0;
  }
  if (status_.ok()) {
    status_ = absl::UnimplementedError(
        absl::StrCat(NameOf(reg),
                     " has no value: neither this task nor the one before last "
                     "that used the block writes it"));
  }
  return 0;
}

uint32_t TaskRegisters::Bits(uint16_t reg, unsigned low, unsigned count) {
  return static_cast<uint32_t>((uint64_t{Value(reg)} >> low) &
                               ((uint64_t{1} << count) - 1));
}

int32_t TaskRegisters::SignedBits(uint16_t reg, unsigned low, unsigned count) {
  const uint32_t bits = Bits(reg, low, count) << (32 - count);
  return static_cast<int32_t>(bits) >> (32 - count);
}

void TaskRegisters::Only(uint16_t reg, uint32_t mask) {
  if ((Value(reg) & ~mask) != 0) {
    Refuse(reg,
           absl::StrCat("only the bits 0x", absl::Hex(mask), " are known"));
  }
}

void TaskRegisters::Expect(uint16_t reg, uint32_t value) {
  if (Value(reg) != value) {
    Refuse(reg, absl::StrCat("only 0x", absl::Hex(value), " is known here"));
  }
}

void TaskRegisters::OneOf(uint16_t reg,
                          std::initializer_list<uint32_t> values) {
  const uint32_t value = Value(reg);
  if (std::find(values.begin(), values.end(), value) == values.end()) {
    Refuse(reg, "no such value is known here");
  }
}

void TaskRegisters::Refuse(uint16_t reg, absl::string_view why) {
  const uint32_t value = Value(reg);
  if (!status_.ok()) return;
  status_ = absl::UnimplementedError(absl::StrCat(
      NameOf(reg), " is 0x", absl::Hex(value, absl::kZeroPad8), ": ", why));
}

}  // namespace rknnd::rknpu
