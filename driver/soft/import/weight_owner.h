// The model whose weights another one shares (RKNN_FLAG_SHARE_WEIGHT_MEM): what
// the follower's file lacks is taken from here by its name. Both files come
// from a client and are not trusted; that the follower named this very file is
// what the daemon has checked.

#ifndef DRIVER_SOFT_IMPORT_WEIGHT_OWNER_H_
#define DRIVER_SOFT_IMPORT_WEIGHT_OWNER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"

namespace onnx {
class ModelProto;
class TensorProto;
}  // namespace onnx

namespace rknnd::soft {

// Thread: the loading thread.
class WeightOwner {
 public:
  // Empty bytes: there is no owner, and it has nothing.
  static absl::StatusOr<WeightOwner> Read(std::span<const std::byte> bytes);
  WeightOwner(WeightOwner&&) noexcept;
  WeightOwner& operator=(WeightOwner&&) noexcept;
  ~WeightOwner();

  [[nodiscard]] bool has(const std::string& name) const {
    return weights_.contains(name);
  }

  // What a follower takes as `what` ("initializer 'conv1.weight'").
  struct Wanted {
    const std::string& name;
    const std::string& what;
    // As the follower has it, where it says so.
    int32_t onnx_type = 0;  // 0: says nothing
    const Shape* shape = nullptr;
  };
  // INVALID_ARGUMENT where there is none of that name, or another.
  [[nodiscard]] absl::StatusOr<std::shared_ptr<const Constant>> Take(
      const Wanted& wanted) const;

 private:
  explicit WeightOwner(std::unique_ptr<onnx::ModelProto> model);

  std::unique_ptr<onnx::ModelProto> model_;  // null: none
  std::unordered_map<std::string_view, const onnx::TensorProto*> weights_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_WEIGHT_OWNER_H_
