// Where the parts of a program lie in the NPU's address space, apart from the
// internal memory, whose plan is in the file.
//
//   constants   one block a model: weights and constants of the source graph as
//               the file counts them, then what the compiler generated. The NPU
//               only reads it, so all contexts of the model share it
//   private     one block for each core that runs the model: what tasks write
//               and nobody reads (targets of barriers, the dummy pixel of a
//               table's loader)
//   commands    one copy for each such core (relocated_commands.h)
//
// Used while a model is loaded. Thread: any.

#ifndef DRIVER_RKNPU_PLACEMENT_H_
#define DRIVER_RKNPU_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/rknpu/file/program_file.h"

namespace rknnd::rknpu {

// Which memory a tensor lies in.
enum class Home : uint8_t {
  kNowhere,  // commands and tasks: no task may touch them
  kConstants,
  kPrivate,
  kInternal,
};

struct TensorHome {
  Home home = Home::kNowhere;
  uint64_t offset = 0;  // in that memory
};

struct Placement {
  std::vector<TensorHome> homes;  // by tensor
  uint64_t constant_bytes = 0;
  uint64_t private_bytes = 0;
};

// kNowhere for numbers that are no register of an address.
enum class AddressUse : uint8_t { kNone, kRead, kWritten };
// Of a command's target and register: what the NPU does at that address.
AddressUse UseOfAddress(uint64_t command);

// INVALID_ARGUMENT: a relocation names a register that takes no address, or the
// file has more bytes for a constant than the constant has room.
absl::StatusOr<Placement> PlaceTensors(const ProgramFile& file);

// Copies the contents of all tensors that live in `home` to their offsets.
// `memory` has the placement's size and holds zeros.
void FillMemory(const ProgramFile& file, const Placement& placement, Home home,
                std::span<std::byte> memory);

// Where each memory begins, as the NPU sees it.
struct Bases {
  uint64_t constants = 0, private_memory = 0, internal = 0;
};
// The NPU's address of every tensor.
std::vector<uint64_t> AddressesOf(const Placement& placement,
                                  const Bases& bases);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_PLACEMENT_H_
