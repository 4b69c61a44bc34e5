// Which of a model's shape rows a client asks for. Dims and layouts are a
// client's numbers.

#ifndef DAEMON_CORE_CONTEXTS_SHAPE_ROWS_H_
#define DAEMON_CORE_CONTEXTS_SHAPE_ROWS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/core/models/loaded_model.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// The row whose inputs have these shapes, one for each input.
// INVALID_ARGUMENT names the input that fits no row, and lists the rows.
absl::StatusOr<uint32_t> FindRow(const LoadedModel& model,
                                 std::span<const InputShape> shapes);

// "0: 'x' 1x224x224x3; 1: 'x' 1x192x192x3", and how many more there are.
std::string RowsText(const driver::ModelInfo& model);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_CONTEXTS_SHAPE_ROWS_H_
