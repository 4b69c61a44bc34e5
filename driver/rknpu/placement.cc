#include "driver/rknpu/placement.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "driver/rknpu/registers/registers.h"

namespace rknnd::rknpu {
namespace {

// Constants and command lists begin at multiples of it.
constexpr uint64_t kAlignment = 64;
// What a table's loader may touch: one pixel of 16 channels.
constexpr uint64_t kDummyPixel = 16;

struct AddressRegister {
  uint64_t target, number;
  AddressUse use;
};
// Every register that takes an address in files for RK3588.
constexpr AddressRegister kAddressRegisters[] = {
    {0x0201, 0x1070, AddressUse::kRead},     // feature data
    {0x0201, 0x1110, AddressUse::kRead},     // weights
    {0x1001, 0x4020, AddressUse::kWritten},  // output
    {0x2001, 0x5018, AddressUse::kRead},     // feature data, or an operand
    {0x2001, 0x5020, AddressUse::kRead},     // coefficients of BS
    {0x2001, 0x502c, AddressUse::kRead},     // coefficients of BN
    {0x2001, 0x5038, AddressUse::kRead},     // operand
    {0x4001, 0x6070, AddressUse::kWritten},  // output of pooling
    {0x8001, 0x701c, AddressUse::kRead}};    // input of pooling

uint64_t Aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Which tensors tasks write to.
absl::StatusOr<std::vector<bool>> FindWritten(const ProgramFile& file) {
  std::vector<bool> written(file.tensors.size());
  for (const Relocation& relocation : file.relocations) {
    const uint64_t command = file.commands[relocation.word];
    const AddressUse use = UseOfAddress(command);
    if (use == AddressUse::kNone) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the address of tensor '", file.tensors[relocation.tensor].name,
          "' belongs into ", NameOf(Decode(command).reg),
          ", which is not known to take an address (word ", relocation.word,
          ")"));
    }
    if (use == AddressUse::kWritten) written[relocation.tensor] = true;
  }
  return written;
}

// The next place of so many bytes.
uint64_t Take(uint64_t bytes, uint64_t& end) {
  const uint64_t offset = end;
  end += Aligned(bytes);
  return offset;
}

}  // namespace

AddressUse UseOfAddress(uint64_t command) {
  for (const AddressRegister& known : kAddressRegisters) {
    if (command >> 48 == known.target && (command & 0xffff) == known.number) {
      return known.use;
    }
  }
  return AddressUse::kNone;
}

absl::StatusOr<Placement> PlaceTensors(const ProgramFile& file) {
  absl::StatusOr<std::vector<bool>> written = FindWritten(file);
  if (!written.ok()) return written.status();
  Placement placement;
  placement.homes.resize(file.tensors.size());
  // Generated constants lie behind the others, whose sum is in the file.
  uint64_t generated = file.weight_bytes;
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const Tensor& tensor = file.tensors[i];
    TensorHome& home = placement.homes[i];
    switch (tensor.kind) {
      case TensorClass::kWeights:
      case TensorClass::kConstant:
        home = {Home::kConstants, Take(tensor.bytes, placement.constant_bytes)};
        break;
      case TensorClass::kGenerated:
        home = {Home::kConstants, Take(tensor.bytes, generated)};
        break;
      case TensorClass::kTable:
        home = {Home::kPrivate, Take(kDummyPixel, placement.private_bytes)};
        break;
      case TensorClass::kInput:
      case TensorClass::kOutput:
      case TensorClass::kInternal:
        home = {Home::kInternal, tensor.offset};
        break;
      case TensorClass::kNone:
      case TensorClass::kCommands:
      case TensorClass::kTasks:
        break;
    }
    if (home.home != Home::kConstants) continue;
    if (tensor.data.size() > Aligned(tensor.bytes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the constant '", tensor.name, "' has ", tensor.data.size(),
          " bytes in the file, ", tensor.bytes, " in memory"));
    }
    if ((*written)[i]) {
      home = {Home::kPrivate, Take(tensor.bytes, placement.private_bytes)};
    }
  }
  placement.constant_bytes = generated;
  return placement;
}

void FillMemory(const ProgramFile& file, const Placement& placement, Home home,
                std::span<std::byte> memory) {
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const Tensor& tensor = file.tensors[i];
    if (placement.homes[i].home != home || tensor.data.empty() ||
        tensor.kind == TensorClass::kTable) {
      continue;
    }
    std::memcpy(memory.data() + placement.homes[i].offset, tensor.data.data(),
                tensor.data.size());
  }
}

std::vector<uint64_t> AddressesOf(const Placement& placement,
                                  const Bases& bases) {
  std::vector<uint64_t> addresses;
  addresses.reserve(placement.homes.size());
  for (const TensorHome& home : placement.homes) {
    switch (home.home) {
      case Home::kNowhere:
        addresses.push_back(0);
        break;
      case Home::kConstants:
        addresses.push_back(bases.constants + home.offset);
        break;
      case Home::kPrivate:
        addresses.push_back(bases.private_memory + home.offset);
        break;
      case Home::kInternal:
        addresses.push_back(bases.internal + home.offset);
        break;
    }
  }
  return addresses;
}

}  // namespace rknnd::rknpu
