// A compiled model as bytes: its graphs as the planner takes them, what making
// their kernels found out, and the weight memory's pieces as kernels read them.
// From these the plan is made anew, which takes no time beside the rest.
//
//   size of what follows | name, options | sizes of the pieces | constants
//     | plan and graph of each row of shapes | padding | piece | piece ...
//
// Each piece begins at a multiple of 64. Kept in the daemon's model cache,
// which finds damage by a checksum before anybody reads it here.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_COMPILED_COMPILED_FORM_H_
#define DRIVER_SOFT_COMPILED_COMPILED_FORM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/soft/compiled/saved_plan.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// Another form, another number.
inline constexpr uint32_t kFormNumber = 4;

struct CompiledForm {
  struct Row {
    std::unique_ptr<const Graph> graph;
    SavedPlan plan;
  };

  std::string custom_string, target_platform;
  uint32_t batch = 1;
  // Rows of option 'dynamic_input': 0 where there is no such option.
  uint32_t listed_rows = 0;
  std::vector<Row> rows;  // at least one
  // Borrowed: from the weight memory to write, from the bytes that were read.
  std::vector<std::span<const std::byte>> pieces;

  // What the pieces take in the weight memory.
  [[nodiscard]] uint64_t WeightBytes() const;

  // In pieces of any size; stops at the first error.
  absl::Status Write(
      absl::FunctionRef<absl::Status(std::span<const std::byte>)> write) const;
  // Any bytes, also of a file that somebody cuts or changes meanwhile.
  // DATA_LOSS unless all of it is as Write makes it; pieces are not read here.
  static absl::StatusOr<CompiledForm> Read(std::span<const std::byte> bytes,
                                           const OperatorTable& operators);
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_COMPILED_COMPILED_FORM_H_
