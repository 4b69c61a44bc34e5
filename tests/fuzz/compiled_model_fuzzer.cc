// Compiled forms as a damaged disk, or somebody with access to it, may give
// them: whatever the bytes, the software NPU refuses them or has a model whose
// kernels are made, or refused, and whose jobs stay inside its memory.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/soft/soft_device.h"
#include "driver/soft/testing/run_model.h"

namespace {

using rknnd::driver::TensorAttr;
using rknnd::driver::TensorFormat;
using rknnd::soft::testing::BoundModel;
using rknnd::soft::testing::PlainFormat;

// A job on more is nothing but slow.
constexpr uint64_t kLargestRun = 1 << 20;

void Require(bool holds) {
  if (!holds) std::abort();
}

rknnd::driver::Device& Device() {
  static auto* device =
      rknnd::soft::OpenSoftDevice({.kind = "soft", .soc = "rk3588"})
          .value()
          .release();
  return *device;
}

std::vector<TensorFormat> Formats(const std::vector<TensorAttr>& attrs) {
  std::vector<TensorFormat> formats;
  for (const TensorAttr& attr : attrs) {
    formats.push_back(PlainFormat(attr, attr.type));
  }
  return formats;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(
      reinterpret_cast<const std::byte*>(data),
      reinterpret_cast<const std::byte*>(data) + size);
  if (bytes->empty()) return 0;
  rknnd::driver::LoadRequest request;
  request.name = "fuzz";
  request.compiled = *bytes;
  request.compiled_keeper = bytes;
  const auto loaded = Device().Load(request);
  if (!loaded.ok()) {
    Require(absl::IsDataLoss(loaded.status()) ||
            absl::IsResourceExhausted(loaded.status()));
    return 0;
  }
  rknnd::driver::Model& model = **loaded;
  const bool finished = model.Finish().ok();
  for (uint32_t row = 0; row < model.info().programs.size(); ++row) {
    const rknnd::driver::ProgramInfo& info = model.info().programs[row];
    uint64_t bytes_of_run = info.internal_size;
    for (const auto* attrs : {&info.inputs, &info.outputs}) {
      for (const TensorAttr& attr : *attrs) bytes_of_run += attr.size;
    }
    if (bytes_of_run > kLargestRun) continue;
    auto bound = BoundModel::Make(Device(), model, Formats(info.inputs),
                                  Formats(info.outputs), row);
    if (!bound.ok()) continue;
    const auto result = (*bound)->Run();
    Require(!finished || result.status.ok() ||
            !result.status.message().empty());
  }
  return 0;
}
