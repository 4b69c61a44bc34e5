// Which shapes a network's inputs have: the file's own, or the rows of option
// dynamic_input, each of which becomes a program. What comes in was written by
// a client: every error names option, row and input.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_IMPORT_SHAPES_H_
#define DRIVER_SOFT_IMPORT_SHAPES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/import/options.h"

namespace rknnd::soft {

// What the C API's list has room for.
inline constexpr size_t kMaxShapeRows = 512;
// All shapes of all rows; so many fit the answer to a client.
inline constexpr size_t kMaxListedShapes = size_t{1} << 15;

// Whether the rows of `options`, if any, fit the inputs of `graph` and what
// they cost is bounded. `graph` is as ImportOpen made it.
absl::Status CheckRows(const ModelOptions& options, const Graph& graph,
                       const std::string& model);

// Gives the inputs the shapes of `row`, which CheckRows has seen; null: those
// of the file, INVALID_ARGUMENT where it leaves one open.
absl::Status FixInputs(const InputShapes* row, Graph& graph);

// Whether a network whose shapes are known can be run for each of a batch:
// inputs and outputs have a first dimension of 1 and room for more.
absl::Status CheckBatch(uint32_t batch, const Graph& graph);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_SHAPES_H_
