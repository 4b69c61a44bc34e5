// The registers that one task is executed with, and how they are read: each
// reader says which bits of a register it understands, and the first value that
// is outside of that ends the reading with a text that names it. So what turns
// registers into the description of a task reads straight through and asks once
// at the end whether all was well.
//
// The values come from a program that nobody vouches for. Thread: any.

#ifndef DRIVER_RKNPU_EMULATOR_TASK_REGISTERS_H_
#define DRIVER_RKNPU_EMULATOR_TASK_REGISTERS_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "driver/rknpu/registers/registers.h"

namespace rknnd::rknpu {

// One of the two banks of a block.
class Bank {
 public:
  void Write(uint16_t reg, uint32_t value) {
    values_[Index(reg)] = value;
    written_.set(Index(reg));
  }
  void Clear() { written_.reset(); }
  [[nodiscard]] bool Has(uint16_t reg) const {
    return written_.test(Index(reg));
  }
  [[nodiscard]] uint32_t Value(uint16_t reg) const {
    return values_[Index(reg)];
  }

 private:
  static constexpr size_t kRegisters = 1024;
  static size_t Index(uint16_t reg) { return (reg & 0xfffU) >> 2; }

  std::array<uint32_t, kRegisters> values_ = {};
  std::bitset<kRegisters> written_;
};

class TaskRegisters {
 public:
  // The banks outlive this object; null: the task does not use the block.
  explicit TaskRegisters(const std::array<const Bank*, kBankedBlocks>& banks)
      : banks_(banks) {}

  [[nodiscard]] bool Uses(Block block) const {
    return banks_[static_cast<size_t>(block)] != nullptr;
  }

  // The value; 0 after a refusal. A register that neither this task nor the one
  // before last wrote is refused.
  uint32_t Value(uint16_t reg);
  // Bits `low` to `low + count - 1` of it.
  uint32_t Bits(uint16_t reg, unsigned low, unsigned count);
  // The same as a number with a sign.
  int32_t SignedBits(uint16_t reg, unsigned low, unsigned count);
  // Refuses bits outside of `mask`.
  void Only(uint16_t reg, uint32_t mask);
  void Expect(uint16_t reg, uint32_t value);
  void OneOf(uint16_t reg, std::initializer_list<uint32_t> values);

  // "CNA CONV_CON1 (0x100c) is 0x00000007: `why`". The first one counts.
  void Refuse(uint16_t reg, absl::string_view why);
  // UNIMPLEMENTED after a refusal.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  std::array<const Bank*, kBankedBlocks> banks_;
  absl::Status status_;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_TASK_REGISTERS_H_
