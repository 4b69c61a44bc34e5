// Model files as a client may send them, all the way to a program: import,
// passes, plan and kernels. Whatever the bytes, there is a model or a reason,
// and memory stays within bounds.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <span>

#include "driver/soft/kernels/threads.h"
#include "driver/soft/soc.h"
#include "driver/soft/soft_model.h"

namespace {

// Longer inputs only take longer: structure is what is looked for.
constexpr size_t kMaxFile = size_t{64} << 10;

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > kMaxFile) return 0;
  const auto soc = rknnd::soft::FindSoc("rk3588");
  Require(soc.ok());
  const rknnd::soft::SingleThreaded alone;
  // As the device does: libraries below may throw.
  try {
    rknnd::driver::LoadRequest request;
    request.bytes = std::as_bytes(std::span(data, size));
    request.name = "fuzz";
    const auto model = rknnd::soft::SoftModel::Compile(
        request, *soc, std::make_shared<rknnd::soft::WeightPool>());
    if (!model.ok()) {
      Require(!model.status().message().empty());
      return 0;
    }
    const rknnd::driver::ModelInfo& info = (*model)->info();
    Require(!info.programs.empty() && info.largest < info.programs.size());
    for (const rknnd::driver::ProgramInfo& program : info.programs) {
      for (const rknnd::driver::TensorPlace& tensor : program.tensors) {
        Require(tensor.size <= program.internal_size &&
                tensor.offset <= program.internal_size - tensor.size);
      }
    }
  } catch (const std::bad_alloc&) {
    return 0;
  } catch (const std::exception&) {
    return 0;
  }
  return 0;
}
