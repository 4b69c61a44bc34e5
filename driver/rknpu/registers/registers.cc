// See registers.h.

#include "driver/rknpu/registers/registers.h"

#include <algorithm>
#include <cstdio>

namespace rknnd::rknpu {
namespace {

constexpr std::array<BlockInfo, 7> kBlocks = {{
    {Block::kCna, "CNA", 0x0201, 1, 1U << 0, 0x1004},
    {Block::kCore, "CORE", 0x0801, 3, 1U << 2, 0x3004},
    {Block::kDpu, "DPU", 0x1001, 4, 1U << 3, 0x4004},
    {Block::kDpuReader, "DPU_RDMA", 0x2001, 5, 1U << 4, 0x5004},
    {Block::kPool, "PPU", 0x4001, 6, 1U << 5, 0x6004},
    {Block::kPoolReader, "PPU_RDMA", 0x8001, 7, 1U << 6, 0x7004},
    {Block::kPc, "PC", 0x0101, 0, 0, 0},
}};

constexpr RegisterInfo kRegisters[] = {
    {0x0008, "BLOCK_ENABLE"},
    {0x0010, "NEXT_ADDRESS"},
    {0x0014, "NEXT_LENGTH"},
    {0x1004, "POINTER"},
    {0x100c, "CONV_CON1"},
    {0x1010, "CONV_CON2"},
    {0x1014, "CONV_CON3"},
    {0x1020, "DATA_SIZE0"},
    {0x1024, "DATA_SIZE1"},
    {0x1028, "DATA_SIZE2"},
    {0x102c, "DATA_SIZE3"},
    {0x1030, "WEIGHT_SIZE0"},
    {0x1034, "WEIGHT_SIZE1"},
    {0x1038, "WEIGHT_SIZE2"},
    {0x1040, "CBUF_CON0"},
    {0x1044, "CBUF_CON1"},
    {0x104c, "CVT_CON0"},
    {0x1050, "CVT_CON1"},
    {0x1054, "CVT_CON2"},
    {0x1058, "CVT_CON3"},
    {0x105c, "CVT_CON4"},
    {0x1060, "FC_CON0"},
    {0x1064, "FC_CON1"},
    {0x1068, "PAD_CON0"},
    {0x1070, "FEATURE_DATA_ADDR"},
    {0x1074, "FC_CON2"},
    {0x1078, "DMA_BURSTS"},
    {0x107c, "LINE_STRIDE"},
    {0x1080, "SURF_STRIDE"},
    {0x1084, "DMA_SIZE0"},
    {0x1088, "DMA_SIZE1"},
    {0x1100, "DCOMP_CTRL"},
    {0x1104, "DCOMP_REGNUM"},
    {0x1110, "DCOMP_ADDR0"},
    {0x1140, "DCOMP_AMOUNT0"},
    {0x1144, "DCOMP_AMOUNT1"},
    {0x1148, "DCOMP_AMOUNT2"},
    {0x114c, "DCOMP_AMOUNT3"},
    {0x1150, "DCOMP_AMOUNT4"},
    {0x1154, "DCOMP_AMOUNT5"},
    {0x1158, "DCOMP_AMOUNT6"},
    {0x115c, "DCOMP_AMOUNT7"},
    {0x1160, "DCOMP_AMOUNT8"},
    {0x1164, "DCOMP_AMOUNT9"},
    {0x1168, "DCOMP_AMOUNT10"},
    {0x116c, "DCOMP_AMOUNT11"},
    {0x1170, "DCOMP_AMOUNT12"},
    {0x1174, "DCOMP_AMOUNT13"},
    {0x1178, "DCOMP_AMOUNT14"},
    {0x117c, "DCOMP_AMOUNT15"},
    {0x1180, "CVT_CON5"},
    {0x1184, "PAD_CON1"},
    {0x3004, "POINTER"},
    {0x3010, "MISC_CFG"},
    {0x3014, "OUTPUT_SIZE0"},
    {0x3018, "OUTPUT_SIZE1"},
    {0x301c, "CLIP_TRUNCATE"},
    {0x3030, "RESERVED_3030"},
    {0x4004, "POINTER"},
    {0x400c, "FEATURE_MODE_CFG"},
    {0x4010, "DATA_FORMAT"},
    {0x4014, "OFFSET_PEND"},
    {0x4020, "DST_BASE_ADDR"},
    {0x4024, "DST_SURF"},
    {0x4030, "DATA_CUBE_WIDTH"},
    {0x4034, "DATA_CUBE_HEIGHT"},
    {0x4038, "DST_NOTCH"},
    {0x403c, "DATA_CUBE_CHANNEL"},
    {0x4040, "BS_CFG"},
    {0x4044, "BS_ALU_CFG"},
    {0x4048, "BS_MUL_CFG"},
    {0x404c, "BS_RELUX"},
    {0x4050, "BS_OW_CFG"},
    {0x4054, "BS_OW_OP"},
    {0x4058, "WRITER_SIZE0"},
    {0x405c, "WRITER_SIZE1"},
    {0x4060, "BN_CFG"},
    {0x4064, "BN_ALU_CFG"},
    {0x4068, "BN_MUL_CFG"},
    {0x406c, "BN_RELUX"},
    {0x4070, "EW_CFG"},
    {0x4074, "EW_CVT_OFFSET"},
    {0x4078, "EW_CVT_SCALE"},
    {0x407c, "EW_RELUX"},
    {0x4080, "OUT_CVT_OFFSET"},
    {0x4084, "OUT_CVT_SCALE"},
    {0x4088, "OUT_CVT_SHIFT"},
    {0x4090, "EW_OPERAND0"},
    {0x4094, "EW_OPERAND1"},
    {0x4098, "EW_OPERAND2"},
    {0x409c, "EW_OPERAND3"},
    {0x40a0, "EW_OPERAND4"},
    {0x40a4, "EW_OPERAND5"},
    {0x40a8, "EW_OPERAND6"},
    {0x40ac, "EW_OPERAND7"},
    {0x40c0, "SURF_ADD"},
    {0x40c4, "RESERVED_40C4"},
    {0x4100, "TABLE_ACCESS_CFG"},
    {0x4104, "TABLE_ACCESS_DATA"},
    {0x4108, "TABLE_CFG"},
    {0x410c, "TABLE_INFO"},
    {0x4110, "TABLE_LE_START"},
    {0x4114, "TABLE_LE_END"},
    {0x4118, "TABLE_LO_START"},
    {0x411c, "TABLE_LO_END"},
    {0x4120, "TABLE_LE_SLOPE"},
    {0x4124, "TABLE_LE_SHIFT"},
    {0x4128, "TABLE_LO_SLOPE"},
    {0x412c, "TABLE_LO_SHIFT"},
    {0x5004, "POINTER"},
    {0x500c, "DATA_CUBE_WIDTH"},
    {0x5010, "DATA_CUBE_HEIGHT"},
    {0x5014, "DATA_CUBE_CHANNEL"},
    {0x5018, "SRC_BASE_ADDR"},
    {0x501c, "BRDMA_CFG"},
    {0x5020, "BS_BASE_ADDR"},
    {0x5028, "NRDMA_CFG"},
    {0x502c, "BN_BASE_ADDR"},
    {0x5034, "ERDMA_CFG"},
    {0x5038, "EW_BASE_ADDR"},
    {0x5040, "EW_SURF_STRIDE"},
    {0x5044, "FEATURE_MODE_CFG"},
    {0x5048, "SRC_DMA_CFG"},
    {0x504c, "SURF_NOTCH"},
    {0x5064, "PAD_CFG"},
    {0x5068, "WEIGHTS_OF_READERS"},
    {0x506c, "EW_SURF_NOTCH"},
    {0x6004, "POINTER"},
    {0x600c, "INPUT_WIDTH"},
    {0x6010, "INPUT_HEIGHT"},
    {0x6014, "INPUT_CHANNEL"},
    {0x6018, "OUTPUT_WIDTH"},
    {0x601c, "OUTPUT_HEIGHT"},
    {0x6020, "OUTPUT_CHANNEL"},
    {0x6024, "OPERATION_MODE"},
    {0x6034, "KERNEL_CFG"},
    {0x6038, "RECIPROCAL_WIDTH"},
    {0x603c, "RECIPROCAL_HEIGHT"},
    {0x6040, "PADDING_CFG"},
    {0x6044, "PADDING_VALUE1"},
    {0x6048, "PADDING_VALUE2"},
    {0x6070, "DST_BASE_ADDR"},
    {0x607c, "DST_SURF_STRIDE"},
    {0x6084, "DATA_FORMAT"},
    {0x60dc, "MISC_CTRL"},
    {0x7004, "POINTER"},
    {0x700c, "INPUT_WIDTH"},
    {0x7010, "INPUT_HEIGHT"},
    {0x7014, "INPUT_CHANNEL"},
    {0x701c, "SRC_BASE_ADDR"},
    {0x7024, "SRC_LINE_STRIDE"},
    {0x7028, "SRC_SURF_STRIDE"},
    {0x7030, "DATA_FORMAT"},
};

}  // namespace

std::span<const BlockInfo> Blocks() { return kBlocks; }

const BlockInfo* BlockOfTarget(uint16_t target) {
  for (const BlockInfo& block : kBlocks) {
    if (block.target == target) return &block;
  }
  return nullptr;
}

std::span<const RegisterInfo> Registers() { return kRegisters; }

const RegisterInfo* FindRegister(uint16_t reg) {
  const auto* const at =
      std::lower_bound(std::begin(kRegisters), std::end(kRegisters), reg,
                       [](const RegisterInfo& info, uint16_t wanted) {
                         return info.reg < wanted;
                       });
  return at != std::end(kRegisters) && at->reg == reg ? at : nullptr;
}

std::string NameOf(uint16_t reg) {
  const char* block = "no block";
  for (const BlockInfo& info : kBlocks) {
    if (info.page == reg >> 12) block = info.name;
  }
  const RegisterInfo* const info = FindRegister(reg);
  std::array<char, 16> number;
  std::snprintf(number.data(), number.size(), "0x%04x", unsigned{reg});
  if (info == nullptr) return std::string(block) + " register " + number.data();
  return std::string(block) + " " + info->name + " (" + number.data() + ")";
}

}  // namespace rknnd::rknpu
