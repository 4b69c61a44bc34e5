// What a worker that hosts the vendor's library tells of a model: the daemon
// reads it, and asks of each tensor what may be bound. Whatever the bytes, they
// are taken with numbers that fit each other, or refused with a reason.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "driver/rknnrt/description.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckPort(const rknnd::driver::ProgramInfo& program,
               rknnd::driver::Direction direction, uint32_t index) {
  using rknnd::driver::TensorFormat;
  using rknnd::driver::TensorLayout;
  using rknnd::driver::TensorType;
  const auto port = rknnd::rknnrt::AttributesOf(program, direction, index);
  Require(port.usual->elements > 0 &&
          port.usual->size_with_stride >= port.usual->size);
  for (uint32_t type = 0; type <= rknnd::driver::kTensorTypeCount; ++type) {
    for (uint32_t layout = 0; layout < rknnd::driver::kTensorLayoutCount;
         ++layout) {
      for (const bool pass_through : {false, true}) {
        TensorFormat format;
        format.type = static_cast<TensorType>(type);
        format.layout = static_cast<TensorLayout>(layout);
        format.pass_through = pass_through;
        const auto bytes = rknnd::rknnrt::BytesOf(port, format);
        Require(bytes.ok() || !bytes.status().message().empty());
        Require(!bytes.ok() || *bytes > 0);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto described =
      rknnd::rknnrt::Describe(std::as_bytes(std::span(data, size)), "m.rknn");
  if (!described.ok()) {
    Require(!described.status().message().empty());
    return 0;
  }
  const rknnd::driver::ModelInfo& info = described->info;
  Require(info.largest < info.programs.size());
  for (const auto& program : info.programs) {
    Require(program.inputs.size() == program.native_inputs.size());
    Require(program.outputs.size() == program.native_outputs.size());
    for (uint32_t i = 0; i < program.inputs.size(); ++i) {
      CheckPort(program, rknnd::driver::Direction::kInput, i);
    }
    for (uint32_t i = 0; i < program.outputs.size(); ++i) {
      CheckPort(program, rknnd::driver::Direction::kOutput, i);
    }
  }
  return 0;
}
