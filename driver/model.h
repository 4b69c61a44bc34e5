// A network on a device: what loading it is given, and what a loaded one can be
// asked.

#ifndef DRIVER_MODEL_H_
#define DRIVER_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/device_memory.h"
#include "driver/frame.h"
#include "driver/model_info.h"
#include "driver/tensor.h"

namespace rknnd::driver {

enum class Direction { kInput, kOutput };

// A loaded network: weights and programs. Immutable; destroyed only when no
// job uses it. Thread: any.
class Model {
 public:
  virtual ~Model() = default;
  [[nodiscard]] virtual const ModelInfo& info() const = 0;

  // The bytes that memory in `format` must have to be bound there, or which
  // number cannot be. `index` and `program` are in range.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CheckBinding(
      uint32_t program, Direction direction, uint32_t index,
      const TensorFormat& format) const = 0;

  // What a context of this model that got `bytes` of SRAM keeps in it: empty
  // where the device knows of none.
  [[nodiscard]] virtual SramPlan PlanSram(uint32_t /*program*/,
                                          uint64_t /*bytes*/) const {
    return {};
  }

  // The bytes that each plane of `frame` must have to be converted into input
  // `index`, or which number of it cannot be. What is accepted is ready to run:
  // whatever the conversion needs is there.
  [[nodiscard]] virtual absl::StatusOr<FrameSizes> CheckFrame(
      uint32_t program, uint32_t index, const FrameFormat& frame) const;

  // The weights as the device holds them, ModelInfo::weight_size bytes, for a
  // program that asks for a copy (rknn_set_weight_mem). Nothing reads it again.
  virtual absl::Status CopyWeights(Memory& to, uint64_t offset) const;

  // The bytes there for this model, run or not, that no other one pays for: its
  // weights, and what a compiled one's commands take. Models share what is
  // alike; the sum over all that are loaded is what the device holds. Grows
  // when a model goes that paid for what this one uses too. Thread: any.
  [[nodiscard]] virtual uint64_t held_weights() const {
    return info().runnable.ok() ? info().weight_size : 0;
  }

  // The compiled form, from which Load makes the same model again in less time
  // (LoadRequest::compiled), in pieces of any size; the first error of `write`
  // ends it. UNIMPLEMENTED: there is none. Thread: any one after Load, before
  // Finish; jobs may run.
  virtual absl::Status WriteCompiled(
      absl::FunctionRef<absl::Status(std::span<const std::byte>)> write);
  // What Load left for later so as to answer sooner; then what only loading
  // needed is let go. Jobs may run before and meanwhile: they wait for what
  // they need of it. An error: some jobs will fail with it. Thread: any one
  // after Load, once.
  virtual absl::Status Finish() { return absl::OkStatus(); }
};

// What Load is given. Bytes are read during the call only, and not trusted.
struct LoadRequest {
  std::span<const std::byte> bytes;  // the file
  std::string options;               // the text of MODEL.yml, or empty
  std::string name;                  // for messages
  // The file of the model whose weights this one shares, where its own lack
  // them (RKNN_FLAG_SHARE_WEIGHT_MEM); empty: none.
  std::span<const std::byte> weights_of = {};
  // Whether weights that other models have loaded already are used again; if
  // not, this model has a copy of its own.
  bool share_weights = true;
  // What Model::WriteCompiled of the same file, options and
  // DeviceInfo::compiler gave; `bytes` need not be there then. Empty: compile.
  // One that is not good after all is DATA_LOSS.
  std::span<const std::byte> compiled = {};
  // Keeps `compiled` where it is for as long as the model wants to read it,
  // at most until Finish.
  std::shared_ptr<const void> compiled_keeper = nullptr;
  // 64 digits: the hash of bytes and options, by which people name the model.
  // Empty: not known.
  std::string sha256 = {};
};

}  // namespace rknnd::driver

#endif  // DRIVER_MODEL_H_
