// The back end without hardware: memory of this process, jobs on the emulator
// (emulator/emulator.h), on the thread that runs them.

#ifndef DRIVER_RKNPU_EMULATED_BACKEND_H_
#define DRIVER_RKNPU_EMULATED_BACKEND_H_

#include <memory>

#include "driver/rknpu/backend.h"

namespace rknnd::rknpu {

enum class Emulation : uint8_t {
  kFast,
  kPlain,  // the slow engine that reads like the register manual: for tests
};

std::unique_ptr<Backend> MakeEmulatedBackend(
    Emulation emulation = Emulation::kFast);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATED_BACKEND_H_
