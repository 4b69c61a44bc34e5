// The registers of the RK3588's NPU by name: what a command's target and
// number mean to a person. Used by the emulator, which names what it refuses,
// and by the disassembler. Knows nothing of what the registers do.
//
// Names are those of the public register map where it is known to us, and say
// what the register is for elsewhere. Thread: any.

#ifndef DRIVER_RKNPU_REGISTERS_REGISTERS_H_
#define DRIVER_RKNPU_REGISTERS_REGISTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rknnd::rknpu {

// The parts of the NPU that a command may address. Those up to kPoolReader
// have two banks of registers each.
enum class Block : uint8_t {
  kCna,         // input and weights
  kCore,        // sums of products
  kDpu,         // output stages and writer
  kDpuReader,   // DPU_RDMA
  kPool,        // PPU
  kPoolReader,  // PPU_RDMA
  kPc,          // the chain of tasks
};
inline constexpr size_t kBankedBlocks = 6;

// A 64-bit command word.
struct Command {
  uint16_t target = 0;  // block that it is sent to
  uint32_t value = 0;
  uint16_t reg = 0;
};
constexpr Command Decode(uint64_t word) {
  return {static_cast<uint16_t>(word >> 48), static_cast<uint32_t>(word >> 16),
          static_cast<uint16_t>(word)};
}
constexpr uint64_t Encode(const Command& command) {
  return (uint64_t{command.target} << 48) | (uint64_t{command.value} << 16) |
         command.reg;
}

// Targets that are no block with registers of its own.
inline constexpr uint16_t kSyncTarget = 0x0041;
inline constexpr uint16_t kEnableTarget = 0x0081;

struct BlockInfo {
  Block block;
  const char* name;
  uint16_t target;
  uint16_t page;     // upper four bits of its registers' numbers
  uint32_t enable;   // its bit of a task's enable mask; 0: none
  uint16_t pointer;  // register that chooses its bank; 0: none
};
// In the order of Block.
std::span<const BlockInfo> Blocks();
inline const BlockInfo& InfoOf(Block block) {
  return Blocks()[static_cast<size_t>(block)];
}
// Null: no block has that target.
const BlockInfo* BlockOfTarget(uint16_t target);

struct RegisterInfo {
  uint16_t reg;
  const char* name;  // "CONV_CON1"
};
// Null: no register of that number is known.
const RegisterInfo* FindRegister(uint16_t reg);
// All that are known, by number.
std::span<const RegisterInfo> Registers();

// "CNA CONV_CON1 (0x100c)", also of a register that is not known.
std::string NameOf(uint16_t reg);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_REGISTERS_REGISTERS_H_
