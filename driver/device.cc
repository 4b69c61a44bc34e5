// What a device that lacks something says, for all of them.

#include "driver/device.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rknnd::driver {

absl::StatusOr<FrameSizes> Model::CheckFrame(
    uint32_t /*program*/, uint32_t /*index*/,
    const FrameFormat& /*frame*/) const {
  return absl::UnimplementedError(
      "this device takes no camera frames: convert them to the input's tensor");
}

absl::Status Memory::CopyFrom(const Memory& /*from*/, uint64_t /*from_offset*/,
                              uint64_t /*offset*/, uint64_t /*bytes*/) {
  return absl::UnimplementedError("this device copies no answers");
}

absl::Status Model::CopyWeights(Memory& /*to*/, uint64_t /*offset*/) const {
  return absl::UnimplementedError("this device gives no copy of its weights");
}

void Device::Reset(std::function<void(absl::Status)> done) {
  done(absl::UnimplementedError(
      absl::StrCat("device '", info().kind,
                   "' has nothing to reset: it is no hardware, and its jobs "
                   "end by themselves ('rknnd --faults' models a driver's "
                   "reset)")));
}

absl::Status Device::EndQuarantine(const std::string& /*sha256*/) {
  return absl::NotFoundError("no model of this device is in quarantine");
}

absl::Status Model::WriteCompiled(
    absl::FunctionRef<absl::Status(std::span<const std::byte>)> /*write*/) {
  return absl::UnimplementedError("this model has no compiled form");
}

}  // namespace rknnd::driver
