// Which field of a .rknn file's tables is what, by its place in the table: for
// the reader that describes such files (rknn_file.cc), and for the one that
// takes them as programs (driver/rknpu/file). As published files have it.

#ifndef DRIVER_RKNN_FILE_SLOTS_H_
#define DRIVER_RKNN_FILE_SLOTS_H_

#include <cstdint>

namespace rknnd::rknn_file {

// The main section, behind the file's header (container versions above 1).
inline constexpr uint64_t kHeaderBytes = 64;
// In weight memory constants begin at multiples of it: cache lines.
inline constexpr uint64_t kConstantAlignment = 64;

namespace model_slot {
enum : uint32_t {
  kFormat = 1,
  kGraphs = 2,
  kVersions = 7,
  kPlatform = 8,
  kFramework = 9,
  kInputJson = 12,
  kOutputJson = 13,
  kBatch = 14,
  kShapes = 16,  // "static_shape", or how they change
  kSizes = 19,
  kBuffers = 20,
};
}  // namespace model_slot

namespace graph_slot {
enum : uint32_t {
  kTensors = 0,
  kNodes = 1,
  kInputs = 2,
  kOutputs = 3,
  kScaling = 4,
};
}  // namespace graph_slot

namespace tensor_slot {
enum : uint32_t {
  kType = 0,
  kLayout = 1,
  kClass = 2,
  kNativeShape = 3,
  kShape = 4,
  kName = 5,
  kScale = 10,
  kZeroPoint = 11,
  kBytes = 12,
  kOffset = 13,
  kCompressed = 14,
  kBuffer = 18,
};
}  // namespace tensor_slot

namespace node_slot {
enum : uint32_t {
  kType = 1,
  kName = 2,
  kDevice = 3,
  kInputs = 4,
  kOutputs = 5,
  kAttributeKind = 7,
  kAttributes = 8,
  kDocument = 9,
  kTasks = 10,
  kTableTasks = 11,
};
}  // namespace node_slot

}  // namespace rknnd::rknn_file

#endif  // DRIVER_RKNN_FILE_SLOTS_H_
