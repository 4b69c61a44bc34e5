// Model files as a client may send them, through the importer: whatever the
// bytes, it answers with a graph or with a reason.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "driver/soft/import/onnx_import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto graph = rknnd::soft::ImportOnnx(bytes, "fuzz");
  if (!graph.ok() && graph.status().message().empty()) std::abort();
  // As a file whose weights were removed, and as the one that has them.
  const auto follower = rknnd::soft::ImportOpen(bytes, "fuzz", bytes);
  if (!follower.ok() && follower.status().message().empty()) std::abort();
  return 0;
}
